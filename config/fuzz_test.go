package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A file is read, or refused with an error that names it. Load neither panics nor runs without end.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		whole, "a: &a [*a]\ntasks: *a", "tasks: &x\n  <<: *x\n  a: *x", "database: x\ntasks: {a: {queues: [a, b], after: [x: y]}}", "&a a: *a",
		"? [a]\n: b\n", "tasks: {? {a: b} : {queues: 1}}", "tasks: {s: {queues: 1, dealer: {sql: {select: !!binary aGk=}}}}\nhttp: a:b:c",
		"database: !!null\nschema: yes\n", "tasks: {a: {queues: 99999999999999999999}}", "---\na: 1\n---\nb: 2\n",
		"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", "tasks:\n  \"a\\e]0;x\": {queues: 1}\n", "\xff\xfe", "",
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "rota.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, pflag.NewFlagSet("", pflag.ContinueOnError))
		_, connectionErr := LoadConnection(path, pflag.NewFlagSet("", pflag.ContinueOnError))
		for _, err := range []error{err, connectionErr} {
			if err != nil && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "rota.yaml") {
				t.Errorf("the error does not name the file: %v", err)
			}
		}
	})
}
