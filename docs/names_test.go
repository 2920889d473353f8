package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/ops"
)

// namedPackages are the packages whose names the pages write before a point, with their folders.
var namedPackages = map[string]string{
	"center": "../center", "manager": "../manager", "processor": "../processor", "schema": "../schema", "config": "../config",
	"console": "../console", "ops": "../ops", "metrics": "../manager/metrics", "rotatest": "../manager/rotatest", "postgres": "../center/postgres",
	"mysql": "../center/mysql", "sqlite": "../center/sqlite", "anydb": "../center/anydb",
}

// goName is a name such as center.Options.Schema in a code span.
var goName = regexp.MustCompile("`(" + `(\w+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?` + ")[^`\\n]*`")

// A name of Go in the text of a page exists. Blocks are compiled.
func TestInlineNamesExist(t *testing.T) {
	t.Parallel()
	exported := map[string]map[string]bool{}
	for name, folder := range namedPackages {
		exported[name] = exportedNames(t, folder)
	}
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goName.FindAllStringSubmatch(string(text), -1) {
			names, ours := exported[m[2]]
			if !ours {
				continue
			}
			found++
			if !names[m[3]] || m[4] != "" && !names[m[3]+"."+m[4]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d names were found", found)
	}
}

// commandName is a command in a code span, such as rota task show.
var commandName = regexp.MustCompile("`rota ([a-z]+)(?: ([a-z]+))?[^`\\n]*`")

// A command in the text of a page exists.
func TestInlineCommandsExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cmd/rota/*.go")
	if err != nil {
		t.Fatal(err)
	}
	words, groups := map[string]bool{"completion": true, "help": true}, map[string]bool{} // cobra adds the two
	use := regexp.MustCompile(`(group\(&cobra.Command\{\s+)?Use: +"([a-z]+)`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			words[m[2]] = true
			groups[m[2]] = groups[m[2]] || m[1] != ""
		}
	}
	for _, v := range ops.Verbs() {
		for word := range strings.FieldsSeq(v.Name) {
			words[word] = true
		}
	}
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandName.FindAllStringSubmatch(string(text), -1) {
			found++
			if !words[m[1]] || groups[m[1]] && m[2] != "" && !words[m[2]] {
				t.Errorf("%s names a command that does not exist: %s", page, m[0])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}

// exportedNames returns the exported names of a package, with methods and fields as Type.Name.
func exportedNames(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files (%v)", folder, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(names, s)
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method and a point, and nothing for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name + "."
		}
		return true
	})
	return name
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var fields *ast.FieldList
		switch body := s.Type.(type) {
		case *ast.StructType:
			fields = body.Fields
		case *ast.InterfaceType:
			fields = body.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				names[s.Name.Name+"."+n.Name] = true
			}
		}
	}
}
