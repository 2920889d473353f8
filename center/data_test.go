package center_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// dataFixture is a roster in one database and the items of its task type in another one.
type dataFixture struct {
	*testing.T
	c *center.Center
	d *center.Data
}

// eachData runs f with a data database of each kind. The roster is in a SQLite file.
func eachData(t *testing.T, f func(*testing.T, dataFixture)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f(t, newDataFixture(t, url))
	})
}

// newDataFixture returns a roster with four queues in a SQLite file, and the data database of a URL.
func newDataFixture(t *testing.T, url string) dataFixture {
	t.Helper()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
	return dataFixture{t, c, openData(t, c, "orders", url)}
}

func openData(t *testing.T, c *center.Center, name, url string) *center.Data {
	t.Helper()
	d, err := c.FenceIn(name, anydb.URL(url))
	must(t, err)
	return d
}

// own makes a server the owner of a queue in the roster, and returns the entry for the data database.
func (f dataFixture) own(server, queue string, epoch int64) center.Entry {
	f.Helper()
	centertest.Exec(f.T, f.c, "UPDATE schedule_queue SET cur_server = '"+server+"', epoch = "+fmt.Sprint(epoch)+" WHERE queue_id = '"+queue+"'")
	e := center.Entry{TaskType: "settle", Server: server, Queue: center.QueueEpoch{ID: queue, Epoch: epoch}}
	row := f.c.DB().QueryRowContext(f.Context(), "SELECT division, queue_index, queue_total FROM schedule_queue WHERE queue_id = '"+queue+"'")
	if err := row.Scan(&e.Items.Division, &e.Items.Index, &e.Items.Total); !errors.Is(err, sql.ErrNoRows) {
		must(f.T, err)
	}
	return e
}

func (f dataFixture) enter(e center.Entry) (raised bool) {
	f.Helper()
	raised, err := f.d.Enter(f.Context(), e)
	must(f.T, err)
	return raised
}

// enterSoon waits until a call may try a database again that could not be used.
func (f dataFixture) enterSoon(e center.Entry) {
	f.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := f.d.Enter(f.Context(), e)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.Fatalf("a raise after the trouble: %v", err)
		}
	}
}

// batch returns the context of Execute for a batch of the entry's queue.
func (f dataFixture) batch(e center.Entry, cursor *center.CursorMove) context.Context {
	return f.c.Bind(f.Context(), center.Batch{
		Server: e.Server, TaskType: e.TaskType, Queue: e.Queue, Database: f.d.Name(), Cursor: cursor,
	})
}

// write commits a fenced transaction of a batch, and returns its error.
func (f dataFixture) write(e center.Entry) error {
	return f.d.InTx(f.batch(e, nil), func(*sql.Tx) error { return nil })
}

// writeAsProgram is write, and checks that the statement for other programs agrees (F12).
func (f dataFixture) writeAsProgram(e center.Entry) error {
	f.Helper()
	err := f.write(e)
	stmt, stmtErr := center.FenceStatementOf(f.batch(e, nil))
	must(f.T, stmtErr)
	result, execErr := f.d.DB().ExecContext(f.Context(), stmt.SQL, stmt.Args...)
	must(f.T, execErr)
	if n, _ := result.RowsAffected(); n == 1 != (err == nil) {
		f.Errorf("the fencing statement changes %d rows, and the fence says %v", n, err)
	}
	return err
}

func (f dataFixture) mustBeFenced(what string, err error) {
	f.Helper()
	if !center.IsFenced(err) {
		f.Fatalf("%s: got %v, want ErrFenced", what, err)
	}
}

// F11: a write commits only under the epoch that was raised, and an owner raises once.
func TestDataFence(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a := f.own("A", "0", 7)
		f.mustBeFenced("a write before the raise", f.writeAsProgram(a))
		if !f.enter(a) || f.enter(a) {
			t.Fatal("the first call of Enter must raise, and the second must not")
		}
		must(t, f.writeAsProgram(a))
		b := f.own("B", "0", 8)
		f.mustBeFenced("a write of the next owner before its raise", f.writeAsProgram(b))
		f.enter(b)
		must(t, f.writeAsProgram(b))
		if !f.enter(f.own("B", "0", 9)) {
			t.Fatal("the owner does not raise its next epoch")
		}
		f.mustBeFenced("a write under the earlier epoch of the same owner", f.writeAsProgram(b))
		f.mustBeFenced("a write of the earlier owner", f.writeAsProgram(a))
		_, err := f.d.Enter(f.Context(), a)
		f.mustBeFenced("a raise of the earlier owner", err)
		f.enter(f.own("A", "1", 3)) // another queue has epochs of its own
	})
}

// F11: the raise waits for the fenced transactions of earlier owners, as a select that does not would miss what they
// write.
func TestDataRaiseWaitsForEarlierWrites(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		if f.d.Dialect() == schema.SQLite {
			return // it has one lock for all writers
		}
		a := f.own("A", "0", 7)
		f.enter(a)
		tx, err := f.d.DB().BeginTx(t.Context(), nil)
		must(t, err)
		defer tx.Rollback()
		must(t, f.d.Fence(f.batch(a, nil), tx))
		b := f.own("B", "0", 8)
		var held *roster.HeldError
		if _, err := f.d.Enter(t.Context(), b); !errors.As(err, &held) {
			t.Fatalf("a raise beside an open transaction: got %v, want a HeldError", err)
		}
		if _, waits := f.d.State("settle"); len(waits) != 1 || waits[0].Queue != "0" || waits[0].TaskType != "settle" {
			t.Fatalf("the queue waits: got %v", waits)
		}
		must(t, tx.Commit())
		f.enter(b)
		if problem, waits := f.d.State("settle"); len(waits) != 0 || problem.Err != nil {
			t.Fatalf("after the raise: got %v, %v", problem, waits)
		}
	})
}

func (f dataFixture) exec(query string) {
	f.Helper()
	_, err := f.d.DB().ExecContext(f.Context(), query)
	must(f.T, err)
}

// F11: a data database that is ahead of the roster proves that the roster has lost history.
func TestDataAheadOfTheRoster(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		f.enter(f.own("B", "0", 8))
		for what, e := range map[string]center.Entry{"a lower epoch": f.own("A", "0", 7), "the same epoch": f.own("A", "0", 8)} {
			centertest.Exec(t, f.c, "UPDATE schedule_queue SET epoch = "+fmt.Sprint(e.Queue.Epoch)+" WHERE queue_id = '0'")
			var ahead *roster.AheadError
			if _, err := f.d.Enter(t.Context(), e); !errors.As(err, &ahead) || ahead.Found != (roster.Ownership{Owner: "B", Epoch: 8, Items: e.Items}) {
				t.Errorf("%s: got %v, want an AheadError with B's epoch 8", what, err)
			}
		}
	})
}

// F11: if the row is not as the raise has left it, the owner raises again before its next select.
func TestDataIsRestored(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a := f.own("A", "0", 7)
		f.enter(a)
		f.exec("DELETE FROM rota_fence")
		f.mustBeFenced("a write without a row", f.write(a))
		if !f.enter(a) {
			t.Fatal("Enter did not raise again")
		}
		must(t, f.write(a))
	})
}

// F11: so it also finds out that the database is another one by now, or is restored from a time before its first use.
func TestDataIsAnotherDatabase(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a := f.own("A", "0", 7)
		f.enter(a)
		f.exec("DELETE FROM rota_fence")
		f.exec("DELETE FROM rota_data")
		f.mustBeFenced("a write without a row", f.write(a))
		if _, err := f.d.Enter(t.Context(), a); !errors.Is(err, center.ErrOtherData) {
			t.Errorf("a raise in a database without an id: got %v, want ErrOtherData", err)
		}
		if problem, _ := f.d.State("settle"); !errors.Is(problem.Err, center.ErrOtherData) {
			t.Errorf("the problem: got %v", problem)
		}
	})
}

// F11: so it does if it has met that when it loaded or saved a cursor.
func TestDataIsRestoredUnderACursor(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a, cursor := f.own("A", "0", 7), "42"
		for what, use := range map[string]func() error{
			"load": func() error {
				_, err := f.d.Cursor(t.Context(), "settle", "A", a.Queue)
				return err
			},
			"save": func() error { return center.SaveCursor(f.batch(a, &center.CursorMove{To: cursor})) },
		} {
			f.enter(a)
			f.exec("DELETE FROM rota_fence")
			f.mustBeFenced(what+" a cursor without a row", use())
			if !f.enter(a) {
				t.Errorf("Enter did not raise again after the server could not %s a cursor", what)
			}
		}
	})
}

// F11: an owner that cannot fence enters again before its next select, and so finds out that the database has no tables.
func TestDataLosesItsTables(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		e := f.own("a", "0", 5)
		f.enter(e)
		f.exec("ALTER TABLE rota_fence RENAME TO gone")
		f.exec("ALTER TABLE rota_data RENAME TO gone_too")
		if err := f.write(e); err == nil || center.IsFenced(err) {
			t.Errorf("write: got %v, want another error", err)
		}
		if _, err := f.d.Enter(t.Context(), e); err == nil {
			t.Error("the queue was entered without the tables")
		}
		if problem, _ := f.d.State("settle"); problem.Err == nil {
			t.Error("the state has no problem")
		}
	})
}

// F11: a database belongs to one roster, under one name.
func TestDataHasAnID(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		first := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
		second := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
		empty := testdb.URL(t, testdb.SQLite)
		nothing := func(*sql.Tx) error { return nil }
		use := func(c *center.Center, name, url string) error {
			d, err := c.FenceIn(name, anydb.URL(url))
			must(t, err)
			batch := center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}, Database: name}
			err = d.InTx(c.Bind(t.Context(), batch), nothing)
			must(t, c.ForgetData(name))
			if center.IsFenced(err) { // nothing was raised, but the database is the right one
				err = nil
			}
			return err
		}
		must(t, use(first, "orders", url))
		must(t, use(first, "orders", url))
		for what, err := range map[string]error{
			"another roster":                use(second, "orders", url),
			"another name":                  use(first, "billing", url),
			"a new database under the name": use(first, "orders", empty),
		} {
			if !errors.Is(err, center.ErrOtherData) {
				t.Errorf("%s: got %v, want ErrOtherData", what, err)
			}
		}
		db := openData(t, first, "orders", url).DB() // as an operator does whose roster has forgotten the database
		_, err := db.ExecContext(t.Context(), "DELETE FROM rota_data")
		must(t, err)
		must(t, use(second, "orders", url))
	})
}

// F11: a batch is fenced where its items are.
func TestDataFencesItsOwnBatches(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a := f.own("A", "0", 7)
		f.enter(a)
		elsewhere := f.c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: a.Queue})
		if err := f.d.InTx(elsewhere, func(*sql.Tx) error { return nil }); !errors.Is(err, center.ErrOtherBatch) {
			t.Errorf("a batch of the roster's database: got %v, want ErrOtherBatch", err)
		}
		if center.DataOf(f.batch(a, nil)) != f.d || center.DataOf(elsewhere) != nil {
			t.Error("DataOf does not return the data database of the batch")
		}
		must(t, center.InTx(f.batch(a, nil), f.c.DB(), func(*sql.Tx) error { return nil })) // the roster's rows are there, too
	})
}

// F4 F11: a transaction of the roster's database does not save a cursor that is elsewhere.
func TestDataCursorBesideTheRoster(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		a := f.own("A", "0", 7)
		f.enter(a)
		ctx := f.batch(a, &center.CursorMove{To: "42"})
		must(t, center.InTx(ctx, f.c.DB(), func(*sql.Tx) error { return nil }))
		must(t, center.SaveCursor(ctx))
		cursor, err := f.d.Cursor(t.Context(), "settle", "A", a.Queue)
		if must(t, err); cursor != "42" {
			t.Errorf("the cursor: got %q, want 42", cursor)
		}
	})
}

// F3 F11: as on Galera and TiDB, where the fence writes.
func TestDataFenceByWriting(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		f.d.FenceByWriting(t)
		a := f.own("A", "0", 7)
		f.enter(a)
		must(t, f.write(a))
		b := f.own("B", "0", 8)
		f.enter(b)
		f.mustBeFenced("a write of the earlier owner", f.write(a))
		must(t, f.write(b))
	})
}

// A database that cannot be used is tried by one call a second, and the others return at once.
func TestDataThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 1, Database: "orders"})
	f := dataFixture{t, c, openData(t, c, "orders", "postgres://nobody@127.0.0.1:1/none")}
	a := f.own("A", "0", 7)
	_, err := f.d.Enter(t.Context(), a)
	if err == nil || center.IsFenced(err) {
		t.Fatalf("a database where nothing listens: got %v", err)
	}
	problem, _ := f.d.State("settle")
	if problem.Err == nil || problem.Since.IsZero() {
		t.Fatalf("the problem: got %v", problem)
	}
	if _, again := f.d.Enter(t.Context(), a); !errors.Is(again, problem.Err) {
		t.Errorf("a call at once: got %v, want the same error", again)
	}
}

// F11: two owners of a queue that go by different settings would fence it in different databases. So the setting does
// not change while a server is registered, and no server registers that has read another one.
func TestDatabaseChangesWithoutServers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		centertest.Define(t, c, "settle", center.Settings{Queues: 2, Database: "orders"})
		register := func(uuid, database string) error {
			_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Database: database, JudgeDeadInterval: time.Minute})
			return err
		}
		change := func(database string) error {
			tasks := ops.New(c).Tasks()
			s, err := tasks.Settings(t.Context(), "settle")
			must(t, err)
			s.Database = database
			d, err := tasks.Compare(t.Context(), "settle", s)
			must(t, err)
			return tasks.Apply(t.Context(), d, "me")
		}
		must(t, change("billing"))
		if err := register("A", "orders"); !errors.Is(err, roster.ErrRestart) {
			t.Errorf("a server that has read the earlier setting registers: got %v, want ErrRestart", err)
		}
		must(t, register("B", "billing"))
		if err := change("orders"); err == nil || !strings.Contains(err.Error(), "worker B does") {
			t.Errorf("a change while B is registered: got %v, want an error that names B", err)
		}
		must(t, c.Roster().Server("settle", "B").Leave(t.Context(), nil, roster.Reservation{}))
		must(t, change("orders"))
	})
}

// The setting names the data database of each queue.
func TestDatabaseOfQueues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queues   center.Settings
		database string
		want     string // by queue, or the rule that is broken
	}{
		{center.Settings{Queues: 3}, "", " | | "},
		{center.Settings{Queues: 3}, "orders", "orders|orders|orders"},
		{center.Settings{Queues: 3}, "shard{{queue}}", "shard0|shard1|shard2"},
		{center.Settings{Queues: 3}, "0-1=a, 2=b", "a|a|b"},
		{center.Settings{QueueNames: []string{"eu", "us"}}, "eu=a,us=b-{{queue}}", "a|b-us"},
		{center.Settings{Queues: 3}, "0-1=a", `database ("0-1=a") must name the data database of each queue: it names no database for queue "2"`},
		{center.Settings{Queues: 1}, "a b", `must not contain ' '`},
		{center.Settings{Queues: 1}, "a=", `names no database`},
		{center.Settings{QueueNames: []string{"x=y"}}, "{{queue}}", `must not contain '='`},
	} {
		s := c.queues
		s.Database = c.database
		if err := s.Validate(); err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.database, err, c.want)
			}
			continue
		}
		var got []string
		for _, q := range append(s.QueueNames, []string{"0", "1", "2"}[:s.Queues]...) {
			name, err := s.DatabaseOf(q)
			must(t, err)
			got = append(got, name)
		}
		if text := strings.Join(got, "|"); text != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%q: got %s, want %s", c.database, text, c.want)
		}
	}
}

// F10 F11: a database that swallows all packets keeps neither a raise nor a fenced transaction for long: the executors
// that wait for it have other queues to work.
func TestDataThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		if strings.HasPrefix(url, "sqlite:") {
			return // there is no network
		}
		t.Parallel()
		through, proxy := testdb.Through(t, url)
		c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{ReplyTimeout: 3 * time.Second})
		centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
		f := dataFixture{t, c, openData(t, c, "orders", through)}
		a, b := f.own("A", "0", 7), f.own("A", "1", 7)
		f.enter(a)
		must(t, f.write(a))
		proxy.Swallow(true)
		for what, call := range map[string]func() error{
			"a fenced transaction": func() error { return f.write(a) },
			"a raise": func() error {
				_, err := f.d.Enter(t.Context(), b)
				return err
			},
		} {
			begun := time.Now()
			err := call()
			if took := time.Since(begun); err == nil || took > 20*time.Second {
				t.Errorf("%s: got %v after %s, want an error before eight tries", what, err, took)
			}
		}
		proxy.Swallow(false)
		proxy.Cut()
		f.enterSoon(b)
		must(t, f.write(b))
	})
}

// F10: a statement in a data database has the shorter limit, because heartbeats go on while it has none.
func TestDataLimitsStatementsOfDealers(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]float64{0: 60, -1: 0, 2 * time.Minute: 120} {
		c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{ReplyTimeout: limit})
		d := openData(t, c, "orders", testdb.URL(t, testdb.MariaDB)) // MySQL cannot end a statement that writes
		var got float64
		must(t, d.DB().QueryRowContext(t.Context(), "SELECT @@max_statement_time").Scan(&got))
		if got != want {
			t.Errorf("ReplyTimeout %s: %v s, want %v s", limit, got, want)
		}
	}
}

// An outage of the roster is none of a data database.
func TestDataIsNotBlamedForTheRoster(t *testing.T) {
	t.Parallel()
	through, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, through, center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
	f := dataFixture{t, c, openData(t, c, "orders", testdb.URL(t, testdb.SQLite))}
	a := f.own("A", "0", 7)
	proxy.Refuse(true)
	proxy.Cut()
	if _, err := f.d.Enter(t.Context(), a); err == nil {
		t.Fatal("the first use of a data database without the roster: got no error")
	}
	if problem, _ := f.d.State("settle"); problem.Err != nil {
		t.Errorf("the data database is said to have a problem: %v", problem.Err)
	}
	proxy.Refuse(false)
	f.enter(a)
}

// F11: a grant costs one transaction of two statements more, and a fenced transaction one statement, as in the
// roster's database.
func TestDataTakesFewStatements(t *testing.T) {
	t.Parallel()
	through, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
	f := dataFixture{t, c, openData(t, c, "orders", through)}
	f.enter(f.own("A", "0", 7)) // the first raise also asks the server what it is, and creates its tables
	a := f.own("B", "0", 8)
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"a raise", func() { f.enter(a) }, 4},
		{"a select after it", func() { f.enter(a) }, 0},
		{"the first fenced transaction", func() { must(t, f.write(a)) }, -1}, // it also connects
		{"a fenced transaction", func() { must(t, f.write(a)) }, 3},
	} {
		sent := testdb.Statements(proxy.Listen(step.do))
		if step.want >= 0 && len(sent) != step.want {
			t.Errorf("%s: %d statements with BEGIN and COMMIT, want %d:\n\t%s", step.what, len(sent), step.want, strings.Join(sent, "\n\t"))
		}
	}
}
