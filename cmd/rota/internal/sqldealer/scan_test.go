package sqldealer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// A plan has the alias of a table and not its schema. The select has both.
func TestTableOf(t *testing.T) {
	const plain = "SELECT id FROM orders WHERE state = 'NEW' ORDER BY id LIMIT {{limit}}"
	const joined = "SELECT o.id FROM shop.orders AS o\nJOIN `lines` l ON l.order_id = o.id, (SELECT 1 FROM \"Days\") d;"
	for _, test := range []struct{ source, name, want string }{
		{plain, "orders", "orders"},
		{plain, "orders_2026", "orders_2026"}, // a partition, or the table of a view
		{joined, "o", "shop.orders"},
		{joined, "orders", "shop.orders"},
		{joined, "l", "`lines`"},
		{joined, "Days", `"Days"`},
		{"SELECT id FROM", "id", "id"},
	} {
		if got := tableOf(test.source, test.name); got != test.want {
			t.Errorf("%s in %s: got %s, want %s", test.name, test.source, got, test.want)
		}
	}
}

// A select that scans a large table is found, on each database, until the table has the index.
func TestFindScan(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)", "CREATE TABLE digits (n INTEGER)",
			"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
		fill := func(from, to int) {
			s.exec(fmt.Sprintf(`INSERT INTO orders SELECT a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n, 'SETTLED'
				FROM digits a, digits b, digits c, digits d, digits e, digits f
				WHERE a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n BETWEEN %d AND %d`, from, to-1))
		}
		d := s.dealer(config.SQLDealer{
			Select:  "SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}",
			Execute: anUpdate, Key: []string{"id"},
		})
		cursor := s.dealer(config.SQLDealer{Select: "SELECT id FROM orders WHERE id > {{cursor}} AND {{mine id}} ORDER BY id LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true})
		aliased := s.dealer(config.SQLDealer{
			Select:  "SELECT o.id FROM orders AS o JOIN digits ON n = 1 WHERE o.state = 'NEW' AND mod(o.id, {{total}}) = {{index}} ORDER BY o.id LIMIT {{limit}}",
			Execute: anUpdate, Key: []string{"id"},
		})
		with := s.dealer(config.SQLDealer{ // the table of WITH is unknown outside of the select
			Select:  "WITH RECURSIVE x AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM x WHERE id < 3) SELECT id FROM x WHERE {{mine id}} ORDER BY id LIMIT {{limit}}",
			Execute: anUpdate, Key: []string{"id"},
		})
		want := func(d *Dealer, want string) {
			t.Helper()
			found, err := d.FindScan(t.Context(), selection())
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
		s.exec(map[schema.Dialect]string{schema.Postgres: "ANALYZE orders", schema.MySQL: "ANALYZE TABLE orders", schema.SQLite: "ANALYZE orders"}[s.Dialect().Family()])
		const scan = "each select may read all of orders, which has more than 100000 rows, as no index serves it" +
			" -> create an index on what the select compares with a value, "
		part := ""
		if s.Dialect() == schema.Postgres {
			part = "then on (COALESCE(ABS(mod(CAST(id AS bigint), 2)), 0)), which {{mine id}} compares for 2 queues, "
		}
		want(d, scan+part+"then on what it sorts by; if there is one, ANALYZE the table")
		want(aliased, scan+"then on what it sorts by; if there is one, ANALYZE the table")
		want(cursor, "")
		want(with, "")
		s.exec("CREATE INDEX orders_work ON orders (state, id)")
		want(d, "")
		want(aliased, "")
	})
}

// On PostgreSQL, the index that the hint names finds the rows of one queue although the number of queues is bound; while
// many rows wait, an index without the division does not serve the select.
func TestIndexOfTheDivision(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	s.exec("CREATE TABLE orders (id bigint PRIMARY KEY, region text, state text NOT NULL)",
		fmt.Sprintf(`INSERT INTO orders SELECT n, 'r' || n %% 1000, 'NEW' FROM generate_series(1, %d) n`, 2*LargeTable),
		fmt.Sprintf(`INSERT INTO orders SELECT n, 'r' || n %% 1000, 'OLD' FROM generate_series(%d, %d) n`, 2*LargeTable+1, 4*LargeTable),
		"CREATE INDEX orders_state ON orders (state, id)", "ANALYZE orders")
	for mine, expression := range map[string]string{
		"{{mine id}}": s.Dialect().MineIndex("id", 16), "{{mine_hash region}}": s.Dialect().MineHashIndex("region", 16),
	} {
		d := s.dealer(config.SQLDealer{
			Select:  "SELECT id FROM orders WHERE state = 'NEW' AND " + mine + " ORDER BY id LIMIT {{limit}}",
			Execute: anUpdate, Key: []string{"id"},
		})
		of := processor.Selection{Queue: processor.Queue{ID: "3", Index: 3}, Total: 16, Limit: 1000}
		if found, err := d.FindScan(t.Context(), of); err != nil || found == nil || !strings.Contains(found.Hint, "("+expression+")") {
			t.Fatalf("%s: found %+v, %v, want a hint with %s", mine, found, err, expression)
		}
		s.exec("CREATE INDEX orders_work ON orders (state, ("+expression+"), id)", "ANALYZE orders")
		if found, err := d.FindScan(t.Context(), of); err != nil || found != nil {
			t.Errorf("%s: found %+v, %v with the index, want nothing", mine, found, err)
		}
		s.exec("DROP INDEX orders_work")
	}
}

// A select of MariaDB that reads the rows before its position again is found, until the statement names the index. MySQL
// reads the range of the primary key.
func TestFindScanBeforeThePosition(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.MariaDB))
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
		found, err := d.FindScan(t.Context(), selection())
		got := ""
		if found != nil {
			got = found.Finding + " -> " + found.Hint
		}
		if err != nil || got != want {
			t.Errorf("FROM %s: got %q, %v\nwant %q", from, got, err, want)
		}
	}
}
