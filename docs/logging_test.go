package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logCall is a call that logs fields, or adds them to a logger.
type logCall struct {
	place string
	names []string
	fault string // "" for none
}

// TestLogFields compares the names of the fields in logging.md with those that the code logs.
func TestLogFields(t *testing.T) {
	page, err := os.ReadFile("logging.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // whether the code uses the name
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = false
	}
	for _, c := range readLogCalls(t) {
		if c.fault != "" {
			t.Errorf("%s: %s", c.place, c.fault)
		}
		for _, name := range c.names {
			if _, ok := listed[name]; !ok {
				t.Errorf("%s logs the field %q, which logging.md does not list", c.place, name)
			}
			listed[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !listed[name] {
			t.Errorf("logging.md lists the field %q, which no code logs", name)
		}
	}
}

// readLogCalls reads the log calls of the module, without those of tests, benchmarks and examples.
func readLogCalls(t *testing.T) (calls []logCall) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"bench", "examples", "logtest", ".git"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if c := logCallOf(n); c.names != nil || c.fault != "" {
				c.place = files.Position(n.Pos()).String()
				calls = append(calls, c)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// logCallOf returns the fields that a node names, as slog.String("queue", id), WithField("queue", id) and
// logrus.Fields{"queue": id} do. Fields that these forms do not name, such as those of log.InfoContext, are a fault.
func logCallOf(n ast.Node) (c logCall) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		switch selection(n.Type) {
		case "logrus.Fields":
			for _, e := range n.Elts {
				c.add(e.(*ast.KeyValueExpr).Key)
			}
		case "slog.Attr":
			c.fault = "slog.Attr{} hides the field's name: use slog.String and the like"
		}
	case *ast.CallExpr:
		name := selection(n.Fun)
		_, method, _ := strings.Cut(name, ".")
		switch {
		case slices.Contains(attrFuncs, name):
			c.add(n.Args[0])
		case method == "WithField":
			c.add(n.Args[0])
		case method == "WithError":
			c.names = []string{"error"}
		case slices.Contains(looseMethods, method):
			c.fault = method + " takes loose fields: use LogAttrs"
		case slices.Contains(levelMethods, method) && len(n.Args) > 1 && isLiteral(n.Args[0]):
			c.fault = method + " takes loose fields: use LogAttrs"
		case method == "With" && slices.ContainsFunc(n.Args, isLiteral):
			c.fault = "With takes loose fields: pass slog.String and the like"
		}
	}
	return c
}

var attrFuncs = []string{
	"slog.Any", "slog.Bool", "slog.Duration", "slog.Float64", "slog.Group", "slog.GroupAttrs", "slog.Int", "slog.Int64", "slog.String",
	"slog.Time", "slog.Uint64",
}

// looseMethods and levelMethods are the methods of slog.Logger that take fields of any form. Other types have methods
// with the names of levelMethods.
var (
	looseMethods = []string{"DebugContext", "InfoContext", "WarnContext", "ErrorContext"}
	levelMethods = []string{"Debug", "Info", "Warn", "Error"}
)

// add adds the name of a field, which must be a literal.
func (c *logCall) add(name ast.Expr) {
	if !isLiteral(name) {
		c.fault = "the name of the field is no literal"
		return
	}
	text, _ := strconv.Unquote(name.(*ast.BasicLit).Value) // the parser has checked it
	c.names = append(c.names, text)
}

func isLiteral(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING
}

// selection returns "x.f" for a selector of f in anything that ends in x, and "" for other expressions.
func selection(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return x.Name + "." + s.Sel.Name
	case *ast.SelectorExpr:
		return x.Sel.Name + "." + s.Sel.Name
	}
	return "." + s.Sel.Name
}

func TestLogCallsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		`slog.String("queue", id)`:                      "queue",
		`slog.Any("error", err)`:                        "error",
		`b.log.WithField("queue", id).Info("x")`:        "",
		`b.log.WithField("queue", id)`:                  "queue",
		`f(x).WithError(err)`:                           "error",
		`logrus.Fields{"queue": id, "run": r}`:          "queue run",
		`logrus.Fields{name: id}`:                       "fault",
		`slog.String(name, id)`:                         "fault",
		`slog.Attr{Key: "queue"}`:                       "fault",
		`b.log.InfoContext(ctx, "x", "queue", id)`:      "fault",
		`b.log.Info("x", "queue", id)`:                  "fault",
		`log.With("queue", id)`:                         "fault",
		`log.With(slog.String("queue", id))`:            "",
		`s.log.LogAttrs(ctx, slog.LevelInfo, "joined")`: "",
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		c := logCallOf(e)
		got := strings.Join(c.names, " ")
		if c.fault != "" {
			got = "fault"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
