package sqldealer

import (
	"errors"
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

// placedShop is a shop whose roster is in a SQLite file. The orders of owner's queue are in data databases.
type placedShop struct{ shop }

// openPlaced opens the data databases with these URLs, by name. Owner enters each of them.
func openPlaced(t *testing.T, urls map[string]string) placedShop {
	t.Helper()
	s := placedShop{openShop(t, testdb.URL(t, testdb.SQLite))}
	for name, url := range urls {
		d, err := s.FenceIn(name, anydb.URL(url))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := center.MigrateData(t.Context(), anydb.URL(url)); err != nil {
			t.Fatal(err)
		}
		_, err = d.Enter(t.Context(), center.Entry{TaskType: "settle", Server: owner, Queue: center.QueueEpoch{ID: "1", Epoch: 7}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// in returns the shop in a data database.
func (s placedShop) in(name string) dataShop { return dataShop{s, s.Data(name)} }

// dataShop is the part of a shop in a data database.
type dataShop struct {
	placedShop
	d *center.Data
}

func (s dataShop) exec(statements ...string) {
	s.Helper()
	for _, statement := range statements {
		if _, err := s.d.DB().ExecContext(s.Context(), statement); err != nil {
			s.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s dataShop) want(query, want string) {
	s.Helper()
	list, err := center.Column[string](s.Context(), s.d.DB(), query)
	if got := strings.Join(list, " "); err != nil || got != want {
		s.Errorf("%s: got %q, %v, want %q", query, got, err, want)
	}
}

func (s dataShop) selection() processor.Selection {
	sel := selection()
	sel.Queue.Database = s.d.Name()
	return sel
}

func (s placedShop) dealer(database string, c config.SQLDealer) *Dealer {
	s.Helper()
	kinds := Kinds{"": s.Dialect()}
	for _, d := range s.AllData() {
		kinds[d.Name()] = d.Dialect()
	}
	d, err := New(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Database: database}, SQL: c}, kinds)
	if err != nil {
		s.Fatal(err)
	}
	d.Use(s.DB(), s.AllData()...)
	return d
}

// All statements run in the data database of the queue, by its kind, and are fenced there.
func TestDealerInADataDatabase(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openPlaced(t, map[string]string{"orders": url})
		const orders = "CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)"
		s.exec(orders, "INSERT INTO orders (id, state) VALUES (1, 'NEW')")
		at := s.in("orders")
		at.exec(orders, "INSERT INTO orders (id, state) VALUES (1, 'NEW'), (3, 'NEW'), (5, 'NEW'), (7, 'NEW')")
		d := s.dealer("orders", config.SQLDealer{
			Select:  "SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} AND id > {{after}} ORDER BY id LIMIT {{limit}}",
			Execute: "UPDATE orders SET state = 'SETTLED' WHERE id IN ({{keys}})", Key: []string{"id"}, AfterStart: zero,
			Discard: "UPDATE orders SET state = 'DEAD' WHERE id IN ({{keys}})",
			Backlog: "SELECT COUNT(*) FROM orders WHERE state = 'NEW' AND {{mine id}}",
		})
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, err := d.Select(t.Context(), at.selection())
		if err != nil || len(rows) != 3 {
			t.Fatalf("got %d rows, %v, want 3", len(rows), err)
		}
		batch := s.Bind(t.Context(), center.Batch{Server: owner, TaskType: "settle", Queue: center.QueueEpoch{ID: "1", Epoch: 7}, Database: "orders"})
		if err := d.Execute(batch, rows[:2]); err != nil {
			t.Fatal(err)
		}
		if err := d.Discard(batch, rows[2], errors.New("no")); err != nil {
			t.Fatal(err)
		}
		if b, err := d.Backlog(t.Context(), at.selection()); err != nil || b.Items != 1 {
			t.Errorf("backlog %d, %v, want 1", b.Items, err)
		}
		at.want("SELECT state FROM orders ORDER BY id", "SETTLED SETTLED DEAD NEW")
		s.want("SELECT state FROM orders", "NEW")
		at.exec("UPDATE rota_fence SET epoch = 8 WHERE queue_id = '1'")
		if err := d.Execute(batch, rows[:1]); !center.IsFenced(err) {
			t.Errorf("a later owner has entered: got %v, want ErrFenced", err)
		}
	})
}

// The statements of one task run on databases of several kinds, each with its own marks, types and horizon.
func TestDealerInSeveralDataDatabases(t *testing.T) {
	urls := map[string]string{"file": testdb.URL(t, testdb.SQLite)}
	for _, kind := range testdb.Kinds(t) {
		urls[kind] = testdb.Reused(t, kind)
	}
	s := openPlaced(t, urls)
	d := s.dealer("file", lagSales)
	var clock time.Time
	for name := range urls {
		at, err := d.at(name)
		if err != nil {
			t.Fatal(err)
		}
		at.cursor.bounds().(*lagHorizon).now = func() time.Time { return clock }
		s.in(name).exec("CREATE TABLE sales (id BIGINT PRIMARY KEY)", "CREATE TABLE seen (id BIGINT)")
		for id := range len(name) {
			s.in(name).exec("INSERT INTO sales (id) VALUES (" + string(rune('1'+id)) + ")")
		}
	}
	for name := range urls {
		sel := s.in(name).selection()
		sel.Limit = 10
		if rows, err := d.Select(t.Context(), sel); len(rows) > 0 || err != nil {
			t.Fatalf("%s: got %d rows, %v before the lag", name, len(rows), err)
		}
	}
	clock = clock.Add(lagSales.CursorLag)
	for name := range urls {
		sel := s.in(name).selection()
		sel.Limit = 10
		rows, err := d.Select(t.Context(), sel)
		if err != nil || len(rows) != len(name) {
			t.Errorf("%s: got %d rows, %v, want %d", name, len(rows), err, len(name))
		}
	}
}

// Statements are refused for the databases that the settings name, and for no other one.
func TestErrorsOfPlaces(t *testing.T) {
	t.Parallel()
	kinds := Kinds{"": schema.SQLite, "east": schema.Postgres, "west": schema.MySQL}
	sql := config.SQLDealer{
		Select:  "SELECT a, b FROM t WHERE (a, b) > ({{after.a}}, {{after.b}}) AND mod(b, {{total}}) = {{index}} ORDER BY a, b LIMIT {{limit}}",
		Execute: "DELETE FROM t WHERE (a, b) IN ({{keys}})", Key: []string{"a", "b"}, AfterStart: []string{"0", "0"},
	}
	const inWest = "tasks.settle.dealer.sql.select compares with ({{after.a}}, {{after.b}}), for which this database uses no index: " +
		"write (a > {{after.a}} OR a = {{after.a}} AND b > {{after.b}}) in west"
	for database, want := range map[string]string{
		"": "", "east": "", "west": inWest, "0=east,1=west": inWest,
		"north": "tasks.settle.database (north): there is no data database north",
	} {
		_, err := New(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Database: database}, SQL: sql}, kinds)
		if got := errorText(err); got != want {
			t.Errorf("database %q:\ngot  %s\nwant %s", database, got, want)
		}
	}
}

// A queue whose data database is not known, or whose statements are refused there, is not selected.
func TestSelectInAnotherDatabase(t *testing.T) {
	t.Parallel()
	s := openPlaced(t, map[string]string{"east": testdb.URL(t, testdb.SQLite)})
	s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
	d := s.dealer("", config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}})
	for database, want := range map[string]string{
		"": "", "north": `tasks.settle: there is no data database "north"`, "east": "run select in east: SQL logic error: no such table: orders (1)",
	} {
		sel := selection()
		sel.Queue.Database = database
		_, err := d.Select(t.Context(), sel)
		if got := errorText(err); got != want {
			t.Errorf("database %q: got %q, want %q", database, got, want)
		}
	}
}

// A select must divide the rows among the queues that share a database, and only among them.
func TestSelectDividesADatabase(t *testing.T) {
	t.Parallel()
	kinds := Kinds{"": schema.SQLite, "shard0": schema.SQLite, "shard1": schema.SQLite}
	sql := config.SQLDealer{Select: "SELECT id FROM t ORDER BY id LIMIT {{limit}}", Execute: "DELETE FROM t WHERE id IN ({{keys}})", Key: []string{"id"}}
	for database, divided := range map[string]bool{"": false, "shard0": false, "shard{{queue}}": true, "0=shard1,1=shard0": true} {
		_, err := New(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Database: database}, SQL: sql}, kinds)
		if refused := strings.Contains(errorText(err), "the same rows for every queue"); refused == divided {
			t.Errorf("database %q: got %v", database, err)
		}
	}
}
