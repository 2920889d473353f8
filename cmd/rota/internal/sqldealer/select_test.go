package sqldealer

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestSelectErrors(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		for name, test := range map[string]struct {
			sql  config.SQLDealer
			want string
		}{
			"no key column": {
				config.SQLDealer{Select: "SELECT state, note FROM orders WHERE id = {{index}} LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}},
				`run select: the result has no column "id": it has state, note`,
			},
			"no row column": {
				config.SQLDealer{Select: "SELECT id FROM orders WHERE id = {{index}} LIMIT {{limit}}", ExecuteEach: "UPDATE orders SET note = {{row.note}} WHERE id = {{row.id}}"},
				`run select: the result has no column "note": it has id`,
			},
			"no table": {
				config.SQLDealer{Select: "SELECT id FROM oders WHERE id = {{index}} LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}},
				"run select: ",
			},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := s.dealer(test.sql).Select(t.Context(), selection())
				if got := errorText(err); !strings.HasPrefix(got, test.want) {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			})
		}
	})
}

// SQLite's driver changes the text of times, so that an UPDATE would find no row.
func TestSQLiteTimesAreRefused(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.exec("CREATE TABLE log (at DATETIME PRIMARY KEY, done INTEGER)", "INSERT INTO log VALUES ('2026-01-01 00:00:00', 0)")
	c := config.SQLDealer{
		Select:  "SELECT at FROM log WHERE done = 0 AND {{index}} = 1 LIMIT {{limit}}",
		Execute: "UPDATE log SET done = 1 WHERE at IN ({{keys}})",
		Key:     []string{"at"},
	}
	_, err := s.dealer(c).Select(t.Context(), selection())
	want := `run select: column "at" of type DATETIME does not keep its stored text: select CAST(at AS TEXT) AS at`
	if got := errorText(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.Select = "SELECT CAST(at AS TEXT) AS at FROM log WHERE done = 0 AND {{index}} = 1 LIMIT {{limit}}"
	s.settle(s.dealer(c))
	s.want("SELECT done FROM log", "1")
}

func BenchmarkSelect(b *testing.B) {
	s := openShop(b, testdb.URL(b, testdb.SQLite))
	s.exec("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL)",
		`INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, 'item ' || i, i FROM n`)
	d := s.dealer(config.SQLDealer{
		Select:  "SELECT name, id, price FROM items WHERE {{index}} = 1 LIMIT {{limit}}",
		Execute: "UPDATE items SET price = 0 WHERE id IN ({{keys}})",
		Key:     []string{"id"},
	})
	all := selection()
	all.Limit = 500
	b.ReportAllocs()
	for b.Loop() {
		if rows, err := d.Select(b.Context(), all); err != nil || len(rows) != 500 {
			b.Fatalf("%d rows, %v", len(rows), err)
		}
	}
}
