package centertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// fireSlot lets the triggers of task types fire once, one after the other, for the same slot. It returns the slot.
func (g graph) fireSlot(names ...string) (slot time.Time) {
	first := g[names[0]]
	first.Helper()
	for _, name := range names {
		g[name].slot = first.slot
		_, slot = g[name].hourly(nil)
		first.slot = slot
		g[name].downSince(slot)
		g[name].tick()
	}
	return slot
}

// finishRunning ends the run of a task type that is RUNNING with success.
func (g graph) finishRunning(name string) {
	g[name].Helper()
	g[name].finishAll("A", "0")
}

func testJoins(t *testing.T, c *center.Center) {
	t.Run("R18 the doctor names a join that has an upstream without slots", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g["a"].hourly(nil)
		if got := g["end"].findings("joins"); len(got) != 1 || !strings.Contains(got[0], "and no trigger leads to "+g["b"].task) {
			t.Fatalf("findings %q, want that b has no slots", got)
		}
		g["b"].hourly(nil)
		if got := g["end"].findings("joins"); len(got) > 0 {
			t.Fatalf("findings %q for upstreams that have slots", got)
		}
	})
	t.Run("R18 the runs of one slot make one run", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g.fireSlot("a")
		g["end"].wantRunStates()
		slot := g.fireSlot("a", "b")
		g["end"].wantRunStates(runs.Waiting)
		g["end"].wantSlots(slot, "0s")
		g.finishRunning("a")
		g["end"].wantRunStates(runs.Waiting)
		g.finishRunning("b")
		g["end"].wantRunStates(runs.Ready)
		g.succeed("end")
		g["end"].wantRunStates(runs.Success)
	})
	t.Run("R18 the last upstream is made after the others have ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g.fireSlot("a")
		g.finishRunning("a")
		g.fireSlot("a", "b")
		g["end"].wantRunStates(runs.Waiting)
		g.finishRunning("b")
		g["end"].wantRunStates(runs.Ready)
	})
	t.Run("R18 slots that differ make no run", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		slot := g.fireSlot("a")
		g["b"].slot = slot.Add(-time.Second)
		g.fireSlot("b")
		g["a"].wantRunStates(runs.Running)
		g["b"].wantRunStates(runs.Running)
		g["end"].wantRunStates()
	})
	t.Run("R18 after_any makes a run for each", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after any a b")
		g.fireSlot("a", "b")
		g["end"].wantRunStates(runs.Waiting, runs.Waiting)
		g.finishRunning("a")
		g["end"].wantRunStates(runs.Ready, runs.Waiting)
	})
	t.Run("R18 a second run of the slot finds the run of the join", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		slot := g.fireSlot("a", "b")
		g["a"].exec("UPDATE schedule_run SET state = 'SUCCESS' WHERE task_type = '%s'", g["a"].task)
		late := g["a"].defineTrigger(runs.Trigger{Name: g["a"].task + ".late", Kind: runs.TriggerEvery, Expression: "1h", StartAt: slot.Add(-10 * time.Hour)})
		g["a"].exec("UPDATE schedule_trigger SET next_fire_at = '%s' WHERE name = '%s'", slot.UTC().Format(timeLayout), late.Name)
		g["a"].tick()
		g["a"].wantRunStates(runs.Success, runs.Running)
		g.finishRunning("b")
		g["end"].wantRunStates(runs.Waiting) // for the second run of a
		g.finishRunning("a")
		g["end"].wantRunStates(runs.Ready)
	})
}

// testJoinsWithoutTriggers checks the joins of runs that are submitted, and of runs that are reopened.
func testJoinsWithoutTriggers(t *testing.T, c *center.Center) {
	t.Run("R18 submitted runs belong together by their key", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b?")
		g["a"].submit("k")
		g["a"].submit("l")
		g["end"].wantRunStates()
		root := g["b"].submit("k")
		end := g["end"].run(g.of("end", root))
		if end.Key != "k" || end.Params != "p" || end.Trigger != "" {
			t.Fatalf("the run of end is %+v, want key k, params p and no trigger", end)
		}
		g["end"].wantRunStates(runs.Waiting)
		g.fail("b", "no")
		g["end"].wantRunStates(runs.Waiting)
		g.succeed("a") // of k, the older one
		g["end"].wantRunStates(runs.Ready)
	})
	t.Run("R18 R11 a SKIPPED upstream counts when it is reopened", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g["a"].hourly(nil)
		g["a"].fire(g["a"].task)
		g.fireSlot("a")
		g["a"].wantRunStates(runs.Skipped, runs.Running)
		g.fireSlot("a", "b")
		g["end"].wantRunStates()
		id := g["a"].readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' AND state = 'SKIPPED'", g["a"].task)[0]
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		g["end"].wantRunStates(runs.Waiting)
	})
	t.Run("R18 R11 a rerun of an upstream lets the one run wait", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		root := g["a"].submit("k")
		g["b"].submit("k")
		g.fail("a", "no")
		g["end"].wantRunStates(runs.DependentFailed)
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), root, "test"))
		g["end"].wantRunStates(runs.Waiting)
		g.succeed("b")
		g.succeed("a")
		g["end"].wantRunStates(runs.Ready)
	})
}

func testJoinsOfJoins(t *testing.T, c *center.Center) {
	t.Run("R18 what runs after a join runs once", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "both after a b", "next after both", "last after next a b")
		g.fireSlot("b", "a")
		for _, name := range []string{"both", "next", "last"} {
			g[name].wantRunStates(runs.Waiting)
		}
		g.finishRunning("a")
		g.finishRunning("b")
		g.succeed("both")
		g["last"].wantRunStates(runs.Waiting)
		g.succeed("next")
		g["last"].wantRunStates(runs.Ready)
	})
	t.Run("R18 an upstream of two levels joins another trigger", func(t *testing.T) {
		g := newGraph(t, c, "a", "y after a", "b", "end after y b")
		g.fireSlot("b", "a")
		g["end"].wantRunStates(runs.Waiting)
		g.finishRunning("a")
		g.succeed("y")
		g.finishRunning("b")
		g["end"].wantRunStates(runs.Ready)
	})
	t.Run("R18 the run is like that of the first upstream", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g.fireSlot("b", "a")
		triggers := g["end"].readColumn("SELECT trigger_name FROM schedule_run WHERE task_type = '%s'", g["end"].task)
		if want := g["a"].task; len(triggers) != 1 || triggers[0] != want {
			t.Fatalf("triggers of the runs of end: %q, want %s", triggers, want)
		}
	})
	t.Run("R18 the run has nothing of how an upstream went", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b?")
		g["a"].submit("k")
		g.fail("a", "no")
		g["a"].exec(`UPDATE schedule_run SET paused = TRUE, cancel_requested = TRUE, acked_at = created_at, acked_by = 'ann',
			alerted_at = created_at, max_attempts = 7, not_before = created_at, items_done = 5, items_at_least = TRUE, version = 9
			WHERE task_type = '%s'`, g["a"].task)
		end := g["end"].run(g.of("end", g["b"].submit("k")))
		want := runs.Run{
			ID: end.ID, TaskType: end.TaskType, OwnSign: end.OwnSign, Key: "k", RootID: end.RootID, State: runs.Waiting, Params: "p",
			Priority: end.Priority, TraceParent: end.TraceParent, ScheduledAt: end.ScheduledAt, TimeZone: "UTC", CreatedAt: end.CreatedAt, WaitingSince: end.WaitingSince,
			Version: end.Version,
		}
		if diff := cmp.Diff(want, end); diff != "" || end.Version == 9 {
			t.Fatalf("the run of end, of version %d (-want +got):\n%s", end.Version, diff)
		}
		if b := g["b"].run(end.RootID); end.ScheduledAt != b.ScheduledAt || end.CreatedAt.Before(b.CreatedAt) {
			t.Fatalf("the run of end has the slot %s and was made at %s, want those of b: %s, %s", end.ScheduledAt, end.CreatedAt, b.ScheduledAt, b.CreatedAt)
		}
	})
	t.Run("R18 R5 a change applies to new runs", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g["a"].submit("k")
		g["end"].must(g["end"].runAfter(runs.After{Upstream: g["a"].task, Any: true}, runs.After{Upstream: g["b"].task, Any: true}))
		g["end"].wantRunStates()
		g["b"].submit("l")
		g["end"].wantRunStates(runs.Waiting)
	})
}
