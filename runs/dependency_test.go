package runs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// R5: two operators each define half of a cycle at the same time. One of them is refused.
func TestConcurrentHalvesOfACycle(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		first, second := centertest.Open(t, url, center.Options{}), centertest.Open(t, url, center.Options{})
		defineRunTasks(t, first, "a", "b")
		// A third transaction holds locks that let neither operator write before both have read, or wait to read.
		blocker := centertest.Begin(t, first)
		oneWriter := first.Roster().DB.OneWriter // the second operator waits before it reads
		if !oneWriter {
			_, err := blocker.ExecContext(t.Context(), `INSERT INTO schedule_task_after (task_type, upstream, rule)
				VALUES ('a', 'b', 'SUCCESS'), ('b', 'a', 'SUCCESS')`)
			must(t, err)
		}
		var both sync.WaitGroup
		var errA, errB error
		both.Go(func() { errA = centertest.RunAfter(t.Context(), first, "a", runs.After{Upstream: "b"}) })
		both.Go(func() { errB = centertest.RunAfter(t.Context(), second, "b", runs.After{Upstream: "a"}) })
		if !oneWriter {
			waitForSessions(t, url, first, 2)
		}
		must(t, blocker.Rollback())
		both.Wait()
		if (errA == nil) == (errB == nil) || !strings.Contains(errors.Join(errA, errB).Error(), "a cycle: ") {
			t.Fatalf("define both halves of a cycle: got %v and %v, want one error", errA, errB)
		}
	})
}

// waitForSessions waits until n sessions of the database wait for locks.
func waitForSessions(t *testing.T, url string, c *center.Center, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); testdb.Waiting(t, url, c.DB()) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("fewer than %d sessions wait for locks after a minute", n)
		}
	}
}

// R18: two transactions make the runs of the two upstreams of a join at the same time. The later transaction makes the
// run of the join.
func TestConcurrentUpstreamsMakeOneRunOfAJoin(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		first, second := centertest.Open(t, url, center.Options{}), centertest.Open(t, url, center.Options{})
		defineRunTasks(t, first, "a", "b", "end")
		must(t, centertest.RunAfter(t.Context(), first, "end", runs.After{Upstream: "a"}, runs.After{Upstream: "b"}))
		// A third transaction has made runs of the same keys: neither upstream's run is made before both have read, or wait
		// to read.
		blocker := centertest.Begin(t, first)
		oneWriter := first.Roster().DB.OneWriter // the second upstream waits before it reads
		if !oneWriter {
			_, err := blocker.ExecContext(t.Context(), `INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id,
				scheduled_at, state)
				VALUES ('x', 'a', 'k', 'x', '2000-01-01 00:00:00', 'READY'), ('y', 'b', 'k', 'y', '2000-01-01 00:00:00', 'READY')`)
			must(t, err)
		}
		var both sync.WaitGroup
		var errA, errB error
		both.Go(func() { _, _, errA = ops.New(first).Runs().Submit(t.Context(), "a", runs.Submission{Key: "k"}) })
		both.Go(func() { _, _, errB = ops.New(second).Runs().Submit(t.Context(), "b", runs.Submission{Key: "k"}) })
		if !oneWriter {
			waitForSessions(t, url, first, 2)
		}
		must(t, blocker.Rollback())
		both.Wait()
		must(t, errors.Join(errA, errB))
		list, err := ops.New(first).Runs().List(t.Context(), runs.Filter{TaskType: "end"}, 10)
		must(t, err)
		if len(list) != 1 || list[0].State != runs.Waiting || list[0].Key != "k" {
			t.Fatalf("runs of the join: got %+v, want one of key k that is WAITING", list)
		}
	})
}
