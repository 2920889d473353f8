package centertest

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// testBackfillDependants checks what a backfill means for the task types that run after its own.
func testBackfillDependants(t *testing.T, c *center.Center) {
	t.Run("R20 R5 a slot is in progress until its dependants have ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(2, nil)
		g.succeed("a")
		g["a"].tick()
		first := g["a"].wantSlotStates(id, "SUCCESS", "")[0].RunID
		if run := g["b"].run(g.of("b", first)); run.Backfill != id || run.Priority != -1 || run.State != runs.Ready {
			t.Fatalf("the dependant is %+v, want it READY, in the backfill and with its priority", run)
		}
		g.succeed("b")
		g["a"].tick()
		g["a"].wantSlotStates(id, "SUCCESS", "RUNNING")
		g["a"].finishAll("A", "0")
		g.fail("b", "boom")
		g["a"].tick()
		b := g["a"].wantBackfill(id, runs.BackfillFailed, 2, 0)
		if want := "0 of 2 runs did not succeed, and 1 run of dependants did not"; b.Message != want || b.DependantsFailed != 1 {
			t.Fatalf("the backfill is %+v, want the message %q", b, want)
		}
	})
	t.Run("R20 without dependants only the task type itself has runs", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(2, func(b *runs.BackfillRange) { b.NoDependants = true })
		g.succeed("a")
		g.succeed("a")
		g["a"].tick()
		g["a"].wantBackfill(id, runs.BackfillSuccess, 2, 0)
		g["b"].wantRunStates()
	})
}

// testBackfillGraphs checks which runs of dependants a backfill makes, joins and takes over.
func testBackfillGraphs(t *testing.T, c *center.Center) {
	t.Run("R20 R18 a backfill of one upstream makes joins", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g["b"].slot = g.fireSlot("a")
		g["b"].hourly(nil)
		g["end"].wantRunStates()
		b, err := c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: g["b"].task, From: g["b"].slot, To: g["b"].slot.Add(time.Minute)}, "test")
		g["b"].must(err)
		g["b"].tick()
		g["b"].wantSlotStates(b.ID, "RUNNING")
		g["end"].wantRunStates(runs.Waiting)
	})
	t.Run("R20 R4 a run of a backfill is not coalesced", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		g["b"].exec("UPDATE schedule_task_type SET coalesce_runs = TRUE WHERE task_type = '%s'", g["b"].task)
		id := g["a"].backfillHours(2, func(b *runs.BackfillRange) { b.Parallel = 2 })
		g.succeed("a")
		g.succeed("a")
		g["a"].wantSlotStates(id, "SUCCESS", "SUCCESS")
		g["b"].wantRunStates(runs.Ready, runs.Ready)
	})
	t.Run("R20 R11 a rerun takes over the dependants of the run", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		first := g["a"].backfillHours(1, nil)
		g.fail("a", "boom")
		g["a"].tick()
		g["a"].wantBackfill(first, runs.BackfillFailed, 1, 0)
		id := g["a"].backfillHours(1, func(b *runs.BackfillRange) { b.RerunFailed = true })
		g.succeed("a")
		g["a"].tick()
		g["a"].wantBackfill(id, runs.BackfillRunning, 1, 0)
		g.succeed("b")
		g["a"].tick()
		g["a"].wantBackfill(id, runs.BackfillSuccess, 1, 0)
	})
}
