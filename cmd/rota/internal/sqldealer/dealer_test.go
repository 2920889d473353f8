package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

const owner = "web1:4711:0000abcd"

// shop is a database with a roster in which owner owns queue "1" of two.
type shop struct {
	testing.TB
	*center.Center
}

func openShop(t testing.TB, url string) shop {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate, OwnSign: "TEST"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := shop{t, c}
	if _, err := c.Tasks().Define(t.Context(), "settle", center.Settings{Queues: 2}); err != nil {
		t.Fatal(err)
	}
	s.exec("UPDATE schedule_queue SET cur_server = '" + owner + "', epoch = 7 WHERE queue_id = '1'")
	return s
}

func (s shop) exec(statements ...string) {
	s.Helper()
	for _, statement := range statements {
		if _, err := s.DB().ExecContext(s.Context(), statement); err != nil {
			s.Fatalf("%s: %v", statement, err)
		}
	}
}

// want compares the result of a query, one line per row.
func (s shop) want(query string, want ...string) {
	s.Helper()
	rows, err := s.DB().QueryContext(s.Context(), query)
	if err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var got []string
	columns, err := rows.Columns()
	if err != nil {
		s.Fatal(err)
	}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			s.Fatal(err)
		}
		line := make([]string, len(cells))
		for i, cell := range cells {
			line[i] = cell.String
		}
		got = append(got, strings.Join(line, " "))
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s:\ngot  %q\nwant %q", query, got, want)
	}
}

func (s shop) dealer(c config.SQLDealer) *Dealer {
	s.Helper()
	return s.dealerOf(center.ModeContinuous, c)
}

func (s shop) dealerOf(mode string, c config.SQLDealer) *Dealer {
	s.Helper()
	d, err := New(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Mode: mode}, SQL: c}, s.Dialect())
	if err != nil {
		s.Fatal(err)
	}
	d.Use(s.DB())
	return d
}

// selection returns a selection of the queue that owner owns.
func selection() processor.Selection {
	return processor.Selection{
		TaskType: "settle", OwnSign: "TEST", Parameter: "p'1", Total: 2, Limit: 3,
		Queue: processor.Queue{ID: "1", Index: 1, Parameter: `q'"\; --`, Epoch: 7},
	}
}

func (s shop) selectRows(d *Dealer) []Row {
	s.Helper()
	rows, err := d.Select(s.Context(), selection())
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

func (s shop) batch(epoch int64) context.Context {
	return s.Bind(s.Context(), center.Batch{Server: owner, TaskType: "settle", Queues: []center.QueueEpoch{{ID: "1", Epoch: epoch}}})
}

func (s shop) settle(d *Dealer) {
	s.Helper()
	if err := d.Execute(s.batch(7), s.selectRows(d)); err != nil {
		s.Fatal(err)
	}
}

var orders = []string{
	"CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL, by_server VARCHAR(50), note VARCHAR(50), times INTEGER NOT NULL DEFAULT 0)",
	"INSERT INTO orders (id, state) VALUES (1, 'NEW'), (2, 'NEW'), (3, 'NEW'), (4, 'NEW'), (5, 'OLD'), (7, 'NEW'), (9, 'NEW')",
}

var settleOrders = config.SQLDealer{
	Select: "SELECT state, id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}",
	Execute: `UPDATE orders SET state = 'SETTLED', by_server = {{server}}, times = times + 1,
		note = {{queue}} WHERE state = 'NEW' AND id IN ({{keys}})`,
	Key: "ID",
}

func TestExecute(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		d := s.dealer(settleOrders)
		rows := s.selectRows(d)
		if len(rows) != 3 {
			t.Fatalf("%d rows, want the limit of 3", len(rows))
		}
		if err := d.Execute(s.batch(7), append(rows, rows[0])); err != nil { // a repeated key is harmless
			t.Fatal(err)
		}
		s.settle(d)
		s.want("SELECT id, state, by_server, note, times FROM orders ORDER BY id",
			"1 SETTLED "+owner+" 1 1", "2 NEW   0", "3 SETTLED "+owner+" 1 1", "4 NEW   0", "5 OLD   0",
			"7 SETTLED "+owner+" 1 1", "9 SETTLED "+owner+" 1 1")
		if rows := s.selectRows(d); len(rows) != 0 {
			t.Errorf("%d rows are left", len(rows))
		}
	})
}

// The capabilities follow from the statements.
func TestCapabilities(t *testing.T) {
	plain := config.SQLDealer{Select: aSelect, ExecuteEach: "SELECT {{row.id}}"}
	withKey := config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: "id"}
	withCursor := config.SQLDealer{Select: aCursor, Execute: anUpdate, Key: "id", CursorStart: zero, CommitsInOrder: true}
	for name, c := range map[string]struct {
		sql             config.SQLDealer
		keyed, cursored bool
	}{"plain": {plain, false, false}, "key": {withKey, true, false}, "cursor": {withCursor, true, true}} {
		d, err := New(config.Task{Name: "settle", Settings: center.Settings{Queues: 2}, SQL: c.sql}, schema.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		var dealer any = d.Use(nil)
		_, isKeyed := dealer.(processor.Keyed[Row])
		_, isCursored := dealer.(processor.Cursored[Row])
		if isKeyed != c.keyed || isCursored != c.cursored {
			t.Errorf("%s: keyed %t, cursored %t", name, isKeyed, isCursored)
		}
	}
}

// A source that is only appended to is read in order from the cursor; its rows do not change.
func TestCursor(t *testing.T) {
	reads := config.SQLDealer{
		Select:      "SELECT id FROM orders WHERE id > {{cursor}} AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}",
		ExecuteEach: "UPDATE orders SET times = times + 1 WHERE id = {{row.id}}",
		Key:         "id", CursorStart: zero, CommitsInOrder: true,
	}
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		d := s.dealer(reads)
		c := cursored{keyed{d}}
		sel := selection()
		var read []string
		for range 3 {
			rows, err := c.Select(t.Context(), sel)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				read = append(read, c.Cursor(r))
				sel.Queue.Cursor = c.Cursor(r)
			}
			if err := d.Execute(s.batch(7), rows); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"1", "3", "5", "7", "9"}; !slices.Equal(read, want) {
			t.Fatalf("read %v, want %v", read, want)
		}
		s.want("SELECT id, times FROM orders ORDER BY id", "1 1", "2 0", "3 1", "4 0", "5 1", "7 1", "9 1")
	})
}

// A key as text identifies the same row.
func TestKeyText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for want, v := range map[string]any{"17": int64(17), "a b": "a b", `\x00ff`: []byte{0, 255}, `\s`: "", `\s\x00`: `\x00`, "1.5": 1.5, "2026-01-02T03:04:05.000006Z": at} {
		if got := (keyed{}).Key(Row{values: []any{v}}); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// A batch of an older epoch changes nothing.
func TestStaleOwnerCommitsNothing(t *testing.T) {
	each := settleOrders
	each.Execute, each.ExecuteEach = "", "UPDATE orders SET state = 'SETTLED' WHERE id = {{row.id}}"
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		for _, c := range []config.SQLDealer{settleOrders, each} {
			d := s.dealer(c)
			rows := s.selectRows(d)
			if err := d.Execute(s.batch(6), rows); !errors.Is(err, center.ErrFenced) {
				t.Errorf("with an older epoch: %v", err)
			}
			if err := d.Execute(t.Context(), rows); !errors.Is(err, center.ErrNoBatch) {
				t.Errorf("without a batch: %v", err)
			}
			if err := d.Execute(t.Context(), nil); err != nil {
				t.Errorf("without rows: %v", err)
			}
		}
		s.want("SELECT count(*) FROM orders WHERE state = 'SETTLED'", "0")
	})
}

func TestExecuteEach(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(
			"CREATE TABLE source (id INTEGER PRIMARY KEY, name VARCHAR(50), price DECIMAL(10,2), times INTEGER)",
			"INSERT INTO source VALUES (1, 'it''s', 1.50, 3), (2, NULL, NULL, NULL), (3, '日本', -0.25, 1)",
			"CREATE TABLE copy (id INTEGER PRIMARY KEY, name VARCHAR(50), price DECIMAL(10,2), times INTEGER, said VARCHAR(99))",
		)
		d := s.dealer(config.SQLDealer{
			Select: "SELECT s.id, s.times, s.price, s.name FROM source s LEFT JOIN copy c ON c.id = s.id WHERE c.id IS NULL AND {{index}} = 1 ORDER BY s.id LIMIT {{limit}}",
			ExecuteEach: `INSERT INTO copy (id, name, price, times, said)
				VALUES ({{row.id}}, {{row.NAME}}, {{row.price}}, {{row.times}}, {{server}})`,
		})
		s.settle(d)
		s.want("SELECT c.id, c.said FROM copy c JOIN source s ON s.id = c.id WHERE (s.name = c.name AND s.price = c.price AND s.times = c.times) OR (s.name IS NULL AND c.name IS NULL AND c.price IS NULL) ORDER BY c.id",
			"1 "+owner, "2 "+owner, "3 "+owner)
	})
}

func TestExecuteEachIsAllOrNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		s.exec("CREATE TABLE done (id INTEGER PRIMARY KEY)", "INSERT INTO done VALUES (3)")
		d := s.dealer(config.SQLDealer{Select: settleOrders.Select, ExecuteEach: "INSERT INTO done VALUES ({{row.id}})"})
		err := d.Execute(s.batch(7), s.selectRows(d))
		if err == nil || !strings.HasPrefix(err.Error(), "run execute_each: ") {
			t.Errorf("the second row exists already: %v", err)
		}
		s.want("SELECT id FROM done", "3")
	})
}

// Values with quotes and comments reach the database unchanged.
func TestValuesAreBound(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE seen (queue_id VARCHAR(20), queue_parameter VARCHAR(20), parameter VARCHAR(20), own_sign VARCHAR(20), more VARCHAR(20))",
			"CREATE TABLE one (id INTEGER)", "INSERT INTO one VALUES (1)")
		d := s.dealer(config.SQLDealer{
			Select:      "SELECT {{queue_parameter}} AS a, {{own_sign}} AS b FROM one WHERE id < {{total}} AND id <= {{limit}}",
			ExecuteEach: "INSERT INTO seen VALUES ({{queue}}, {{row.a}}, {{parameter}}, {{own_sign}}, {{row.b}})",
		})
		s.settle(d)
		s.want("SELECT * FROM seen", `1 q'"\; -- p'1 TEST TEST`)
	})
}

// {{run_key}} is the key of the run with any characters, and NULL without a run.
func TestRunKey(t *testing.T) {
	const key = `2026-11-21'"\; --`
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE source (id INTEGER PRIMARY KEY, day VARCHAR(50), done VARCHAR(50))",
			"CREATE TABLE copy (id INTEGER, day VARCHAR(50))")
		mark := "?"
		if s.Dialect() == schema.Postgres {
			mark = "$1"
		}
		if _, err := s.DB().ExecContext(t.Context(), "INSERT INTO source (id, day) VALUES (1, "+mark+"), (2, 'other')", key); err != nil {
			t.Fatal(err)
		}
		execute := s.dealerOf(center.ModeRun, config.SQLDealer{
			Select:  "SELECT id FROM source WHERE day = {{run_key}} AND {{index}} = 1 LIMIT {{limit}}",
			Execute: "UPDATE source SET done = {{run_key}} WHERE id IN ({{keys}})",
			Key:     "id",
		})
		each := s.dealerOf(center.ModeRun, config.SQLDealer{
			Select:      "SELECT id FROM source WHERE {{index}} = 1 AND id = 1 LIMIT {{limit}}",
			ExecuteEach: "INSERT INTO copy VALUES ({{row.id}}, {{run_key}})",
		})
		of := selection()
		of.Run = &processor.Run{ID: "a", Key: key}
		for _, d := range []*Dealer{execute, each} {
			rows, err := d.Select(t.Context(), of)
			if err == nil {
				err = d.Execute(s.batch(7), rows)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.want("SELECT id FROM source WHERE done = day ORDER BY id", "1")
		s.want("SELECT c.id FROM copy c JOIN source s ON s.day = c.day", "1")
		s.settle(each) // without a run
		s.want("SELECT id FROM copy WHERE day IS NULL", "1")
	})
}

func TestSelectErrors(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		for name, test := range map[string]struct {
			sql  config.SQLDealer
			want string
		}{
			"no key column": {
				config.SQLDealer{Select: "SELECT state, note FROM orders WHERE id = {{index}} LIMIT {{limit}}", Execute: anUpdate, Key: "id"},
				`run select: the result has no column "id": it has state, note`,
			},
			"no row column": {
				config.SQLDealer{Select: "SELECT id FROM orders WHERE id = {{index}} LIMIT {{limit}}", ExecuteEach: "UPDATE orders SET note = {{row.note}} WHERE id = {{row.id}}"},
				`run select: the result has no column "note": it has id`,
			},
			"no table": {
				config.SQLDealer{Select: "SELECT id FROM oders WHERE id = {{index}} LIMIT {{limit}}", Execute: anUpdate, Key: "id"},
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
		Key:     "at",
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
		Key:     "id",
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
