package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testRunCounts checks that a run whose counts miss items says so.
func testRunCounts(t *testing.T, c *center.Center) {
	sweep := func(r *fixture, server string, done int64) runs.Sweep {
		s := r.claimOne(server, "0")
		r.must(c.Engine().Sweeps.Save(t.Context(), s, runs.Progress{ItemsDone: s.ItemsDone + done}))
		return s
	}
	want := func(r *fixture, id string, done int64, atLeast bool) {
		r.Helper()
		run, err := ops.New(c).Runs().Get(t.Context(), id)
		r.must(err)
		if q := r.runQueue(id, "0"); run.ItemsDone != done || run.ItemsAtLeast != atLeast || q.ItemsAtLeast != atLeast {
			r.Fatalf("the run is %+v with queue %+v, want %d items, a lower bound: %t", run.Run, q, done, atLeast)
		}
	}
	t.Run("R15 the counts are lower bounds after a process has died", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.join("B")
		id := r.submitAndOpen("k")
		sweep(r, "A", 7)
		want(r, id, 7, false)
		r.moveQueue("0", "B") // A is dead: it has executed more items than it has saved
		s := r.claimOne("B", "0")
		want(r, id, 7, true)
		r.must(c.Engine().Sweeps.Finish(t.Context(), s, runs.Progress{ItemsDone: s.ItemsDone + 5}))
		r.wantState(id, runs.Success)
		want(r, id, 12, true)
	})
	t.Run("R15 the counts are lower bounds after a cancellation", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		sweep(r, "A", 3)
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		want(r, id, 3, true)
	})
	t.Run("R15 the counts are exact if each sweep has recorded its end", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.join("B")
		id := r.submitAndOpen("k")
		r.must(c.Engine().Sweeps.Suspend(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 2}))
		r.moveQueue("0", "B")
		s := r.claimOne("B", "0")
		r.must(second(c.Engine().Sweeps.Fail(t.Context(), s, runs.Progress{ItemsDone: s.ItemsDone + 2}, "no", false)))
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.wantState(id, runs.Cancelled)
		want(r, id, 4, false)
	})
}
