package centertest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// execSteps execute single statements of batches, which change the one row of a table of the case.
type execSteps struct {
	*fixture
	url   string
	table string
}

func newExec(t *testing.T, c *center.Center, url, table string) execSteps {
	t.Helper()
	r := execSteps{newFixture(t, c, center.Settings{Queues: 2}), url, table}
	r.join("A", "B")
	r.exec("CREATE TABLE %s (id INT PRIMARY KEY, state VARCHAR(20) NOT NULL)", table)
	r.exec("INSERT INTO %s VALUES (1, 'NEW')", table)
	return r
}

// write executes a statement of a batch, which sets the state of the rows of an id.
func (r execSteps) write(batch context.Context, state string, id int) error {
	query := r.c.Roster().DB.SQL("UPDATE " + r.table + " SET state = ? WHERE id = ?")
	return center.ExecFenced(batch, r.c.DB(), query, state, id)
}

// start writes beside the case. It returns when the statement waits for a lock, or has ended.
func (r execSteps) start(write func() error) (ended chan error) {
	r.Helper()
	ended = make(chan error, 1)
	go func() { ended <- write() }()
	for deadline := time.Now().Add(time.Minute); testdb.Waiting(r.T, r.url, r.c.DB()) == 0 && len(ended) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatal("the statement neither waits for a lock nor ends")
		}
	}
	return ended
}

func (r execSteps) wantState(want string) {
	r.Helper()
	if got := r.readColumn("SELECT state FROM %s", r.table)[0]; got != want {
		r.Errorf("the row has the state %s, want %s", got, want)
	}
}

func (r execSteps) wantFenced(what string, err error) {
	r.Helper()
	if !errors.Is(err, center.ErrFenced) {
		r.Errorf("%s: error %v, want ErrFenced", what, err)
	}
}

func (r execSteps) in(tx *sql.Tx, query string) {
	r.Helper()
	_, err := tx.ExecContext(r.Context(), query)
	r.must(err)
}

// testExecFenced checks that a statement is fenced as a transaction is, whatever its way to the database.
func testExecFenced(t *testing.T, c *center.Center, url string) {
	t.Run("F2 a context without a batch is refused", func(t *testing.T) {
		if err := center.ExecFenced(t.Context(), nil, ""); !errors.Is(err, center.ErrNoBatch) {
			t.Errorf("error %v, want ErrNoBatch", err)
		}
	})
	t.Run("F1 a statement has its effect only under its epoch", func(t *testing.T) {
		r := newExec(t, c, url, "exec_epoch")
		batch := r.batch("A", "1")
		r.must(r.write(batch, "FIRST", 1))
		r.wantState("FIRST")
		r.must(r.write(batch, "NONE", 2)) // it matches nothing, and the server owns the queue
		r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s'", r.task)
		r.wantFenced("under an old epoch", r.write(batch, "LATE", 1))
		r.wantFenced("a statement that matches nothing", r.write(batch, "LATE", 2))
		r.wantState("FIRST")
	})
	t.Run("F1 a statement has its effect only on its owner", func(t *testing.T) {
		r := newExec(t, c, url, "exec_owner")
		batch := r.batch("A", "1")
		r.release("A", r.handover("1", "B"))
		r.wantFenced("after the hand-over", r.write(batch, "LATE", 1))
		r.wantState("NEW")
		r.must(r.write(r.batch("B", "1"), "NEXT", 1))
		r.wantState("NEXT")
	})
	t.Run("F3 a hand-over and a statement wait for each other", func(t *testing.T) { testExecBesideHandover(t, c, url) })
}

func testExecBesideHandover(t *testing.T, c *center.Center, url string) {
	if !needsRowLocks(t, c) {
		return
	}
	if c.Dialect() == schema.TiDB {
		t.Skip("nothing says which sessions wait for locks")
	}
	r := newExec(t, c, url, "exec_handover")
	batch := r.batch("A", "1")
	row := Begin(t, c)
	r.in(row, "UPDATE exec_handover SET state = 'HELD'")
	ended := r.start(func() error { return r.write(batch, "FIRST", 1) })
	if released := r.release("A", r.handover("1", "B")); len(released) > 0 {
		t.Errorf("released queues %v under a statement, want none", released)
	}
	r.must(row.Commit())
	r.must(<-ended)
	r.wantState("FIRST")
	change := Begin(t, c)
	r.in(change, "UPDATE schedule_queue SET cur_server = '"+r.uuid("B")+"', epoch = epoch + 1 WHERE queue_id = '1' AND task_type = '"+r.task+"'")
	ended = r.start(func() error { return r.write(batch, "LATE", 1) })
	r.must(change.Commit())
	r.wantFenced("behind the hand-over", <-ended)
	r.wantState("FIRST")
}
