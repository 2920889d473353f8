package sqldealer

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

func TestServingIndex(t *testing.T) {
	for source, want := range map[string]string{
		"SELECT id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}":                   "CREATE INDEX ON orders (state, id)",
		"select o.id from shop.orders as o where o.state in ('NEW', 'AGAIN') and o.done_at is null order by o.at desc, o.id limit 5": "CREATE INDEX ON shop.orders (state, done_at, at DESC, id)",
		"SELECT id FROM orders\nWHERE region = {{queue}}\n  AND state = 'NEW'\nORDER BY region, id\nLIMIT {{limit}} FOR UPDATE":      "CREATE INDEX ON orders (region, state, id)",
		"SELECT id FROM sales WHERE id > {{cursor}} AND region = {{queue}} ORDER BY id LIMIT {{limit}}":                              "CREATE INDEX ON sales (region, id)",
		"SELECT id FROM orders WHERE mod(id, {{total}}) = {{index}} LIMIT {{limit}}":                                                 "", // no column to compare
		"SELECT id FROM orders WHERE state = 'NEW' OR at = 1 LIMIT {{limit}}":                                                        "",
		"SELECT o.id FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.state = 'NEW' LIMIT {{limit}}":                          "",
		"SELECT id FROM orders WHERE state = 'NEW' ORDER BY lower(name) LIMIT {{limit}}":                                             "",
		"WITH x AS (SELECT 1) SELECT id FROM x WHERE id = 1":                                                                         "",
	} {
		got := ""
		if x, ok := findServingIndex(source); ok {
			got = x.String()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", source, got, want)
		}
	}
}

// A select that scans a large table is found, on each database, until the table has the index.
func TestFindScan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)", "CREATE TABLE digits (n INTEGER)",
			"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
		fill := func(from, to int) {
			s.exec(fmt.Sprintf(`INSERT INTO orders SELECT a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n, 'SETTLED'
				FROM digits a, digits b, digits c, digits d, digits e, digits f
				WHERE a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n BETWEEN %d AND %d`, from, to-1))
		}
		d := s.dealer(config.SQLDealer{
			Select:  "SELECT id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}",
			Execute: anUpdate, Key: "id",
		})
		cursor := s.dealer(config.SQLDealer{Select: "SELECT id FROM orders WHERE id > {{cursor}} AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}", Execute: anUpdate, Key: "id", CursorStart: zero, CommitsInOrder: true})
		want := func(d *Dealer, want string) {
			t.Helper()
			found, err := d.FindScan(t.Context(), s.DB(), s.Dialect(), selection())
			got := ""
			if found != nil {
				got = found.Table + ": " + found.Index
			}
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		fill(0, LargeTable/10)
		want(d, "") // a small table
		fill(LargeTable/10, LargeTable+10)
		s.exec(map[schema.Dialect]string{schema.Postgres: "ANALYZE orders", schema.MySQL: "ANALYZE TABLE orders", schema.SQLite: "ANALYZE orders"}[s.Dialect()])
		want(d, "orders: CREATE INDEX ON orders (state, id)")
		want(cursor, "")
		s.exec("CREATE INDEX orders_work ON orders (state, id)")
		want(d, "")
	})
}
