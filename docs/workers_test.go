package docs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A JSON block satisfies the schema of the protocol.
func TestJSONBlocks(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	var schemas []*jsonschema.Schema
	for _, name := range []string{"request", "reply", "select_reply", "peek_reply", "backlog_reply"} {
		s, err := c.Compile("../cmd/rota/internal/program/schema.json#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, s)
	}
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if b.language != "json" {
				continue
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(b.text))
			if err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
				continue
			}
			var errs []error
			for _, s := range schemas {
				if err := s.Validate(value); err != nil {
					errs = append(errs, err)
				}
			}
			if len(errs) == len(schemas) {
				t.Errorf("%s:%d: is neither a request nor a reply: %v", b.page, b.line, errors.Join(errs...))
			}
		}
	}
}

// A Python block is a part of a program.
func TestPythonBlocks(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../examples/workers/*.py")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range programs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if b.language == "python" && !strings.Contains(all.String(), b.text) {
				t.Errorf("%s:%d: no program under examples/workers has this", b.page, b.line)
			}
		}
	}
}
