package centertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testBackfillSlots checks what a backfill does with slots that have a run.
func testBackfillSlots(t *testing.T, c *center.Center) {
	t.Run("R20 a run that has ended is left alone, unless it was SKIPPED", func(t *testing.T) {
		r, ids := newEndedSlots(t, c)
		_, list, err := ops.New(c).Backfills().Preview(t.Context(), r.hours(r.slot, 5, nil))
		r.must(err)
		var actions []string
		for _, s := range list {
			actions = append(actions, s.Action+" "+s.State)
		}
		if want := []string{"MAKE ", "KEEP SUCCESS", "KEEP FAILED", "KEEP CANCELLED", "RERUN SKIPPED"}; !slices.Equal(actions, want) {
			t.Fatalf("the preview is %q, want %q", actions, want)
		}
		id := r.backfillHours(5, func(b *runs.BackfillRange) { b.Parallel = 5 })
		r.tick()
		r.wantBackfill(id, runs.BackfillRunning, 2, 3)
		r.wantSlotStates(id, "READY", "SUCCESS", "FAILED", "CANCELLED", "RUNNING")
		if run := r.run(ids[3]); run.Backfill != id || run.Priority != -1 {
			t.Fatalf("the run that was SKIPPED is %+v, want it in the backfill with its priority", run)
		}
	})
	t.Run("R20 R11 failed and cancelled runs are rerun on demand", func(t *testing.T) {
		r, ids := newEndedSlots(t, c)
		id := r.backfillHours(4, func(b *runs.BackfillRange) { b.RerunFailed, b.Parallel = true, 4 })
		r.tick()
		r.wantBackfill(id, runs.BackfillRunning, 3, 1)
		for range 3 {
			r.finishAll("A", "0")
			r.tick()
		}
		r.wantBackfill(id, runs.BackfillSuccess, 3, 1)
		r.wantState(ids[1], runs.Success)
		r.wantOneRunEach(4)
	})
}

// newEndedSlots returns a fixture whose last four slots have runs that ended SUCCESS, FAILED, CANCELLED and SKIPPED, and
// the ids of these runs.
func newEndedSlots(t *testing.T, c *center.Center) (*fixture, []string) {
	t.Helper()
	r := newRunFixture(t, c, 1)
	id := r.backfillHours(4, func(b *runs.BackfillRange) { b.Parallel = 4 })
	r.tick()
	r.finishAll("A", "0")
	r.tick()
	r.failAll("A", "boom", "0")
	r.must(c.Engine().Backfills.Cancel(t.Context(), id, "test"))
	slots := r.wantSlotStates(id, "SUCCESS", "FAILED", "CANCELLED", "CANCELLED")
	r.exec("UPDATE schedule_run SET backfill_id = NULL WHERE task_type = '%s'", r.task)
	r.exec("UPDATE schedule_run SET state = 'SKIPPED' WHERE run_id = '%s'", slots[3].RunID)
	var ids []string
	for _, s := range slots {
		ids = append(ids, s.RunID)
	}
	return r, ids
}

// testBackfillFirings checks that a backfill and the firings of its trigger do not hinder each other.
func testBackfillFirings(t *testing.T, c *center.Center) {
	t.Run("R20 R2 a backfill and the trigger make a slot once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(nil)
		r.downSince(last.Add(-time.Hour))
		r.exec("UPDATE schedule_trigger SET misfire = 'ALL' WHERE name = '%s'", r.task)
		r.tick() // the trigger makes two
		r.finishAll("A", "0")
		id := r.backfillHours(3, func(b *runs.BackfillRange) { b.Parallel = 3 })
		r.tick()
		r.wantBackfill(id, runs.BackfillRunning, 2, 1)
		r.downSince(last.Add(-3 * time.Hour)) // as if an operator had set the clock back: all slots are due again
		r.tick()
		r.wantOneRunEach(4)
	})
	t.Run("R20 R4 a backfill skips no slot of the trigger, which comes first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, func(b *runs.BackfillRange) { b.Parallel = 3 })
		r.tick()
		r.downSince(r.slot)
		r.tick()
		r.wantRunStates("RUNNING", "READY", "READY", "READY")
		r.finishAll("A", "0")
		r.tick()
		r.wantRunStates("SUCCESS", "READY", "READY", "RUNNING")
		r.wantBackfill(id, runs.BackfillRunning, 3, 0)
	})
	t.Run("R20 with an equal priority the trigger waits for few slots", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		same := 0
		r.backfillHours(3, func(b *runs.BackfillRange) { b.Parallel, b.Priority = 3, &same })
		r.tick()
		r.downSince(r.slot)
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantRunStates("SUCCESS", "READY", "READY", "RUNNING")
	})
}

// testBackfillPages checks a backfill whose slots take several reads.
func testBackfillPages(t *testing.T, c *center.Center) {
	t.Run("R20 a backfill with more slots than a page passes them all", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		start := r.now().Add(-time.Hour).Truncate(time.Second)
		r.defineTrigger(runs.Trigger{Kind: runs.TriggerEvery, Expression: "1s", StartAt: start})
		r.downSince(start.Add(3 * time.Hour)) // so that it does not fire meanwhile, and its run comes first; now would tick
		first, err := c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: r.task, From: start, To: start.Add(time.Second)}, "test")
		r.must(err)
		r.tick()
		slot := r.wantSlotStates(first.ID, "RUNNING")[0]
		for i := 1; i < 1200; i += 400 { // as if the others had runs, too
			var rows []string
			for at := i; at < min(i+400, 1200); at++ {
				when := start.Add(time.Duration(at) * time.Second).UTC()
				key := strings.Replace(r.run(slot.RunID).Key, start.UTC().Format(time.RFC3339Nano), when.Format(time.RFC3339Nano), 1)
				rows = append(rows, fmt.Sprintf("('backfill-page-%d', '", at)+r.task+"', '"+key+"', '-', '"+when.Format(timeLayout)+"', 'SUCCESS', '', '', '"+when.Format(timeLayout)+"')")
			}
			r.exec("%s", "INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state, params, message, created_at) VALUES "+strings.Join(rows, ", "))
		}
		b, err := c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: r.task, From: start, To: start.Add(1300 * time.Second)}, "test")
		r.must(err)
		r.tick()
		r.wantBackfill(b.ID, runs.BackfillRunning, 1, 1200)
	})
}
