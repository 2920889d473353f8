package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/ops/verbs"
)

// namedPackages are the packages whose names the pages write before a point, with their folders.
var namedPackages = map[string]string{
	"center": "../center", "manager": "../manager", "processor": "../processor", "schema": "../schema", "config": "../config",
	"console": "../console", "ops": "../ops", "verbs": "../ops/verbs", "doctor": "../ops/doctor", "metrics": "../manager/metrics", "rotatest": "../manager/rotatest", "postgres": "../center/postgres",
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
	words, groups := map[string]bool{"completion": true, "help": true}, map[string]bool{} // cobra adds the two
	use := regexp.MustCompile(`(Group\(&cobra.Command\{\s+)?Use: +"([a-z]+)`)
	for _, m := range use.FindAllStringSubmatch(sources(t, "cmd/rota", ".go"), -1) {
		words[m[2]] = true
		groups[m[2]] = groups[m[2]] || m[1] != ""
	}
	for _, v := range verbs.All() {
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

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	codeSpan  = regexp.MustCompile("`[^`\\n]+`")
	snakeName = regexp.MustCompile(`[a-z0-9]+(?:_[a-z0-9]+)+`)
	flagName  = regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z0-9-]*)`)
	literal   = regexp.MustCompile(`"([a-z][a-z0-9_-]*)[",]`)
)

// notOurs are names in the pages that belong to other programs.
var notOurs = []string{"group_replication_consistency", "rpl_semi_sync_source_timeout", "close_fds", "orders_work", "include", "sign_out"}

// A setting, column, metric or flag in the text of a page occurs in the code: pages follow when one gets another name.
func TestInlineSettingsAndFlagsExist(t *testing.T) {
	t.Parallel()
	names, flags := map[string]bool{}, map[string]bool{}
	for _, name := range snakeName.FindAllString(sources(t, ".", ".go", ".sql"), -1) {
		names[name] = true
	}
	for _, folder := range []string{"cmd/rota", "ops", "config"} {
		for _, m := range literal.FindAllStringSubmatch(sources(t, folder, ".go"), -1) {
			flags[strings.ReplaceAll(m[1], "_", "-")] = true // config names its flags like the keys of a file
		}
	}
	foundNames, foundFlags := 0, 0
	for _, page := range append(pages(t), "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range codeSpan.FindAllString(codeBlock.ReplaceAllString(string(text), ""), -1) {
			for _, name := range snakeName.FindAllString(span, -1) {
				foundNames++
				if !names[name] && !slices.Contains(notOurs, name) {
					t.Errorf("%s names %s in %s, which the code does not have", page, name, span)
				}
			}
			for _, m := range flagName.FindAllStringSubmatch(span, -1) {
				foundFlags++
				if !flags[m[1]] && !slices.Contains(notOurs, m[1]) {
					t.Errorf("%s names the flag --%s in %s, which no command has", page, m[1], span)
				}
			}
		}
	}
	if foundNames < 500 || foundFlags < 30 {
		t.Errorf("only %d names and %d flags were found", foundNames, foundFlags)
	}
}

// sources returns the text of the files in a folder of the repository that have one of the endings, without tests.
func sources(t *testing.T, folder string, endings ...string) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("..")
	err := fs.WalkDir(root, folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go") || !slices.Contains(endings, filepath.Ext(path)):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
