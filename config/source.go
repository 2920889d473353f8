package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// source is a parsed file and the problems found so far. The zero source is an
// empty file.
type source struct {
	path     string
	entries  []entry // of the top level
	problems []problem
}

// entry is one key of a mapping. Its value is resolved if it was an alias.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// problem is one line of the error. Line 0 means the file as a whole.
type problem struct {
	line int
	text string
}

// notInFile is the line of a problem that is not in the file.
const notInFile = -1

func open(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			err = pathErr.Err // the message starts with the path
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	root, err := parse(text)
	if err != nil {
		line, what := yamlError(text, err)
		return nil, fmt.Errorf("%s:%d: not valid YAML: %s", path, line, what)
	}
	s := &source{path: path}
	switch {
	case root == nil:
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s:%d: must be a mapping of keys to values", path, root.Line)
	default:
		s.entries = s.mapping("", root)
	}
	return s, nil
}

// parse returns the root node, nil for an empty file.
func parse(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // an empty file is no error here: Load names the missing keys
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&more); err == nil {
		return nil, secondDocument(more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return doc.Content[0], nil
}

// secondDocument is the line of a second document.
type secondDocument int

func (secondDocument) Error() string { return "the file has a second document" }

// mapping returns the entries of n in the order of the file. It adds a problem if
// n is not a mapping, and for each duplicate key.
func (s *source) mapping(path string, n *yaml.Node) []entry {
	switch n = resolve(n); {
	case isNull(n):
		return nil
	case n.Kind != yaml.MappingNode:
		s.add(n.Line, "%smust be a mapping of keys to values", prefix(path))
		return nil
	}
	var list []entry
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if first := find(list, key.Value); first != nil {
			s.add(key.Line, "%s%s is defined twice (first in line %d)", prefix(path), key.Value, first.line)
			continue
		}
		list = append(list, entry{key.Value, key.Line, resolve(n.Content[i+1])})
	}
	return list
}

func (s *source) add(line int, format string, args ...any) {
	s.problems = append(s.problems, problem{line, fmt.Sprintf(format, args...)})
}

// err joins the problems, one line for each, in the order of the file.
func (s *source) err() error {
	slices.SortStableFunc(s.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, p := range s.problems {
		switch {
		case p.line == notInFile, s.path == "":
			errs = append(errs, errors.New(p.text))
		case p.line == 0:
			errs = append(errs, fmt.Errorf("%s: %s", s.path, p.text))
		default:
			errs = append(errs, fmt.Errorf("%s:%d: %s", s.path, p.line, p.text))
		}
	}
	return errors.Join(errs...)
}

func find(list []entry, key string) *entry {
	i := slices.IndexFunc(list, func(e entry) bool { return e.key == key })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
