package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// A tick is one statement when nothing is due, and so is a claim when there is nothing to claim. A page of triggers
// takes a number of statements that does not depend on the number of triggers.
func TestRunsTakeFewStatements(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, url, center.Options{})
	defineRunTasks(t, c, "settle")
	for i := range 50 {
		_, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{Key: fmt.Sprint(i)})
		must(t, err)
	}
	tick := func() {
		if _, err := c.Engine().Scheduler.Tick(t.Context(), "settle"); err != nil {
			t.Error(err)
		}
	}
	claim := func() { // of a queue that the run does not have
		if _, err := c.Engine().Sweeps.Claim(t.Context(), "settle", "server", []center.QueueEpoch{{ID: "1", Epoch: 7}},
			1); err != nil {
			t.Error(err)
		}
	}
	tick() // opens one run; 49 are READY
	wantStatements(t, "a tick when nothing is due", testdb.Statements(proxy.Listen(tick)), 1)
	wantStatements(t, "a claim when there is nothing to claim", testdb.Statements(proxy.Listen(claim)), 1)
	defineTriggers(t, c, 100, "settle")
	wantStatements(t, "a tick that fires 100 triggers", testdb.Statements(proxy.Listen(tick)), 25)
}

// R13: a tick fails at most 100 runs that have waited for too long. It opens none of the others.
func TestRunThatIsTooLateIsNotOpened(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "settle")
		late, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{Key: "late", Priority: 1})
		must(t, err)
		next, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{Key: "next"})
		must(t, err)
		centertest.Exec(t, c, `UPDATE schedule_run SET deadline_at = '2020-01-01 00:00:00.000000' WHERE run_key = 'late'`)
		must(t, c.Engine().Scheduler.OpenNext(t.Context(), "settle"))
		for id, want := range map[string]string{late: runs.Ready, next: runs.Running} {
			run, err := c.Engine().Runs.Get(t.Context(), id)
			if err != nil || run.State != want {
				t.Fatalf("run %s is %s, want %s: %v", run.Key, run.State, want, err)
			}
		}
	})
}

// wantStatements checks that an operation sent at least one and at most a number of statements.
func wantStatements(t *testing.T, operation string, sent []string, most int) {
	t.Helper()
	t.Logf("%s takes %d statements", operation, len(sent))
	if len(sent) == 0 || len(sent) > most {
		t.Errorf("statements of %s: got %d, want 1 to %d:\n%s", operation, len(sent), most, strings.Join(sent, "\n"))
	}
}
