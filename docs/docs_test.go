// Package docs_test compares the pages of this folder with the code.
package docs_test

import (
	"flag"
	"fmt"
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

// update makes the tests rewrite what they compare: TestWhereNamesThePackages and TestEngineTables.
var update = flag.Bool("update", false, `rewrite the "Where" lines of the rules and the tables of engines.md`)

// protocol is the pages with the rules: the core, the options, runs.
var protocol = []string{"protocol.md", "protocol-options.md", "protocol-runs.md"}

// The head of protocol.md describes these forms for the authors of citations.
const (
	codePattern  = `[PLSHNFXR](?:[12][0-9]|[1-9])`
	codesPattern = codePattern + `(?:,? ` + codePattern + `)*`
)

var (
	code      = regexp.MustCompile(codePattern)
	heading   = regexp.MustCompile(`^### (` + codePattern + `) \S`)
	inText    = regexp.MustCompile(`\((?:rules? )?(` + codesPattern + `)\)|\b[Rr]ules? (` + codesPattern + `)\b`)
	leadsText = regexp.MustCompile(`^(` + codesPattern + `):`)
	leadsName = regexp.MustCompile(`^(` + codesPattern + `)[: ]`)
)

// rule is a rule as its page defines it.
type rule struct {
	code  string
	page  string
	where string // its line "Where: ...", with the names of packages
}

// readRules reads the rules, in the order of the pages.
func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	for _, page := range protocol {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if m := heading.FindStringSubmatch(line); m != nil {
				rules = append(rules, rule{code: m[1], page: page})
			}
			if strings.HasPrefix(line, "Where:") && len(rules) > 0 {
				rules[len(rules)-1].where = line
			}
		}
	}
	return rules
}

func definedCodes(t *testing.T) map[string]bool {
	t.Helper()
	defined := map[string]bool{}
	for _, r := range readRules(t) {
		defined[r.code] = true
	}
	return defined
}

// origin is the kind of a file that cites rules.
type origin int

const (
	fromCode  origin = iota // carries a rule out
	fromTest                // checks that a rule holds
	fromOther               // tools of the tests, and the benchmarks, which are a module of their own
)

// citation is a place in a Go file that cites a rule.
type citation struct {
	code   string
	place  string // file:line
	folder string
	origin origin
}

// testSuites are packages of tests that are not in files named _test.go.
var testSuites = []string{"center/centertest", "internal/plan/plantest"}

func originOf(path string) origin {
	under := func(folder string) bool { return strings.HasPrefix(path, folder+"/") }
	switch {
	case under("bench"), under("docs"), under("internal/mutants"), under("internal/testdb"):
		return fromOther
	case strings.HasSuffix(path, "_test.go"), slices.ContainsFunc(testSuites, under):
		return fromTest
	case under("internal/faults"):
		return fromOther
	}
	return fromCode
}

// readCitations reads what all Go files of the repository cite.
func readCitations(t *testing.T) (list []citation) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		cited, err := citationsOf(path, text)
		list = append(list, cited...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// citationsOf finds the citations in the comments of a file and, unless it is ordinary code, in its strings: there they are
// the names of tests and of mutants.
func citationsOf(path string, text []byte) (list []citation, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	kind := originOf(path)
	add := func(at token.Pos, text string, leads *regexp.Regexp) {
		for _, c := range codesIn(text, leads) {
			place := fmt.Sprintf("%s:%d", path, files.Position(at).Line)
			list = append(list, citation{c, place, filepath.ToSlash(filepath.Dir(path)), kind})
		}
	}
	for _, group := range file.Comments {
		add(group.Pos(), strings.ReplaceAll(group.Text(), "\n", " "), leadsText)
	}
	if kind == fromCode {
		return list, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				add(lit.Pos(), name, leadsName)
			}
		}
		return true
	})
	return list, nil
}

// codesIn returns the codes that a comment or a name cites.
func codesIn(text string, leads *regexp.Regexp) (codes []string) {
	for _, m := range slices.Concat(leads.FindAllString(text, 1), inText.FindAllString(text, -1)) {
		codes = append(codes, code.FindAllString(m, -1)...)
	}
	return codes
}

func TestCitationForms(t *testing.T) {
	for text, want := range map[string]string{
		"plans under the lock row (L1).":               "L1",
		"a queue that comes back (N2, H6) is another.": "N2 H6",
		"both halves (R8 F4)":                          "R8 F4",
		"each is due once a day (rule R3).":            "R3",
		"checkRemoving checks rule N2.":                "N2",
		"S5: the larger of the two clocks counts.":     "S5",
		"H2, L6: the requester becomes the owner (H3)": "H2 L6 H3",
		"R2 histories: a trigger made again":           "",
		"the F1 key":                                   "",
		"H2 is a database of Java":                     "",
		"the P99 (P99) of 20 moves":                    "",
		"text in UTF8 (SQLSTATE 42P01)":                "",
		"(S7a), (XR2), (R0), (T5)":                     "",
	} {
		if got := strings.Join(codesIn(text, leadsText), " "); got != want {
			t.Errorf("comment %q cites %q, want %q", text, got, want)
		}
	}
	if got := codesIn("R2 R4 histories: a trigger made again", leadsName); !slices.Equal(got, []string{"R2", "R4"}) {
		t.Errorf("a name cites %q", got)
	}
}

func TestEachRuleIsDefinedOnce(t *testing.T) {
	rules := readRules(t)
	if len(rules) == 0 {
		t.Fatalf("%v define no rule", protocol)
	}
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.code] {
			t.Errorf("%v define %s twice", protocol, r.code)
		}
		seen[r.code] = true
	}
}

func TestCitedRulesAreDefined(t *testing.T) {
	defined := definedCodes(t)
	for _, c := range readCitations(t) {
		if !defined[c.code] {
			t.Errorf("%s cites %s, which none of %v defines", c.place, c.code, protocol)
		}
	}
}

func TestPagesCiteDefinedRules(t *testing.T) {
	defined := definedCodes(t)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range codesIn(string(text), leadsText) {
			if !defined[c] {
				t.Errorf("%s cites %s, which none of %v defines", page, c, protocol)
			}
		}
	}
}

func TestDefinedRulesAreCited(t *testing.T) {
	cited := map[origin]map[string]bool{fromCode: {}, fromTest: {}, fromOther: {}}
	for _, c := range readCitations(t) {
		cited[c.origin][c.code] = true
	}
	for _, r := range readRules(t) {
		if !cited[fromCode][r.code] {
			t.Errorf("no code cites %s: cite it in the comment of what carries it out", r.code)
		}
		if !cited[fromTest][r.code] {
			t.Errorf("no test cites %s: cite it in the comment or the name of the test that checks it", r.code)
		}
	}
}

func TestWhereNamesThePackages(t *testing.T) {
	folders := map[string]map[string]bool{}
	for _, c := range readCitations(t) {
		if c.origin != fromCode {
			continue
		}
		if folders[c.code] == nil {
			folders[c.code] = map[string]bool{}
		}
		folders[c.code][c.folder] = true
	}
	for _, r := range readRules(t) {
		want := whereLine(slices.Sorted(maps.Keys(folders[r.code])))
		if r.where == want {
			continue
		}
		if !*update || r.where == "" {
			t.Errorf("%s has %q, want %q (go test ./docs -update writes it)", r.code, r.where, want)
			continue
		}
		if err := r.replaceWhere(want); err != nil {
			t.Fatal(err)
		}
	}
}

func whereLine(folders []string) string {
	return "Where: `" + strings.Join(folders, "`, `") + "`."
}

// replaceWhere changes the Where line behind the heading of a rule, on its page.
func (r rule) replaceWhere(line string) error {
	text, err := os.ReadFile(r.page)
	if err != nil {
		return err
	}
	before, after, _ := strings.Cut(string(text), "### "+r.code+" ")
	after = strings.Replace(after, r.where, line, 1)
	return os.WriteFile(r.page, []byte(before+"### "+r.code+" "+after), 0o600)
}
