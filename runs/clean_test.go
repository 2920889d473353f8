package runs_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// R12: between the read of retention and its deletions, a rerun reopens the run.
func TestRetentionLeavesTheQueuesOfARerun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "settle")
		id, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{Key: "k"})
		must(t, err)
		_, err = c.Engine().Scheduler.Tick(t.Context(), "settle")
		must(t, err)
		must(t, c.Engine().Runs.Cancel(t.Context(), id, "test"))
		must(t, c.Engine().Runs.Rerun(t.Context(), id, "test"))
		if n, err := c.Engine().Runs.CleanStaleRead(t.Context(), id); err != nil || n != 0 {
			t.Fatalf("clean a run that is open again: got %d, %v, want 0", n, err)
		}
		must(t, c.Engine().Runs.Cancel(t.Context(), id, "test"))
		if n, err := c.Engine().Runs.CleanStaleRead(t.Context(), id); err != nil || n != 1 {
			t.Fatalf("clean a run that has ended: got %d, %v, want 1", n, err)
		}
	})
}

// R12 R22: between the read of retention and its deletions, another run begins to wait for the run, which is kept. Without
// it the other run would fail.
func TestRetentionLeavesARunThatAnotherWaitsForNow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "extract", "report")
		rs := c.Engine().Runs
		submit := func(task, key string) string {
			id, _, err := rs.Submit(t.Context(), task, runs.Submission{Key: key})
			must(t, err)
			return id
		}
		old, other, report := submit("extract", "old"), submit("extract", "other"), submit("report", "k")
		must(t, rs.Depend(t.Context(), report, other, "test"))
		must(t, rs.Depend(t.Context(), report, old, "test"))
		centertest.Exec(t, c, "UPDATE schedule_run SET state = 'SUCCESS', finished_at = scheduled_at WHERE run_id = '"+old+"'")
		if n, err := rs.DeleteStaleRead(t.Context(), old); err != nil || n != 0 {
			t.Fatalf("clean a run for which another waits: got %d, %v, want 0", n, err)
		}
		must(t, rs.Cancel(t.Context(), report, "test"))
		if n, err := rs.DeleteStaleRead(t.Context(), old); err != nil || n != 2 {
			t.Fatalf("clean a run for which none waits: got %d, %v, want 2: the run and the dependency", n, err)
		}
	})
}
