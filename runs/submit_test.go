package runs_test

import (
	"database/sql"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// A commit whose reply is lost may have made the run. The retry finds the run and cannot know which call made it.
func TestSubmitAfterALostReply(t *testing.T) {
	t.Parallel()
	direct := testdb.URL(t, testdb.Postgres)
	observer := centertest.Open(t, direct, center.Options{})
	url, proxy := testdb.Through(t, direct)
	c := centertest.Open(t, url, center.Options{})
	centertest.Define(t, c, "sweep", center.Settings{Mode: center.ModeRun, Queues: 1})
	lock := blockCommits(t, observer)
	type reply struct {
		id      string
		existed bool
		err     error
	}
	submitted := make(chan reply, 1)
	go func() {
		id, existed, err := c.Engine().Runs.Submit(t.Context(), "sweep", runs.Submission{Key: "k"})
		submitted <- reply{id, existed, err}
	}()
	waitForCommit(t, observer)
	proxy.Cut()
	must(t, lock.Rollback())
	got := <-submitted
	run, err := ops.New(c).Runs().Get(t.Context(), got.id)
	if got.err != nil || got.existed || err != nil || run.Key != "k" {
		t.Errorf("Submit after a lost reply: got %+v and run %+v, %v, want a new run with key k", got, run, err)
	}
}

// blockCommits makes each commit of a new run wait until the returned transaction has ended: a deferred trigger takes
// the lock that the transaction holds.
func blockCommits(t *testing.T, c *center.Center) *sql.Tx {
	t.Helper()
	centertest.Exec(t, c,
		`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql
			AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'`,
		`CREATE CONSTRAINT TRIGGER wait_for_test AFTER INSERT ON schedule_run
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_test()`)
	tx := centertest.Begin(t, c)
	_, err := tx.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock(1)`)
	must(t, err)
	return tx
}

// waitForCommit waits until a commit is blocked.
func waitForCommit(t *testing.T, c *center.Center) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var n int
		must(t, c.DB().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`).Scan(&n))
		if n == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no commit waits for the lock after a minute")
		}
	}
}

// R21: a transaction of a database without a roster is refused.
func TestSubmitTxOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "settle")
		other := centertest.Open(t, testdb.URL(t, path.Base(t.Name())), center.Options{})
		centertest.Exec(t, other, `DROP TABLE schedule_submission`, `ALTER TABLE schedule_task_type RENAME TO gone`)
		_, _, err := c.Engine().Runs.SubmitTx(t.Context(), centertest.Begin(t, other), "settle", runs.Submission{})
		if !errors.Is(err, runs.ErrOtherDatabase) {
			t.Fatalf("error %v, want ErrOtherDatabase", err)
		}
	})
}
