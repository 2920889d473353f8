package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mutant breaks a rule by a small change within one declaration. It names the declaration and the tests, and no files,
// because files may move.
type mutant struct {
	rule string // in docs/protocol*.md; "" for a guarantee without a rule
	what string // what is wrong after the change
	in   string // the name of the function, method or variable to change
	from string // the text to replace, which occurs once in all declarations of that name
	to   string
	test string // "TestA|TestB", "package.TestA" or "TestA/sub", in one package; then more arguments of go test
}

func (m mutant) name() string {
	if m.rule == "" {
		return m.what
	}
	return m.rule + ": " + m.what
}

// place is where a mutant changes the source.
type place struct {
	file        string
	text        string // of the file
	start, stop int    // of the text to replace
}

// mutated returns the text of the file with the rule broken.
func (p place) mutated(m mutant) string { return p.text[:p.start] + m.to + p.text[p.stop:] }

// module is the source of the module: its declarations by name, and the packages of its tests.
type module struct {
	decls map[string][]declaration
	tests map[string][]string // directories by the name of the test, with and without the name of its package
}

type declaration struct {
	file, text  string
	start, stop int
}

// readModule reads the Go files of the module in dir. It leaves out the modules within it.
func readModule(dir string) (*module, error) {
	m := &module{decls: map[string][]declaration{}, tests: map[string][]string{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && (strings.HasPrefix(d.Name(), ".") || isModule(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		return m.read(path)
	})
	return m, err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (m *module) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(path, "_test.go")
	add := func(name string, n ast.Node) {
		if test {
			dir := filepath.Dir(path)
			for _, key := range []string{name, filepath.Base(dir) + "." + name} {
				m.tests[key] = append(m.tests[key], dir)
			}
			return
		}
		m.decls[name] = append(m.decls[name], declaration{path, string(text), set.Position(n.Pos()).Offset, set.Position(n.End()).Offset})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name.Name, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					add(v.Names[0].Name, v)
				}
			}
		}
	}
	return nil
}

// find returns the one place that a mutant changes.
func (m *module) find(mu mutant) (place, error) {
	var found []place
	for _, d := range m.decls[mu.in] {
		within := d.text[d.start:d.stop]
		for at := 0; ; {
			i := strings.Index(within[at:], mu.from)
			if i < 0 {
				break
			}
			start := d.start + at + i
			found = append(found, place{d.file, d.text, start, start + len(mu.from)})
			at += i + len(mu.from)
		}
	}
	if len(found) != 1 {
		return place{}, fmt.Errorf("%s: %d declarations are named %s and have %d places with %q, want 1: the code has changed, and the mutant must follow",
			mu.name(), len(m.decls[mu.in]), mu.in, len(found), mu.from)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), found[0].file, found[0].mutated(mu), 0); err != nil {
		return place{}, fmt.Errorf("%s: does not parse: %w", mu.name(), err)
	}
	return found[0], nil
}

// command returns the directory and the arguments of go test that run the tests of a mutant.
func (m *module) command(mu mutant) (dir string, args []string, err error) {
	words := strings.Fields(mu.test)
	if len(words) == 0 {
		return "", nil, errors.New(mu.name() + ": no test")
	}
	names, sub, _ := strings.Cut(words[0], "/")
	for name := range strings.SplitSeq(names, "|") {
		dirs := m.tests[name]
		if len(dirs) != 1 || dir != "" && dir != dirs[0] {
			return "", nil, fmt.Errorf("%s: there must be one package with %s, not %q", mu.name(), words[0], append(dirs, dir))
		}
		dir = dirs[0]
	}
	_, unqualified, ok := strings.Cut(names, ".")
	if !ok {
		unqualified = names
	}
	pattern := "^(" + unqualified + ")$"
	if sub != "" {
		pattern += "/^" + strings.ReplaceAll(sub, "/", "$/^") + "$"
	}
	return dir, append([]string{"-run", pattern}, words[1:]...), nil
}
