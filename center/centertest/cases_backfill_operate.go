package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testBackfillCommands checks how operators pause and cancel a backfill.
func testBackfillCommands(t *testing.T, c *center.Center) {
	t.Run("R20 while a backfill is paused no further slot gets a run", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.must(c.Engine().Backfills.SetPaused(t.Context(), id, true, "test"))
		r.finishAll("A", "0")
		r.tick()
		r.wantSlotStates(id, "SUCCESS", "")
		r.must(c.Engine().Backfills.SetPaused(t.Context(), id, false, "test"))
		r.tick()
		r.wantSlotStates(id, "SUCCESS", "RUNNING")
		r.must(c.Engine().Backfills.SetPaused(t.Context(), id, true, "test"))
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, runs.BackfillSuccess, 2, 0) // nothing was left
		if err := c.Engine().Backfills.SetPaused(t.Context(), id, false, "test"); !errors.Is(err, runs.ErrBackfillState) {
			t.Fatalf("resume of a backfill that has ended: got %v, want ErrBackfillState", err)
		}
	})
	t.Run("R20 a cancelled backfill cancels its open runs and their dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		a := g["a"]
		id := a.backfillHours(4, func(b *runs.BackfillRange) { b.Parallel = 2 })
		g.succeed("a")
		a.tick()
		a.must(c.Engine().Backfills.Cancel(t.Context(), id, "test"))
		b := a.wantBackfill(id, runs.BackfillCancelled, 2, 0)
		if want := "2 of 4 slots were left, and 3 runs were open"; b.Message != want {
			t.Fatalf("the message is %q, want %q", b.Message, want)
		}
		a.tick()
		slots := a.wantSlotStates(id, "SUCCESS", "CANCELLED", "", "")
		g.want(slots[0].RunID, "a SUCCESS", "b CANCELLED")
		g.want(slots[1].RunID, "a CANCELLED", "b CANCELLED")
		g["b"].wantProblems()
		a.must(c.Engine().Runs.Rerun(t.Context(), slots[1].RunID, "test"))
		a.wantBackfill(id, runs.BackfillCancelled, 2, 0)
	})
	t.Run("R20 R5 after a crash the ticks go on with a cancellation", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(1, nil)
		g["a"].tick()
		slot := g["a"].wantSlotStates(id, "RUNNING")[0]
		g["a"].exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE backfill_id = '%s'", id)
		g["a"].tick()
		g["b"].tick()
		g.want(slot.RunID, "a CANCELLED", "b CANCELLED")
	})
}

// testBackfillErrors checks which ranges are refused.
func testBackfillErrors(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 1)
	_, last := r.hourly(nil)
	fast := r.defineTrigger(runs.Trigger{Name: r.task + ".fast", Kind: runs.TriggerEvery, Expression: "1s", StartAt: last.Add(-100 * time.Hour)})
	once := r.defineTrigger(runs.Trigger{Name: r.task + ".once", Kind: runs.TriggerOnce, Expression: "2999-01-01T00:00:00Z"})
	idle, tooHigh := r.sibling("idle"), 2_000_000_000_000_000_000
	idle.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	for name, tt := range map[string]struct {
		change func(*runs.BackfillRange)
		want   string
	}{
		"several triggers": {func(*runs.BackfillRange) {}, "several triggers, name one of them: " + r.task + ", " + fast.Name + ", " + once.Name},
		"kind ONCE":        {func(b *runs.BackfillRange) { b.Trigger = once.Name }, "is of kind ONCE and has one slot"},
		"another target":   {func(b *runs.BackfillRange) { b.TaskType, b.Trigger = idle.task, r.task }, "trigger " + r.task + " fires " + r.task},
		"no trigger":       {func(b *runs.BackfillRange) { b.TaskType = idle.task }, "has no trigger, and so no slots"},
		"future":           {func(b *runs.BackfillRange) { b.Trigger, b.To = r.task, last.Add(3*time.Hour) }, "must not be in the future"},
		"empty":            {func(b *runs.BackfillRange) { b.Trigger, b.To = r.task, b.From }, "must be before to"},
		"no from":          {func(b *runs.BackfillRange) { b.Trigger, b.From = r.task, time.Time{} }, "from must be set"},
		"parallel":         {func(b *runs.BackfillRange) { b.Trigger, b.Parallel = r.task, 101 }, "parallel (101) must be from 1 to 100"},
		"no slots": {func(b *runs.BackfillRange) {
			b.Trigger, b.From, b.To = r.task, last.Add(-20*time.Hour), last.Add(-19*time.Hour)
		}, "has no slot in the range: its slots begin at "},
		"too many":      {func(b *runs.BackfillRange) { b.Trigger, b.From = fast.Name, last.Add(-3*time.Hour) }, "the range has 10800 slots; a backfill has at most 10000"},
		"far too many":  {func(b *runs.BackfillRange) { b.Trigger, b.From = fast.Name, last.Add(-90*time.Hour) }, "the range has more than 100000 slots"},
		"far past":      {func(b *runs.BackfillRange) { b.Trigger, b.From = r.task, time.Date(900, 1, 1, 0, 0, 0, 0, time.UTC) }, "from (0900-01-01T00:00:00Z) must be in the years 1000 to 9899"},
		"priority":      {func(b *runs.BackfillRange) { b.Trigger, b.Priority = r.task, &tooHigh }, "priority (2000000000000000000) must be between"},
		"unknown name":  {func(b *runs.BackfillRange) { b.Trigger = "nobody" }, "unknown trigger"},
		"unknown task":  {func(b *runs.BackfillRange) { b.TaskType = "nobody" }, "unknown task type"},
		"negative":      {func(b *runs.BackfillRange) { b.Trigger, b.Parallel = r.task, -1 }, "parallel (-1) must be from 1 to 100"},
		"reversed ends": {func(b *runs.BackfillRange) { b.Trigger, b.To = r.task, b.From.Add(-time.Hour) }, "must be before to"},
	} {
		t.Run("R20 a range is refused: "+name, func(t *testing.T) {
			want := r.hours(last, 2, tt.change)
			_, err := c.Engine().Backfills.Start(t.Context(), want, "test")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("start: got %v, want an error with %q", err, tt.want)
			}
			if _, _, err := ops.New(c).Backfills().Preview(t.Context(), want); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("preview: got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_backfill WHERE task_type = '%s'", r.task); n != 0 {
		t.Fatalf("%d backfills were started, want none", n)
	}
}
