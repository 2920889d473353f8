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

// testBackfillEnds checks how a backfill ends, with success, failures or its trigger.
func testBackfillEnds(t *testing.T, c *center.Center) {
	t.Run("R20 R19 a failed run stops no other, and fails the backfill", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, nil)
		r.tick()
		r.failAll("A", "boom", "0")
		for range 2 {
			r.tick()
			r.finishAll("A", "0")
		}
		r.tick()
		b := r.wantBackfill(id, runs.BackfillFailed, 3, 0)
		if want := "1 of 3 runs did not succeed"; b.Message != want || b.RunsFailed != 1 {
			t.Fatalf("the backfill is %+v, want the message %q", b, want)
		}
		failed := r.wantSlotStates(id, "FAILED", "SUCCESS", "SUCCESS")[0].RunID
		r.wantProblems(failedOnce)
		if p := r.problemRecords()[0]; p.RunID != failed || p.Backfill != id || !strings.Contains(p.Text(), "backfill "+id) {
			t.Fatalf("the problem is %+v, want run %s of the backfill", p, failed)
		}
		r.must(c.Engine().Runs.Rerun(t.Context(), failed, "test"))
		if b := r.wantBackfill(id, runs.BackfillRunning, 3, 0); !b.EndedAt.IsZero() {
			t.Fatalf("the backfill is %+v, want no end", b)
		}
		r.wantProblems()
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, runs.BackfillSuccess, 3, 0)
	})
	t.Run("R20 a backfill ends with its trigger and its task type", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.must(c.Engine().Triggers.Delete(t.Context(), r.task, "test"))
		b := r.wantBackfill(id, runs.BackfillCancelled, 1, 0)
		if want := "trigger " + r.task + " was deleted"; b.Message != want {
			t.Fatalf("the message is %q, want %q", b.Message, want)
		}
		r.wantSlotStates(id, "RUNNING", "")
		r.finishAll("A", "0")
		id = r.backfillHours(3, nil)
		r.tick()
		r.makeSilent("A")
		r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
		r.wantBackfill(id, runs.BackfillCancelled, 1, 1)
	})
}

// testBackfillOfMovedTrigger checks the backfill of a trigger that has got another target.
func testBackfillOfMovedTrigger(t *testing.T, c *center.Center) {
	for name, remove := range map[string]func(*fixture, runs.Trigger) error{
		"trigger": func(r *fixture, t runs.Trigger) error { return c.Engine().Triggers.Delete(r.Context(), t.Name, "test") },
		"task type": func(r *fixture, t runs.Trigger) error {
			return ops.New(c).Tasks().Delete(r.Context(), t.Target, "test")
		},
	} {
		t.Run("R20 a backfill ends with its moved trigger, deleted as a "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			id := r.backfillHours(2, nil)
			r.tick()
			other := r.sibling("other")
			other.define(center.Settings{Mode: center.ModeRun, Queues: 1})
			trigger := r.readTrigger(r.task)
			trigger.Target = other.task
			d, err := c.Engine().Triggers.Compare(t.Context(), trigger, 0)
			r.must(err)
			_, err = c.Engine().Triggers.Apply(t.Context(), d, "test")
			r.must(err)
			r.wantBackfill(id, runs.BackfillRunning, 1, 0)
			r.must(remove(r, trigger))
			r.wantBackfill(id, runs.BackfillCancelled, 1, 0)
		})
	}
}

// testBackfillProblems checks which runs of a backfill are problems, and which problems they end.
func testBackfillProblems(t *testing.T, c *center.Center) {
	t.Run("R19 failures of a backfill and of its trigger are acknowledged apart", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(nil)
		r.downSince(last)
		r.tick()
		r.failAll("A", "boom", "0")
		id := r.backfillHours(2, nil)
		for range 2 {
			r.tick()
			r.failAll("A", "boom", "0")
		}
		r.tick()
		slots := r.wantSlotStates(id, "FAILED", "FAILED")
		r.wantProblems(failedOnce, failedTwice)
		r.must(c.Engine().Runs.Ack(t.Context(), slots[1].RunID, "test"))
		r.wantProblems(failedOnce)
		if p := r.problemRecords()[0]; p.Backfill != "" {
			t.Fatalf("the problem that is left is %+v, want that of the trigger", p)
		}
		r.must(second(c.Engine().Runs.AckTask(t.Context(), r.task, "test")))
		r.wantProblems()
	})
	t.Run("R20 R19 the run of a missed slot ends the problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(func(t *runs.Trigger) { t.Misfire, t.MisfireAfter = runs.MisfireSkip, time.Millisecond })
		r.downSince(last.Add(-time.Hour))
		r.tick()
		r.wantProblems("SLOT_MISSED ii ACTIVE")
		_, err := c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: r.task, From: last, To: last.Add(time.Minute)}, "test")
		r.must(err)
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantProblems()
	})
}

// testBackfillRetention checks when the rows of a backfill are deleted.
func testBackfillRetention(t *testing.T, c *center.Center) {
	t.Run("R20 R12 retention deletes a backfill after its runs", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.finishAll("A", "0")
		old := func() {
			r.exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000', run_id = CONCAT('00', SUBSTR(run_id, 3)) WHERE task_type = '%s' AND finished_at IS NOT NULL AND run_id NOT LIKE '00%%'", r.task)
			for range 3 {
				_, err := ops.New(c).Clean(t.Context(), time.Hour)
				r.must(err)
			}
		}
		old()
		r.wantSlotStates(id, "SUCCESS", "") // the backfill has not ended
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, runs.BackfillSuccess, 2, 0)
		r.exec("UPDATE schedule_backfill SET backfill_id = CONCAT('00', SUBSTR(backfill_id, 3)), ended_at = '2020-01-01 00:00:00.000000' WHERE backfill_id = '%s'", id)
		r.exec("UPDATE schedule_run SET backfill_id = CONCAT('00', SUBSTR(backfill_id, 3)) WHERE backfill_id = '%s'", id)
		old()
		_, err := ops.New(c).Backfills().Get(t.Context(), "00"+id[2:])
		if n := len(r.runStates()); n != 0 || !errors.Is(err, runs.ErrUnknownBackfill) {
			t.Fatalf("%d runs are left, and the backfill: %v; want neither", n, err)
		}
	})
}
