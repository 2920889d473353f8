package sqldealer

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

func TestMain(m *testing.M) {
	testdb.EveryEngine()
	goleak.VerifyTestMain(m, goleak.Cleanup(testdb.DropReused))
}

var dialects = []schema.Dialect{schema.Postgres, schema.MySQL, schema.SQLite}

func TestStatement(t *testing.T) {
	for name, test := range map[string]struct {
		in    string
		keys  int
		want  string // with ? for a mark; PostgreSQL's are numbered
		names []string
	}{
		"none":             {in: "SELECT 1", want: "SELECT 1"},
		"each occurrence":  {in: "{{total}} + {{total}}", want: "? + ?", names: []string{"total", "total"}},
		"spaces":           {in: "{{ total }}x", want: "?x", names: []string{"total"}},
		"a cast":           {in: "{{index}}::int", want: "?::int", names: []string{"index"}},
		"keys":             {in: "IN ({{keys}}) = {{server}}", keys: 3, want: "IN (?, ?, ?) = ?", names: []string{"keys", "server"}},
		"one key":          {in: "IN ({{keys}})", keys: 1, want: "IN (?)", names: []string{"keys"}},
		"a column":         {in: "{{row.First_Name}}", want: "?", names: []string{"row.First_Name"}},
		"doubled quote":    {in: "'it''s ?' {{index}}", want: "'it''s ?' ?", names: []string{"index"}},
		"a quoted name":    {in: `"a""?b" {{index}}`, want: `"a""?b" ?`, names: []string{"index"}},
		"a line comment":   {in: "-- {{nothing}} it's\n{{index}}", want: "-- {{nothing}} it's\n?", names: []string{"index"}},
		"a block comment":  {in: "/* {{nothing}} it's */{{index}}", want: "/* {{nothing}} it's */?", names: []string{"index"}},
		"an open comment":  {in: "{{index}} /* it's", want: "? /* it's", names: []string{"index"}},
		"an open string":   {in: "{{index}} 'abc", want: "? 'abc", names: []string{"index"}},
		"braces in string": {in: "'{{1,2},{3,4}}' {{index}}", want: "'{{1,2},{3,4}}' ?", names: []string{"index"}},
		"beyond ASCII":     {in: "'grün' ä {{index}} ü", want: "'grün' ä ? ü", names: []string{"index"}},
	} {
		for _, d := range dialects {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				s, err := parse(test.in, syntaxes[d], total, index, keys, server, row)
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if d == schema.Postgres {
					want = numbered(want, len(test.names)-min(test.keys, 1)+test.keys)
				}
				if got := s.text(test.keys); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if !slices.Equal(s.names, test.names) {
					t.Errorf("names are %q, want %q", s.names, test.names)
				}
			})
		}
	}
}

// numbered replaces the last n marks by $1 to $n; the earlier ones are in literals.
func numbered(text string, n int) string {
	for ; n > 0; n-- {
		i := strings.LastIndexByte(text, '?')
		text = text[:i] + "$" + string(rune('0'+n)) + text[i+1:]
	}
	return text
}

// A text that is a literal for one database is code for another.
func TestLiteralsByDialect(t *testing.T) {
	const bound, refused, ignored = "bound", "refused", "ignored"
	for name, test := range map[string]struct {
		text                    string
		postgres, mysql, sqlite string
	}{
		"string":                   {"'{{index}}'", refused, refused, refused},
		"quoted name":              {`"{{index}}"`, refused, refused, refused},
		"backquoted name":          {"`{{index}}`", bound, refused, refused},
		"backslash before a quote": {`'\'{{index}}'`, bound, refused, bound},
		"the same in E''":          {`E'\'{{index}}'`, refused, refused, bound},
		"a name that ends with e":  {`size'\'{{index}}'`, bound, refused, bound},
		"backslash in backquotes":  {"`\\`{{index}}", bound, bound, bound},
		"dollar quotes":            {"$$ {{index}} $$", refused, bound, bound},
		"tagged dollar quotes":     {"$é$ $$ {{index}} $é$", refused, bound, bound},
		"a dollar in a name":       {"a$$ {{index}}", bound, bound, bound},
		"hash":                     {"# {{index}}", bound, ignored, bound},
		"dashes without a space":   {"1--{{index}}", ignored, bound, ignored},
		"dashes at the end":        {"{{index}} --", bound, bound, bound},
		"nested comment":           {"/* /* */ {{index}} */", ignored, bound, bound},
	} {
		for d, want := range map[schema.Dialect]string{
			schema.Postgres: test.postgres, schema.MySQL: test.mysql, schema.SQLite: test.sqlite,
		} {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				s, err := parse(test.text, syntaxes[d], index)
				got := ignored
				switch {
				case err != nil && strings.Contains(err.Error(), "has {{index}} between quotes"):
					got = refused
				case err != nil:
					t.Fatal(err)
				case s.uses(index):
					got = bound
				}
				if got != want {
					t.Errorf("{{index}} in %s is %s, want %s", test.text, got, want)
				}
			})
		}
	}
}

func TestStatementErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		d    schema.Dialect
		want string
	}{
		"unknown":              {"{{indx}}", schema.SQLite, "has the unknown placeholder {{indx}}: known are {{index}}, {{row.COLUMN}}"},
		"empty":                {"{{}}", schema.SQLite, "has the unknown placeholder {{}}: known are {{index}}, {{row.COLUMN}}"},
		"row without a column": {"{{row.}}", schema.SQLite, "has the unknown placeholder {{row.}}: known are {{index}}, {{row.COLUMN}}"},
		"not closed":           {"a = {{index", schema.SQLite, `has a placeholder without }}: "{{index"`},
		"own mark":             {"a = ?", schema.MySQL, `has the database's own parameter mark "?": use a {{name}} instead`},
		"own mark, SQL":        {"a = ?7", schema.SQLite, `has the database's own parameter mark "?7": use a {{name}} instead`},
		"own mark, PG":         {"a = $12", schema.Postgres, `has the database's own parameter mark "$12": use a {{name}} instead`},
		"PG operator":          {"doc ? 'a' AND a$1 = 2", schema.Postgres, ""},
		"with a comment":       {"-- ?\n1", schema.MySQL, ""},
		"with a question":      {"'?'", schema.MySQL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.text, syntaxes[test.d], index, row)
			if got := errorText(err); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The parser neither panics nor loses a byte.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"'{{index}}'", "$a$ {{ index }}", "/* -- '", "E'\\", "{{index}}{{index", "`\"'#--"} {
		f.Add(seed)
	}
	withoutSpace := func(s string) string { return strings.Join(strings.Fields(s), "") }
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range dialects {
			s, err := parse(text, syntaxes[d], index)
			if err != nil {
				continue
			}
			if back := strings.Join(s.parts, "{{index}}"); withoutSpace(back) != withoutSpace(text) {
				t.Errorf("%s: %q became %q", d, text, back)
			}
		}
	})
}
