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
		"SELECT id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}":                   "CREATE INDEX orders_work ON orders (state, id)",
		"select o.id from shop.orders as o where o.state in ('NEW', 'AGAIN') and o.done_at is null order by o.at desc, o.id limit 5": "CREATE INDEX orders_work ON shop.orders (state, done_at, at DESC, id)",
		"SELECT id FROM orders\nWHERE region = {{queue}}\n  AND state = 'NEW'\nORDER BY region, id\nLIMIT {{limit}} FOR UPDATE":      "CREATE INDEX orders_work ON orders (region, state, id)",
		"SELECT id FROM sales WHERE id > {{cursor}} AND region = {{queue}} ORDER BY id LIMIT {{limit}}":                              "CREATE INDEX sales_work ON sales (region, id)",
		"SELECT id FROM orders FORCE INDEX (orders_work) WHERE state = 'NEW' AND id > {{after}} ORDER BY id LIMIT {{limit}}":         "CREATE INDEX orders_work ON orders (state, id)",
		"SELECT a, b FROM t WHERE state = 'NEW' AND (a > {{after.a}} OR a = {{after.a}} AND (b > 1 OR c)) ORDER BY a, b LIMIT 1":     "CREATE INDEX t_work ON t (state, a, b)",
		"SELECT id FROM orders WHERE state = 'NEW' AND (a = 1 OR b IN (SELECT c FROM d)) ORDER BY id LIMIT {{limit}}":                "",
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
			Execute: anUpdate, Key: []string{"id"},
		})
		cursor := s.dealer(config.SQLDealer{Select: "SELECT id FROM orders WHERE id > {{cursor}} AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true})
		want := func(d *Dealer, want string) {
			t.Helper()
			found, err := d.FindScan(t.Context(), s.DB(), s.Dialect(), selection())
			got := ""
			if found != nil {
				got = found.Finding + " -> " + found.Hint
			}
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		fill(0, LargeTable/10)
		want(d, "") // a small table
		fill(LargeTable/10, LargeTable+10)
		s.exec(map[schema.Dialect]string{schema.Postgres: "ANALYZE orders", schema.MySQL: "ANALYZE TABLE orders", schema.SQLite: "ANALYZE orders"}[s.Dialect()])
		want(d, "each select reads all of orders, which has more than 100000 rows -> CREATE INDEX orders_work ON orders (state, id)")
		want(cursor, "")
		s.exec("CREATE INDEX orders_work ON orders (state, id)")
		want(d, "")
	})
}

// A select of MariaDB that reads the rows before its position again is found, until the statement names the index.
func TestFindScanBeforeThePosition(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.MySQL))
	s.exec("CREATE TABLE jobs (id BIGINT PRIMARY KEY, state VARCHAR(9) NOT NULL, INDEX jobs_work (state, id))", "CREATE TABLE digits (n INTEGER)",
		"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
		fmt.Sprintf(`INSERT INTO jobs SELECT n, CASE WHEN n < 200 THEN 'OLD' ELSE 'NEW' END FROM
			(SELECT a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n AS n FROM digits a, digits b, digits c, digits d, digits e, digits f) x
			WHERE n < %d`, 2*LargeTable), "ANALYZE TABLE jobs")
	for from, want := range map[string]string{
		"jobs": "each select reads the rows of jobs that are before its position again: it does not use all columns of the index jobs_work" +
			" -> write FROM jobs FORCE INDEX (jobs_work)",
		"jobs FORCE INDEX (jobs_work)": "",
	} {
		d := s.dealer(config.SQLDealer{
			Select:  "SELECT id FROM " + from + " WHERE state = 'NEW' AND id > {{after}} AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
			Execute: anUpdate, Key: []string{"id"}, AfterStart: zero,
		})
		found, err := d.FindScan(t.Context(), s.DB(), s.Dialect(), selection())
		got := ""
		if found != nil {
			got = found.Finding + " -> " + found.Hint
		}
		if err != nil || got != want {
			t.Errorf("FROM %s: got %q, %v\nwant %q", from, got, err, want)
		}
	}
}
