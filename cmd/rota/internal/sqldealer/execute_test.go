package sqldealer

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

var orders = []string{
	"CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL, by_server VARCHAR(50), note VARCHAR(50), times INTEGER NOT NULL DEFAULT 0)",
	"INSERT INTO orders (id, state) VALUES (1, 'NEW'), (2, 'NEW'), (3, 'NEW'), (4, 'NEW'), (5, 'OLD'), (7, 'NEW'), (9, 'NEW')",
}

var settleOrders = config.SQLDealer{
	Select: "SELECT state, id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}",
	Execute: `UPDATE orders SET state = 'SETTLED', by_server = {{server}}, times = times + 1,
		note = {{queue}} WHERE state = 'NEW' AND id IN ({{keys}})`,
	Key: []string{"ID"},
}

func TestExecute(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
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

// A batch of an older epoch changes nothing.
func TestStaleOwnerCommitsNothing(t *testing.T) {
	each := settleOrders
	each.Execute, each.ExecuteEach = "", "UPDATE orders SET state = 'SETTLED' WHERE id = {{row.id}}"
	testdb.EachReused(t, func(t *testing.T, url string) {
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
	testdb.EachReused(t, func(t *testing.T, url string) {
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
	testdb.EachReused(t, func(t *testing.T, url string) {
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
	testdb.EachReused(t, func(t *testing.T, url string) {
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
	testdb.EachReused(t, func(t *testing.T, url string) {
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
			Key:     []string{"id"},
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
