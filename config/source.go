package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/regular"
)

// source is a parsed file and the problems found so far. The zero source is an empty file.
type source struct {
	path     string
	flags    *pflag.FlagSet // nil: none
	entries  []entry        // of the top level
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

func open(path string, flags *pflag.FlagSet) (*source, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	root, err := parse(text)
	if err != nil {
		line, what := yamlError(text, err)
		return nil, fmt.Errorf("%s:%d: not valid YAML: %s", path, line, what)
	}
	s := &source{path: path, flags: flags}
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
		text := escape.Text(p.text) // a name of the file may have anything in it
		switch {
		case p.line == notInFile, s.path == "":
			errs = append(errs, errors.New(text))
		case p.line == 0:
			errs = append(errs, fmt.Errorf("%s: %s", s.path, text))
		default:
			errs = append(errs, fmt.Errorf("%s:%d: %s", s.path, p.line, text))
		}
	}
	return errors.Join(errs...)
}

// line returns the line of a key of the top level, 0 if the file does not have it.
func (s *source) line(key string) int {
	if e := find(s.entries, key); e != nil {
		return e.line
	}
	return 0
}

// withoutPath returns what went wrong with a file, for a message that begins with its path.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
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

// checkKeys adds a problem for each entry whose key is not in keys.
func (s *source) checkKeys(path string, entries []entry, keys []string) {
	for _, e := range entries {
		if slices.Contains(keys, e.key) {
			continue
		}
		name := e.key
		if path != "" {
			name = path + "." + e.key
		}
		s.add(e.line, "%s: %s", name, human.Unknown("key", e.key, keys))
	}
}

// text returns a scalar as the file spells it: 007 stays 007.
func (s *source) text(path string, n *yaml.Node) (string, bool) {
	switch {
	case isNull(n):
		return "", true
	case n.Kind != yaml.ScalarNode:
		s.add(n.Line, "%s: must be a single value, not a list or mapping", path)
		return "", false
	}
	return n.Value, true
}

// yamlError returns the line of an error in a text that is not valid YAML, and what is wrong there. The parser counts
// some lines from zero, and names the line where it gave up: where a value continues on a line that is indented more,
// that is the line after the one with the wrong indentation.
func yamlError(text []byte, err error) (line int, what string) {
	if second := secondDocument(0); errors.As(err, &second) {
		return int(second), err.Error()
	}
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	what = regexp.MustCompile(`^line \d+: `).ReplaceAllString(what, "")
	lines := strings.Split(string(text), "\n")
	line = firstBadLine(text)
	above := line - 1
	for above > 0 && strings.TrimSpace(lines[above-1]) == "" {
		above--
	}
	if above == 0 || indent(lines[line-1]) <= indent(lines[above-1]) ||
		!strings.Contains(what, "mapping values are not allowed") {
		return line, what
	}
	what = fmt.Sprintf("line %d is indented more than line %d, which has its value already", line, above)
	if line < len(lines) && strings.TrimSpace(lines[line]) != "" && indent(lines[line]) == indent(lines[line-1]) {
		line = above // the lines after it agree with each other
	}
	return line, what
}

// firstBadLine returns the first line after which no part of the text is valid. An unfinished list is not valid
// either, so that it looks from the end: from the first line with which a part of the text has the error of the whole
// text. With more lines it has it, too, because the parser does not come so far.
func firstBadLine(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	errorOf := func(n int) string {
		if err := yaml.Unmarshal(bytes.Join(lines[:n], nil), &yaml.Node{}); err != nil {
			return err.Error()
		}
		return ""
	}
	whole := errorOf(len(lines))
	for n := sort.Search(len(lines), func(n int) bool { return errorOf(n) == whole }); n > 1; n-- {
		if errorOf(n-1) == "" {
			return n
		}
	}
	return 1
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
