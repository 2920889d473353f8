package roster_test

import (
	"context"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
)

// S16: a commit whose reply is lost may have recorded the alert. Nobody would raise it if the server did not, even if
// its session ends meanwhile.
func TestAlertAfterALostReply(t *testing.T) {
	for name, ends := range map[string]bool{"the session goes on": false, "the session ends": true} {
		t.Run(name, func(t *testing.T) { testLostReply(t, ends) })
	}
}

func testLostReply(t *testing.T, ends bool) {
	t.Helper()
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	direct := testdb.URL(t, testdb.Postgres)
	observer := openTask(t, direct, "sweep", 1)
	url, proxy := testdb.Through(t, direct)
	c := centertest.Open(t, url, center.Options{})
	centertest.Exec(t, observer,
		`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql
			AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'`,
		`CREATE CONSTRAINT TRIGGER wait_for_test AFTER INSERT ON schedule_event
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_test()`)
	blocker := centertest.Begin(t, observer)
	if _, err := blocker.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	type reply struct {
		begins bool
		err    error
	}
	told := make(chan reply, 1)
	go func() {
		failing := condition.Condition{Kind: condition.Failing.Name, TaskType: "sweep", Text: "no"}
		begins, err := c.Roster().Alert(ctx, failing, time.Hour)
		told <- reply{begins, err}
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var waits int
		if err := observer.DB().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_locks l
			JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database()
			AND l.locktype = 'advisory' AND l.objid = 1 AND NOT l.granted`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no commit waits for the lock after a minute")
		}
	}
	if ends {
		end()
	} else {
		proxy.Cut()
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := <-told; !got.begins || (got.err != nil) != ends {
		t.Errorf("an alert after a lost reply: got %+v, want that it begins", got)
	}
	if ends {
		return // the database may have rolled back
	}
	var events int
	err := observer.DB().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM schedule_event WHERE kind = 'ALERT'`).Scan(&events)
	if err != nil || events != 1 {
		t.Errorf("%d events, want 1: %v", events, err)
	}
}
