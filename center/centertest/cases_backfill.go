package centertest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// testBackfills checks in which order a backfill makes the runs of its slots.
func testBackfills(t *testing.T, c *center.Center) {
	t.Run("R20 each slot of the range gets one run, the oldest first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, nil)
		r.wantRunStates()
		for done := range 3 {
			r.tick()
			r.wantBackfill(id, runs.BackfillRunning, done+1, 0)
			r.wantSlotStates(id, append(append(slices.Repeat([]string{"SUCCESS"}, done), "RUNNING"), slices.Repeat([]string{""}, 2-done)...)...)
			r.finishAll("A", "0")
		}
		r.tick()
		b := r.wantBackfill(id, runs.BackfillSuccess, 3, 0)
		if b.RunsSuccess != 3 || b.RunsOpen != 0 || b.EndedAt.IsZero() || b.Message != "" {
			t.Fatalf("the backfill is %+v, want 3 successes and its end", b)
		}
		r.wantSlots(r.slot, "3h0m0s", "2h0m0s", "1h0m0s")
		if run := r.wantSlotStates(id, "SUCCESS", "SUCCESS", "SUCCESS")[0]; r.run(run.RunID).Trigger != r.task || r.run(run.RunID).Priority != -1 {
			t.Fatalf("the run is %+v, want it of the trigger, with priority -1", r.run(run.RunID))
		}
		if next := r.readTrigger(r.task); next.Fires != 0 || !next.NextFireAt.Equal(r.slot.Add(time.Hour)) {
			t.Fatalf("the trigger is %+v, want no firings and the next in an hour", next)
		}
	})
	t.Run("R20 newest first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(4, func(b *runs.BackfillRange) { b.NewestFirst, b.Parallel = true, 2 })
		r.tick()
		r.wantSlotStates(id, "", "", "READY", "RUNNING")
		r.finishAll("A", "0")
		r.tick()
		r.wantSlotStates(id, "", "READY", "RUNNING", "SUCCESS")
	})
	t.Run("R20 a change of the trigger does not change an open backfill", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, nil)
		_, err := r.applyTrigger(runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerEvery, Expression: "7m", Params: "new"})
		r.must(err)
		for range 3 {
			r.tick()
			r.finishAll("A", "0")
		}
		r.tick()
		r.wantBackfill(id, runs.BackfillSuccess, 3, 0)
		r.wantSlots(r.slot, "3h0m0s", "2h0m0s", "1h0m0s")
	})
}

// testBackfillTicks checks which ticks make the runs: those of several servers at once, and those that a heartbeat asks for.
func testBackfillTicks(t *testing.T, c *center.Center, url string) {
	t.Run("R20 R2 servers that tick at the same time make each run once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(8, func(b *runs.BackfillRange) { b.Parallel = 8 })
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			other := Open(t, url, center.Options{})
			all.Go(func() { errs[i] = second(other.Engine().Scheduler.Tick(t.Context(), r.task)) })
		}
		all.Wait()
		r.must(errors.Join(errs...))
		r.wantBackfill(id, runs.BackfillRunning, 8, 0)
		r.wantOneRunEach(8)
	})
	t.Run("R20 a heartbeat asks for ticks while a backfill has slots left", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(1, nil)
		asks := func(want bool) {
			t.Helper()
			if got := r.asksForTicks("A"); got != want {
				t.Fatalf("the heartbeat asks for ticks: %t, want %t", got, want)
			}
		}
		asks(true)
		r.must(c.Engine().Backfills.SetPaused(t.Context(), id, true, "test"))
		asks(false)
		r.must(c.Engine().Backfills.SetPaused(t.Context(), id, false, "test"))
		r.tick()
		r.finishAll("A", "0")
		asks(true)
		r.tick()
		r.wantBackfill(id, runs.BackfillSuccess, 1, 0)
		asks(false)
	})
	t.Run("R20 a backfill with an invalid row ends, and the others go on", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		bad, id := r.backfillHours(2, nil), r.backfillHours(1, nil)
		r.exec("UPDATE schedule_backfill SET expression = 'often' WHERE backfill_id = '%s'", bad)
		r.tick()
		if b := r.wantBackfill(bad, runs.BackfillFailed, 0, 0); !strings.Contains(b.Message, `expression ("often")`) {
			t.Fatalf("the message is %q, want it to name the expression", b.Message)
		}
		r.wantBackfill(id, runs.BackfillRunning, 1, 0)
	})
}
