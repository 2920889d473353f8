package runs_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// Submit commits a run, and the reply is lost. The second try finds the run, and cannot know which call made it.
func TestSubmitAfterALostReply(t *testing.T) {
	t.Parallel()
	direct := testdb.URL(t, testdb.Postgres)
	db := centertest.Open(t, direct, center.Options{}).DB()
	url, proxy := testdb.Through(t, direct)
	c := centertest.Open(t, url, center.Options{})
	if _, err := c.Tasks().Define(t.Context(), "sweep", center.Settings{Mode: center.ModeRun, Queues: 1}); err != nil {
		t.Fatal(err)
	}
	// The constraint trigger makes the commit wait for a lock that the test holds.
	for _, statement := range []string{
		`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'`,
		`CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON schedule_run DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	if _, err := lock.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		id    string
		there bool
		err   error
	}
	submitted := make(chan answer, 1)
	go func() {
		id, there, err := c.Engine().Runs.Submit(t.Context(), "sweep", "k", "")
		submitted <- answer{id, there, err}
	}()
	for deadline := time.Now().Add(time.Minute); ; {
		var n int
		err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`).Scan(&n)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no commit waits: %v", err)
		}
		if n == 1 {
			break
		}
	}
	proxy.Cut()
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	a := <-submitted
	if r, err := c.Runs().Get(t.Context(), a.id); a.err != nil || a.there || err != nil || r.Key != "k" {
		t.Errorf("%+v; run %+v, %v", a, r, err)
	}
}
