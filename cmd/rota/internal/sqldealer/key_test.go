package sqldealer

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// A key as text identifies the same row.
func TestKeyText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for want, values := range map[string][]any{
		"17": {int64(17)}, "a b": {"a b"}, `\x00ff`: {[]byte{0, 255}}, `\s`: {""}, `\s\x00`: {`\x00`}, "1.5": {1.5},
		"2026-01-02T03:04:05.000006Z": {at.In(time.FixedZone("", 3600))}, "a/b%": {"a/b%"},
		"a/b%2Fc": {"a", "b/c"}, "a%2Fb/c": {"a/b", "c"}, "a%252Fb/c": {"a%2Fb", "c"}, `\s/\s/7`: {"", "", int64(7)}, `\x2f/\s\x2f`: {[]byte("/"), `\x2f`},
	} {
		if got := encodeKey(values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

// The text of a key gives the same columns again, so that no two keys have the same text.
func FuzzKeyText(f *testing.F) {
	f.Add("a", "b/c")
	f.Add("a%", "2F/")
	f.Add(`\`, "")
	f.Fuzz(func(t *testing.T, a, b string) {
		text := encodeKey([]any{a, b})
		var back []any
		for _, column := range splitKey(text, 2) {
			back = append(back, decode(column, syntax{}))
		}
		if want := []any{a, b}; !slices.Equal(back, want) {
			t.Errorf("%q, %q became %q, and then %q", a, b, text, back)
		}
	})
}

// stock is a table whose key has two columns, with regions that contain what a text of a key escapes.
var stock = []string{
	"CREATE TABLE stock (region VARCHAR(9) NOT NULL, id BIGINT NOT NULL, times INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (region, id))",
	"INSERT INTO stock (region, id) VALUES ('a', 1), ('a', 10), ('a', 9), ('b/', 1), ('b/', 2), ('b', 2), ('''c', 1)",
}

// behindStock returns a select of the stock behind {{after}} or {{cursor}}. MySQL has no index for row values.
func behindStock(d schema.Dialect, placeholder string) string {
	where := "(region, id) > ({{after.region}}, {{after.id}})"
	if d == schema.MySQL {
		where = "(" + behind(after, []string{"region", "id"}) + ")"
	}
	return "SELECT region, id FROM stock WHERE {{index}} = 1 AND " + strings.ReplaceAll(where, after, placeholder) + " ORDER BY region, id LIMIT {{limit}}"
}

// Rows whose key has two columns are executed once each, in all forms of select and execute.
func TestKeyOfTwoColumns(t *testing.T) {
	const open = "SELECT id, region FROM stock WHERE times = 0 AND {{index}} = 1 ORDER BY id, region LIMIT {{limit}}"
	batch := "UPDATE stock SET times = times + 1 WHERE (region, id) IN ({{keys}})"
	each := "UPDATE stock SET times = times + 1 WHERE region = {{row.region}} AND id = {{row.id}}"
	key, start := []string{"region", "id"}, []string{"!", "0"}
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(stock...)
		for name, c := range map[string]config.SQLDealer{
			"keys":            {Select: open, Execute: batch, Key: key},
			"row by row":      {Select: open, ExecuteEach: each, Key: key},
			"after":           {Select: behindStock(s.Dialect().Family(), after), Execute: batch, Key: key, AfterStart: start},
			"cursor":          {Select: behindStock(s.Dialect().Family(), cursor), Execute: batch, Key: key, CursorStart: start, CommitsInOrder: true},
			"the other order": {Select: open, ExecuteEach: each, Key: []string{"ID", "REGION"}},
		} {
			t.Run(name, func(t *testing.T) {
				s := shop{t, s.Center}
				d := s.dealer(c)
				if err := d.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.drain(d, 9); err != nil {
					t.Fatal(err)
				}
				s.want("SELECT COUNT(*) FROM stock WHERE times <> 1", "0")
				s.exec("UPDATE stock SET times = 0")
			})
		}
	})
}

// The statements find rows by an index on the columns of the key, on each database.
func TestKeyOfTwoColumnsUsesItsIndex(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(stock...)
		for range 10 { // 7,000 rows
			s.exec("INSERT INTO stock (region, id) SELECT region, id + (SELECT MAX(id) FROM stock) FROM stock")
		}
		s.exec(map[schema.Dialect]string{schema.Postgres: "ANALYZE stock", schema.MySQL: "ANALYZE TABLE stock", schema.SQLite: "ANALYZE stock"}[s.Dialect().Family()])
		d := s.dealer(config.SQLDealer{
			Select: behindStock(s.Dialect().Family(), after), Key: []string{"region", "id"}, AfterStart: []string{"!", "0"},
			Execute: "UPDATE stock SET times = times + 1 WHERE (region, id) IN ({{keys}})",
		})
		rows := s.selectRows(d)
		of := selection()
		of.After = encodeKey([]any{"b", int64(3000)})
		for name, statement := range map[string]struct {
			text string
			args []any
		}{
			"select":  {d.sel.text(0), d.sel.values(args{Selection: &of, shape: &d.shape}.value)},
			"execute": {d.exec.text(len(rows)), d.exec.args(s.batch(7), rows, nil)},
		} {
			plan := s.plan(statement.text, statement.args)
			if len(d.syntax.scanned(strings.ReplaceAll(plan, "SCAN 3 CONSTANT ROWS", ""))) > 0 {
				t.Errorf("%s reads all rows:\n%s", name, plan)
			}
		}
	})
}

// plan returns how the database executes a statement.
func (s shop) plan(text string, args []any) (plan string) {
	s.Helper()
	err := inRolledBackTx(s.Context(), s.DB(), func(ctx context.Context, tx *sql.Tx) (err error) {
		plan, err = syntaxes[s.Dialect()].planOf(ctx, tx, text, args)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return plan
}
