package center_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// F5: while a commit is under way, a select returns what will be done already. EndCommits does not let the queue be
// selected before the transaction has ended.
func TestCommitUnderWay(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // a commit is a call of a function
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			c := centertest.Open(t, url, center.Options{})
			centertest.Define(t, c, "settle", center.Settings{Queues: 1})
			centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = '"+web1+"', epoch = 7")
			batch := c.Bind(t.Context(), center.Batch{
				Server: web1, TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7},
			})
			commitUnderWay(t, proxy, c, c.DB(), func(fn func(*sql.Tx) error) error { return center.InTx(batch, c.DB(), fn) })
		})
	}
}

// The same in a data database (F11).
func TestDataCommitUnderWay(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
			centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
			f := dataFixture{t, c, openData(t, c, "orders", url)}
			e := f.own(web1, "0", 7)
			f.enter(e)
			batch := f.batch(e, nil)
			commitUnderWay(t, proxy, c, f.d.DB(), func(fn func(*sql.Tx) error) error { return f.d.InTx(batch, fn) })
		})
	}
}

// The same in the roster's database, for a queue whose items are in a data database.
func TestRosterCommitOfADataQueueUnderWay(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			c := centertest.Open(t, url, center.Options{})
			centertest.Define(t, c, "settle", center.Settings{Queues: 4, Database: "orders"})
			f := dataFixture{t, c, openData(t, c, "orders", testdb.URL(t, testdb.SQLite))}
			e := f.own(web1, "0", 7)
			f.enter(e)
			batch := f.batch(e, nil)
			commitUnderWay(t, proxy, c, c.DB(), func(fn func(*sql.Tx) error) error { return center.InTx(batch, c.DB(), fn) })
		})
	}
}

// commitUnderWay breaks a connection while its COMMIT is on the way to the server, and looks whether the transaction
// still takes effect after EndCommits.
func commitUnderWay(t *testing.T, p *testdb.Proxy, c *center.Center, db *sql.DB,
	inTx func(func(*sql.Tx) error) error,
) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), `CREATE TABLE effect (id INT NOT NULL)`)
	must(t, err)
	effects := func() (n int) {
		must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM effect`).Scan(&n))
		return n
	}
	arrives := make(chan struct{})
	p.Break(testdb.Breakpoint{Text: "INSERT INTO effect", Moment: testdb.CommitUnderWay, Reached: func() bool {
		<-arrives
		return true
	}})
	err = inTx(func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO effect VALUES (1)`)
		return err
	})
	if !errors.Is(err, center.ErrUnknownCommit) || effects() != 0 {
		t.Fatalf("got %v and %d effects, want ErrUnknownCommit and none yet", err, effects())
	}
	end := func() (bool, error) {
		return c.EndCommits(t.Context(), "settle", web1, center.QueueEpoch{ID: "0", Epoch: 7})
	}
	ended, err := end()
	if waits := c.CommitWaits("settle"); ended || err == nil || len(waits) != 1 {
		t.Errorf("a commit under way: got %t, %v and %d waits, want an error and a queue that waits", ended, err, len(waits))
	}
	if ended, err := c.EndCommits(t.Context(), "settle", web1, center.QueueEpoch{ID: "1", Epoch: 7}); ended || err != nil {
		t.Errorf("another queue: got %t, %v, want nothing to wait for", ended, err)
	}
	close(arrives)
	for ended, err = end(); err != nil; ended, err = end() { // the COMMIT arrives meanwhile
		if center.IsFenced(err) {
			t.Fatal(err)
		}
	}
	if n := effects(); !ended || n != 1 {
		t.Errorf("after the end (%t): %d effects, want 1", ended, n)
	}
	if ended, err := end(); ended || err != nil || len(c.CommitWaits("settle")) > 0 {
		t.Errorf("once more: got %t, %v, want nothing to wait for", ended, err)
	}
}
