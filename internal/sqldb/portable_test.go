package sqldb

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ofEngines are the packages and files that may hold the SQL of one engine, and name one.
var ofEngines = []string{
	"center/mysql/", "center/postgres/", "center/sqlite/", // the dialects
	"schema/dialect.go", "schema/mine.go", "internal/sqldb/dialect.go",
	"cmd/rota/internal/sqldealer/", // statements of the user: syntax.go has a row for each engine
	"center/centertest/", "internal/testdb/", "internal/mutants/", "internal/consoletest/", "internal/pgxtest/",
	"internal/wrappertest/", "bench/", "examples/", // tests
}

// particular matches SQL that one engine of today or of tomorrow does not understand, or understands otherwise.
var particular = regexp.MustCompile(`\bFOR (UPDATE|SHARE|NO KEY|KEY SHARE)\b|\bLOCK IN\b|\bSKIP LOCKED\b|\bNOWAIT\b` +
	`|\bINTERVAL ['?\d]|\bON CONFLICT\b|\bON DUPLICATE\b|\bINSERT IGNORE\b|\bREPLACE INTO\b|\bRETURNING\b` +
	`|\bSTRAIGHT_JOIN\b|\b(FORCE|USE) INDEX\b|\bIS (NOT )?DISTINCT\b|<=>|\bJSON_\w+\(|\bjsonb?_\w+\(` +
	`|\b(LEAST|GREATEST|ANY|ARRAY)\(|\bILIKE\b|\bLATERAL\b|\w::(bigint|bool|int|interval|jsonb?|text|timestamp)|'\s*\|\||\|\|\s*'` +
	`|\b(NOW|UTC_TIMESTAMP|clock_timestamp|strftime|pg_(try_)?advisory_\w+|set_config|current_setting)\(|\bCURRENT_TIMESTAMP\b|@@\w` +
	`|\b(UPDATE|DELETE)\b[^;]*\bLIMIT\b|\bAS until\b`)

// What differs between engines is a field of the dialect: then a new engine is one file, and nothing in between has to
// be read for it.
func TestCommonStatementsAreOfNoEngine(t *testing.T) {
	t.Parallel()
	root, files := os.DirFS("../.."), 0
	err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		skipped := slices.ContainsFunc(ofEngines, func(of string) bool { return strings.HasPrefix(path, of) })
		if err != nil || e.IsDir() || skipped || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, found := range particulars(file) {
			t.Errorf("%s: %s belongs into a dialect", set.Position(found.pos), found.text)
		}
		return nil
	})
	if err != nil || files < 200 {
		t.Errorf("the test has read %d files: %v", files, err)
	}
}

type place struct {
	pos  token.Pos
	text string
}

// particulars returns the texts and the names in a file that belong to one engine.
func particulars(file *ast.File) (list []place) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				if word := particular.FindString(text); word != "" {
					list = append(list, place{n.Pos(), word})
				}
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if ok && pkg.Name == "schema" && slices.Contains([]string{"MySQL", "Postgres", "SQLite"}, n.Sel.Name) {
				list = append(list, place{n.Pos(), "schema." + n.Sel.Name})
			}
		}
		return true
	})
	return list
}

func TestParticularsAreFound(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"const a = ` WHERE id = ? FOR UPDATE`":                     "FOR UPDATE",
		"const a = ` ORDER BY q.queue_id FOR SHARE OF q`":          "FOR SHARE",
		"const a = ` LOCK IN SHARE MODE`":                          "LOCK IN",
		"const a = `{now} - INTERVAL '1 second'`":                  "INTERVAL '",
		"const a = `VALUES (?) ON CONFLICT DO NOTHING`":            "ON CONFLICT",
		"const a = `DELETE FROM schedule_event\n WHERE x LIMIT 5`": "DELETE FROM schedule_event\n WHERE x LIMIT",
		"const a = `SELECT task_type || '$' || own_sign`":          "|| '",
		"const a = `cur_server IS NOT DISTINCT FROM ?`":            "IS NOT DISTINCT",
		"const a = `SELECT jsonb_array_elements(?)`":               "jsonb_array_elements(",
		"const a = `SELECT CAST(x AS text), y::bigint`":            "y::bigint",
		"var a = d.Name == schema.MySQL":                           "schema.MySQL",
		"const a = `SELECT 1 FROM a UNION ALL SELECT 2 LIMIT 1`":   "",
		"var a = b || c // FOR UPDATE":                             "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if found := particulars(file); len(found) > 0 {
			got = found[0].text
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}
