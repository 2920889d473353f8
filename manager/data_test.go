package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/processor"
)

// ledger is a dealer whose items are in data databases: rows of the table item, each of one queue. Execute counts how
// often an item took effect.
type ledger struct {
	c      *center.Center
	before func()
}

func (l *ledger) Select(ctx context.Context, s processor.Selection) ([]int, error) {
	return center.Column[int](ctx, l.c.Data(s.Queue.Database).DB(),
		"SELECT id FROM item WHERE queue = ? AND effects = 0 ORDER BY id LIMIT ?", s.Queue.ID, s.Limit)
}

func (l *ledger) Execute(ctx context.Context, items []int) error {
	if l.before != nil {
		l.before()
	}
	return center.DataOf(ctx).InTx(ctx, func(tx *sql.Tx) error {
		for _, id := range items {
			if _, err := tx.ExecContext(ctx, "UPDATE item SET effects = effects + 1 WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// sharded are settings whose queues have their items in two data databases.
var sharded = manager.Settings{
	Queues: 6, Database: "0-2=east,3-5=west", ExecuteNumber: 2, FetchNumber: 4, SleepTimeInterval: 10 * time.Millisecond,
}

// openShards opens the data databases of sharded, with 20 items for each queue.
func (cl *cluster) openShards() {
	cl.Helper()
	for n, name := range []string{"east", "west"} {
		d, err := cl.c.FenceIn(name, sqlite.URL("sqlite::memory:"))
		if err != nil {
			cl.Fatal(err)
		}
		cl.execIn(name, "CREATE TABLE item (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, effects INTEGER NOT NULL)")
		for i := range 60 {
			if _, err := d.DB().ExecContext(cl.Context(), "INSERT INTO item VALUES (?, ?, 0)", i, fmt.Sprint(3*n+i%3)); err != nil {
				cl.Fatal(err)
			}
		}
	}
}

func (cl *cluster) execIn(database, query string) {
	cl.Helper()
	if _, err := cl.c.Data(database).DB().ExecContext(cl.Context(), query); err != nil {
		cl.Fatal(err)
	}
}

func (cl *cluster) countIn(database, where string) (n int) {
	cl.Helper()
	row := cl.c.Data(database).DB().QueryRowContext(cl.Context(), "SELECT COUNT(*) FROM "+where)
	if err := row.Scan(&n); err != nil {
		cl.Fatal(err)
	}
	return n
}

func (cl *cluster) startLedger(l *ledger) *worker {
	cl.Helper()
	l.c = cl.c
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Logger: cl.logger()}, manager.Serve("settle", l, sharded))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// wantOnce checks that each item took effect once.
func (cl *cluster) wantOnce(databases ...string) {
	cl.Helper()
	for _, name := range databases {
		if n := cl.countIn(name, "item WHERE effects = 1"); n != 60 {
			cl.Errorf("%s: %d of 60 items took effect once, %d more often", name, n, cl.countIn(name, "item WHERE effects > 1"))
		}
	}
}

// F11: items in two data databases take effect once, while a second worker joins and the first one leaves.
func TestItemsInDataDatabases(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		slow := func() { time.Sleep(300 * time.Millisecond) }
		a := cl.startLedger(&ledger{before: slow})
		time.Sleep(time.Second)
		cl.startLedger(&ledger{before: slow})
		time.Sleep(5 * time.Second)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		cl.wantOnce("east", "west")
		for name, want := range map[string]string{"east": "0,1,2", "west": "3,4,5"} {
			var got string
			row := cl.c.Data(name).DB().QueryRowContext(cl.Context(), "SELECT group_concat(queue_id, ',' ORDER BY queue_id) FROM rota_fence WHERE queue_id <> ''")
			if err := row.Scan(&got); err != nil || got != want {
				t.Errorf("queues that are fenced in %s: got %s, %v, want %s", name, got, err, want)
			}
		}
	})
}

// F11: while a data database cannot be used, its queues are not selected, an alert says so, and the others go on.
func TestDataDatabaseThatCannotBeUsed(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		cl.execIn("west", "CREATE VIEW rota_data AS SELECT 1 AS own_sign") // it has no id
		w := cl.startLedger(&ledger{})
		time.Sleep(3 * time.Minute)
		cl.wantOnce("east")
		if err := w.Ready(); err != nil || cl.alerts(condition.Failing) > 0 { // its dealer was not called, and does not fail
			t.Errorf("the worker is not ready: %v, %d alerts FAILING", err, cl.alerts(condition.Failing))
		}
		if n := cl.countIn("west", "item WHERE effects > 0"); n > 0 {
			t.Errorf("%d items of the other database took effect", n)
		}
		if n := cl.alerts(condition.Unreachable); n != 1 {
			t.Errorf("UNREACHABLE: got %d alerts, want 1", n)
		}
		if !strings.Contains(cl.logged.String(), "the data database west cannot be used") {
			t.Errorf("the log does not name the database:\n%s", cl.logged)
		}
		cl.execIn("west", "DROP VIEW rota_data")
		time.Sleep(10 * time.Second)
		cl.wantOnce("east", "west")
	})
}

// F11: a task type gets more queues, in data databases that no worker has opened. An alert says so.
func TestDataDatabaseOfANewQueueIsNotOpened(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		settings := sharded
		settings.Database = "{{queue}}st"
		settings.Queues, settings.QueueNames = 0, []string{"ea", "we"}
		l := &ledger{c: cl.c}
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Logger: cl.logger()}, manager.Serve("settle", l, settings))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		time.Sleep(time.Minute)
		if err := cl.c.Roster().Operator("test").AddQueue(cl.Context(), "settle", "lo", ""); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := cl.alerts(condition.Unreachable); n != 1 || cl.alerts(condition.Failing) > 0 {
			t.Errorf("UNREACHABLE: got %d alerts, want 1; FAILING: %d, want 0", n, cl.alerts(condition.Failing))
		}
		if _, err := cl.c.FenceIn("lost", sqlite.URL("sqlite::memory:")); err != nil {
			cl.Fatal(err)
		}
		cl.execIn("lost", "CREATE TABLE item (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, effects INTEGER NOT NULL)")
		cl.execIn("lost", "INSERT INTO item VALUES (1, 'lo', 0)")
		time.Sleep(time.Minute)
		if n := cl.countIn("lost", "item WHERE effects = 1"); n != 1 {
			t.Errorf("%d items of the new queue took effect, want 1", n)
		}
	})
}

// F11: only selects find out that a data database can be used again. So the alerts end with the work on its queues.
func TestDataAlertsOfQueuesThatAreNotWorked(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		cl.execIn("west", "CREATE VIEW rota_data AS SELECT 1 AS own_sign")
		cl.startLedger(&ledger{})
		time.Sleep(3 * time.Minute)
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", true); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cl.execIn("west", "DROP VIEW rota_data")
		time.Sleep(10 * time.Minute)
		findings, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
		if err != nil {
			cl.Fatal(err)
		}
		for _, c := range findings {
			if c.Kind == condition.Unreachable.Name {
				cl.Errorf("ten minutes after the pause: %s since %s: %s", c.Kind, c.Since, c.Text)
			}
		}
		if n := cl.alerts(condition.Unreachable); n != 1 {
			cl.Errorf("UNREACHABLE: got %d alerts, want 1", n)
		}
	})
}

// F11 H8: a data database that is ahead of the roster proves that the roster has lost history: the epochs rise above
// what it has.
func TestDataDatabaseAheadOfTheRoster(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		a := cl.startLedger(&ledger{})
		time.Sleep(10 * time.Second)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.execIn("west", "UPDATE rota_fence SET epoch = 500, cur_server = 'lost:1:0' WHERE queue_id = '4'")
		cl.execIn("west", "UPDATE item SET effects = 0")
		cl.startLedger(&ledger{})
		time.Sleep(time.Minute)
		cl.wantOnce("east", "west")
		if n := cl.alerts(condition.HistoryLost); n != 1 {
			t.Errorf("HISTORY_LOST: got %d alerts, want 1", n)
		}
		if n := cl.countIn("west", "rota_fence WHERE epoch > 1000500"); n == 0 {
			t.Error("no epoch rose above those of the lost history")
		}
	})
}

func (cl *cluster) alerts(kind condition.Kind) (n int) {
	cl.Helper()
	row := cl.c.DB().QueryRowContext(cl.Context(), "SELECT COUNT(*) FROM schedule_event WHERE alert = ?", kind.Name)
	if err := row.Scan(&n); err != nil {
		cl.Fatal(err)
	}
	return n
}

// A worker that has not opened a data database of its task type does not start.
func TestDataDatabaseIsNotOpened(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		w := cl.startLedger(&ledger{})
		<-w.done
		if w.err == nil || !strings.Contains(w.err.Error(), "names east, which this process has not opened") {
			t.Errorf("got %v, want an error that names the database", w.err)
		}
	})
}
