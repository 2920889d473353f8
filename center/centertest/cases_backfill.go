package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// testBackfills checks how a backfill makes the runs of its slots.
func testBackfills(t *testing.T, c *center.Center, url string) {
	t.Run("R20 each slot of the range gets one run, the oldest first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, nil)
		r.wantRunStates()
		for done := range 3 {
			r.tick()
			r.wantBackfill(id, center.BackfillRunning, done+1, 0)
			r.wantSlotStates(id, append(append(slices.Repeat([]string{"SUCCESS"}, done), "RUNNING"), slices.Repeat([]string{""}, 2-done)...)...)
			r.finishAll("A", "0")
		}
		r.tick()
		b := r.wantBackfill(id, center.BackfillSuccess, 3, 0)
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
		id := r.backfillHours(4, func(b *center.BackfillRange) { b.NewestFirst, b.Parallel = true, 2 })
		r.tick()
		r.wantSlotStates(id, "", "", "READY", "RUNNING")
		r.finishAll("A", "0")
		r.tick()
		r.wantSlotStates(id, "", "READY", "RUNNING", "SUCCESS")
	})
	t.Run("R20 R2 servers that tick at the same time make each run once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(8, func(b *center.BackfillRange) { b.Parallel = 8 })
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			other := Open(t, url, center.Options{})
			all.Go(func() { errs[i] = second(other.Engine().Scheduler.Tick(t.Context(), r.task)) })
		}
		all.Wait()
		r.must(errors.Join(errs...))
		r.wantBackfill(id, center.BackfillRunning, 8, 0)
		r.wantOneRunEach(8)
	})
	t.Run("R20 R2 a backfill and the trigger make a slot once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(nil)
		r.downSince(last.Add(-time.Hour))
		r.exec("UPDATE schedule_trigger SET misfire = 'ALL' WHERE name = '%s'", r.task)
		r.tick() // the trigger makes two
		r.finishAll("A", "0")
		id := r.backfillHours(3, func(b *center.BackfillRange) { b.Parallel = 3 })
		r.tick()
		r.wantBackfill(id, center.BackfillRunning, 2, 1)
		r.downSince(last.Add(-3 * time.Hour)) // as if an operator had set the clock back: all slots are due again
		r.tick()
		r.wantOneRunEach(4)
	})
	t.Run("R20 a change of the trigger does not change an open backfill", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, nil)
		_, err := c.Triggers().Apply(t.Context(), center.Trigger{Name: r.task, Target: r.task, Kind: center.TriggerEvery, Expression: "7m", Params: "new"}, "test")
		r.must(err)
		for range 3 {
			r.tick()
			r.finishAll("A", "0")
		}
		r.tick()
		r.wantBackfill(id, center.BackfillSuccess, 3, 0)
		r.wantSlots(r.slot, "3h0m0s", "2h0m0s", "1h0m0s")
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
		r.must(c.Backfills().Pause(t.Context(), id, "test"))
		asks(false)
		r.must(c.Backfills().Resume(t.Context(), id, "test"))
		r.tick()
		r.finishAll("A", "0")
		asks(true)
		r.tick()
		r.wantBackfill(id, center.BackfillSuccess, 1, 0)
		asks(false)
	})
	t.Run("R20 a backfill with an invalid row ends, and the others go on", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		bad, id := r.backfillHours(2, nil), r.backfillHours(1, nil)
		r.exec("UPDATE schedule_backfill SET expression = 'often' WHERE backfill_id = '%s'", bad)
		r.tick()
		if b := r.wantBackfill(bad, center.BackfillFailed, 0, 0); !strings.Contains(b.Message, `expression ("often")`) {
			t.Fatalf("the message is %q, want it to name the expression", b.Message)
		}
		r.wantBackfill(id, center.BackfillRunning, 1, 0)
	})
}

// testBackfillSlots checks what a backfill does with slots that have a run.
func testBackfillSlots(t *testing.T, c *center.Center) {
	// four returns a fixture whose last four slots have runs that ended SUCCESS, FAILED, CANCELLED and SKIPPED.
	four := func(t *testing.T) (*fixture, []string) {
		t.Helper()
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(4, func(b *center.BackfillRange) { b.Parallel = 4 })
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.failAll("A", "boom", "0")
		r.must(c.Backfills().Cancel(t.Context(), id, "test"))
		slots := r.wantSlotStates(id, "SUCCESS", "FAILED", "CANCELLED", "CANCELLED")
		r.exec("UPDATE schedule_run SET backfill_id = NULL WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_run SET state = 'SKIPPED' WHERE run_id = '%s'", slots[3].RunID)
		var ids []string
		for _, s := range slots {
			ids = append(ids, s.RunID)
		}
		return r, ids
	}
	t.Run("R20 a run that has ended is left alone, unless it was SKIPPED", func(t *testing.T) {
		r, ids := four(t)
		_, list, err := c.Backfills().Preview(t.Context(), r.hours(r.slot, 5, nil))
		r.must(err)
		var actions []string
		for _, s := range list {
			actions = append(actions, s.Action+" "+s.State)
		}
		if want := []string{"MAKE ", "KEEP SUCCESS", "KEEP FAILED", "KEEP CANCELLED", "RERUN SKIPPED"}; !slices.Equal(actions, want) {
			t.Fatalf("the preview is %q, want %q", actions, want)
		}
		id := r.backfillHours(5, func(b *center.BackfillRange) { b.Parallel = 5 })
		r.tick()
		r.wantBackfill(id, center.BackfillRunning, 2, 3)
		r.wantSlotStates(id, "READY", "SUCCESS", "FAILED", "CANCELLED", "RUNNING")
		if run := r.run(ids[3]); run.Backfill != id || run.Priority != -1 {
			t.Fatalf("the run that was SKIPPED is %+v, want it in the backfill with its priority", run)
		}
	})
	t.Run("R20 R11 failed and cancelled runs are rerun on demand", func(t *testing.T) {
		r, ids := four(t)
		id := r.backfillHours(4, func(b *center.BackfillRange) { b.RerunFailed, b.Parallel = true, 4 })
		r.tick()
		r.wantBackfill(id, center.BackfillRunning, 3, 1)
		for range 3 {
			r.finishAll("A", "0")
			r.tick()
		}
		r.wantBackfill(id, center.BackfillSuccess, 3, 1)
		r.wantState(ids[1], center.RunSuccess)
		r.wantOneRunEach(4)
	})
	t.Run("R20 R4 a backfill skips no slot of the trigger, which comes first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(3, func(b *center.BackfillRange) { b.Parallel = 3 })
		r.tick()
		r.downSince(r.slot)
		r.tick()
		r.wantRunStates("RUNNING", "READY", "READY", "READY")
		r.finishAll("A", "0")
		r.tick()
		r.wantRunStates("SUCCESS", "READY", "READY", "RUNNING")
		r.wantBackfill(id, center.BackfillRunning, 3, 0)
	})
	t.Run("R20 with an equal priority the trigger waits for few slots", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		same := 0
		r.backfillHours(3, func(b *center.BackfillRange) { b.Parallel, b.Priority = 3, &same })
		r.tick()
		r.downSince(r.slot)
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantRunStates("SUCCESS", "READY", "READY", "RUNNING")
	})
	t.Run("R20 a backfill with more slots than a page passes them all", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		start := r.now().Add(-time.Hour).Truncate(time.Second)
		r.defineTrigger(center.Trigger{Kind: center.TriggerEvery, Expression: "1s", StartAt: start})
		first, err := c.Backfills().Start(t.Context(), center.BackfillRange{TaskType: r.task, From: start, To: start.Add(time.Second)}, "test")
		r.must(err)
		r.tick()
		slot := r.wantSlotStates(first.ID, "RUNNING")[0]
		for i := 1; i < 1200; i += 400 { // as if the others had runs, too
			var rows []string
			for at := i; at < min(i+400, 1200); at++ {
				when := start.Add(time.Duration(at) * time.Second).UTC()
				key := strings.Replace(r.run(slot.RunID).Key, start.UTC().Format(time.RFC3339Nano), when.Format(time.RFC3339Nano), 1)
				rows = append(rows, fmt.Sprintf("('backfill-page-%d', '", at)+r.task+"', '"+key+"', '-', '"+when.Format(timeLayout)+"', 'SUCCESS')")
			}
			r.exec("%s", "INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state) VALUES "+strings.Join(rows, ", "))
		}
		b, err := c.Backfills().Start(t.Context(), center.BackfillRange{TaskType: r.task, From: start, To: start.Add(1300 * time.Second)}, "test")
		r.must(err)
		r.tick()
		r.wantBackfill(b.ID, center.BackfillRunning, 1, 1200)
	})
}

// testBackfillEnds checks how a backfill ends, and how its failures end.
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
		b := r.wantBackfill(id, center.BackfillFailed, 3, 0)
		if want := "1 of 3 runs did not succeed"; b.Message != want || b.RunsFailed != 1 {
			t.Fatalf("the backfill is %+v, want the message %q", b, want)
		}
		failed := r.wantSlotStates(id, "FAILED", "SUCCESS", "SUCCESS")[0].RunID
		r.wantProblems(failedOnce)
		if p := r.problemRecords()[0]; p.RunID != failed || p.Backfill != id || !strings.Contains(p.Text(), "backfill "+id) {
			t.Fatalf("the problem is %+v, want run %s of the backfill", p, failed)
		}
		r.must(c.Runs().Rerun(t.Context(), failed, "test"))
		if b := r.wantBackfill(id, center.BackfillRunning, 3, 0); !b.EndedAt.IsZero() {
			t.Fatalf("the backfill is %+v, want no end", b)
		}
		r.wantProblems()
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, center.BackfillSuccess, 3, 0)
	})
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
		r.must(c.Runs().Ack(t.Context(), slots[1].RunID, "test"))
		r.wantProblems(failedOnce)
		if p := r.problemRecords()[0]; p.Backfill != "" {
			t.Fatalf("the problem that is left is %+v, want that of the trigger", p)
		}
		r.must(second(c.Runs().AckTask(t.Context(), r.task, "test")))
		r.wantProblems()
	})
	t.Run("R20 R19 the run of a missed slot ends the problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(func(t *center.Trigger) { t.Misfire, t.MisfireAfter = center.MisfireSkip, time.Millisecond })
		r.downSince(last.Add(-time.Hour))
		r.tick()
		r.wantProblems("SLOT_MISSED ii ACTIVE")
		_, err := c.Backfills().Start(t.Context(), center.BackfillRange{TaskType: r.task, From: last, To: last.Add(time.Minute)}, "test")
		r.must(err)
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantProblems()
	})
	t.Run("R20 while a backfill is paused no further slot gets a run", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.must(c.Backfills().Pause(t.Context(), id, "test"))
		r.finishAll("A", "0")
		r.tick()
		r.wantSlotStates(id, "SUCCESS", "")
		r.must(c.Backfills().Resume(t.Context(), id, "test"))
		r.tick()
		r.wantSlotStates(id, "SUCCESS", "RUNNING")
		r.must(c.Backfills().Pause(t.Context(), id, "test"))
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, center.BackfillSuccess, 2, 0) // nothing was left
		if err := c.Backfills().Resume(t.Context(), id, "test"); !errors.Is(err, center.ErrBackfillState) {
			t.Fatalf("resume of a backfill that has ended: got %v, want ErrBackfillState", err)
		}
	})
	t.Run("R20 a cancelled backfill cancels its open runs and their dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		a := g["a"]
		id := a.backfillHours(4, func(b *center.BackfillRange) { b.Parallel = 2 })
		g.succeed("a")
		a.tick()
		a.must(c.Backfills().Cancel(t.Context(), id, "test"))
		b := a.wantBackfill(id, center.BackfillCancelled, 2, 0)
		if want := "2 of 4 slots were left, and 3 runs were open"; b.Message != want {
			t.Fatalf("the message is %q, want %q", b.Message, want)
		}
		a.tick()
		slots := a.wantSlotStates(id, "SUCCESS", "CANCELLED", "", "")
		g.want(slots[0].RunID, "a SUCCESS", "b CANCELLED")
		g.want(slots[1].RunID, "a CANCELLED", "b CANCELLED")
		g["b"].wantProblems()
		a.must(c.Runs().Rerun(t.Context(), slots[1].RunID, "test"))
		a.wantBackfill(id, center.BackfillCancelled, 2, 0)
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
	t.Run("R20 a backfill ends with its trigger and its task type", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.must(c.Triggers().Delete(t.Context(), r.task, "test"))
		b := r.wantBackfill(id, center.BackfillCancelled, 1, 0)
		if want := "trigger " + r.task + " was deleted"; b.Message != want {
			t.Fatalf("the message is %q, want %q", b.Message, want)
		}
		r.wantSlotStates(id, "RUNNING", "")
		r.finishAll("A", "0")
		id = r.backfillHours(3, nil)
		r.tick()
		r.makeSilent("A")
		r.must(c.Tasks().Delete(t.Context(), r.task, "test"))
		r.wantBackfill(id, center.BackfillCancelled, 1, 1)
	})
	t.Run("R20 R12 retention deletes a backfill after its runs", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.backfillHours(2, nil)
		r.tick()
		r.finishAll("A", "0")
		old := func() {
			r.exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000', run_id = CONCAT('00', SUBSTR(run_id, 3)) WHERE task_type = '%s' AND finished_at IS NOT NULL AND run_id NOT LIKE '00%%'", r.task)
			for range 3 {
				_, err := c.Clean(t.Context(), time.Hour)
				r.must(err)
			}
		}
		old()
		r.wantSlotStates(id, "SUCCESS", "") // the backfill has not ended
		r.tick()
		r.finishAll("A", "0")
		r.tick()
		r.wantBackfill(id, center.BackfillSuccess, 2, 0)
		r.exec("UPDATE schedule_backfill SET backfill_id = CONCAT('00', SUBSTR(backfill_id, 3)), ended_at = '2020-01-01 00:00:00.000000' WHERE backfill_id = '%s'", id)
		r.exec("UPDATE schedule_run SET backfill_id = CONCAT('00', SUBSTR(backfill_id, 3)) WHERE backfill_id = '%s'", id)
		old()
		_, err := c.Backfills().Get(t.Context(), "00"+id[2:])
		if n := len(r.runStates()); n != 0 || !errors.Is(err, center.ErrUnknownBackfill) {
			t.Fatalf("%d runs are left, and the backfill: %v; want neither", n, err)
		}
	})
}

// testBackfillDependants checks what a backfill means for the task types that run after its own.
func testBackfillDependants(t *testing.T, c *center.Center) {
	t.Run("R20 R5 a slot is in progress until its dependants have ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(2, nil)
		g.succeed("a")
		g["a"].tick()
		first := g["a"].wantSlotStates(id, "SUCCESS", "")[0].RunID
		if run := g["b"].run(g.of("b", first)); run.Backfill != id || run.Priority != -1 || run.State != center.RunReady {
			t.Fatalf("the dependant is %+v, want it READY, in the backfill and with its priority", run)
		}
		g.succeed("b")
		g["a"].tick()
		g["a"].wantSlotStates(id, "SUCCESS", "RUNNING")
		g["a"].finishAll("A", "0")
		g.fail("b", "boom")
		g["a"].tick()
		b := g["a"].wantBackfill(id, center.BackfillFailed, 2, 0)
		if want := "0 of 2 runs did not succeed, and 1 runs of dependants did not"; b.Message != want || b.DependantsFailed != 1 {
			t.Fatalf("the backfill is %+v, want the message %q", b, want)
		}
	})
	t.Run("R20 without dependants only the task type itself has runs", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(2, func(b *center.BackfillRange) { b.NoDependants = true })
		g.succeed("a")
		g.succeed("a")
		g["a"].tick()
		g["a"].wantBackfill(id, center.BackfillSuccess, 2, 0)
		g["b"].wantRunStates()
	})
	t.Run("R20 R18 a backfill of one upstream makes joins", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after a b")
		g["b"].slot = g.fireSlot("a")
		g["b"].hourly(nil)
		g["end"].wantRunStates()
		b, err := c.Backfills().Start(t.Context(), center.BackfillRange{TaskType: g["b"].task, From: g["b"].slot, To: g["b"].slot.Add(time.Minute)}, "test")
		g["b"].must(err)
		g["b"].tick()
		g["b"].wantSlotStates(b.ID, "RUNNING")
		g["end"].wantRunStates(center.RunWaiting)
	})
	t.Run("R20 R4 a run of a backfill is not coalesced", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		g["b"].exec("UPDATE schedule_task_type SET coalesce_runs = TRUE WHERE task_type = '%s'", g["b"].task)
		id := g["a"].backfillHours(2, func(b *center.BackfillRange) { b.Parallel = 2 })
		g.succeed("a")
		g.succeed("a")
		g["a"].wantSlotStates(id, "SUCCESS", "SUCCESS")
		g["b"].wantRunStates(center.RunReady, center.RunReady)
	})
	t.Run("R20 R11 a rerun takes over the dependants of the run", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		first := g["a"].backfillHours(1, nil)
		g.fail("a", "boom")
		g["a"].tick()
		g["a"].wantBackfill(first, center.BackfillFailed, 1, 0)
		id := g["a"].backfillHours(1, func(b *center.BackfillRange) { b.RerunFailed = true })
		g.succeed("a")
		g["a"].tick()
		g["a"].wantBackfill(id, center.BackfillRunning, 1, 0)
		g.succeed("b")
		g["a"].tick()
		g["a"].wantBackfill(id, center.BackfillSuccess, 1, 0)
	})
}

// testBackfillErrors checks which ranges are refused.
func testBackfillErrors(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 1)
	_, last := r.hourly(nil)
	fast := r.defineTrigger(center.Trigger{Name: r.task + ".fast", Kind: center.TriggerEvery, Expression: "1s", StartAt: last.Add(-100 * time.Hour)})
	once := r.defineTrigger(center.Trigger{Name: r.task + ".once", Kind: center.TriggerOnce, Expression: "2999-01-01T00:00:00Z"})
	idle := r.sibling("idle")
	idle.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	for name, tt := range map[string]struct {
		change func(*center.BackfillRange)
		want   string
	}{
		"several triggers": {func(*center.BackfillRange) {}, "several triggers, name one of them: " + r.task + ", " + fast.Name + ", " + once.Name},
		"kind ONCE":        {func(b *center.BackfillRange) { b.Trigger = once.Name }, "is of kind ONCE and has one slot"},
		"another target":   {func(b *center.BackfillRange) { b.TaskType, b.Trigger = idle.task, r.task }, "trigger " + r.task + " fires " + r.task},
		"no trigger":       {func(b *center.BackfillRange) { b.TaskType = idle.task }, "has no trigger, and so no slots"},
		"future":           {func(b *center.BackfillRange) { b.Trigger, b.To = r.task, last.Add(3*time.Hour) }, "must not be in the future"},
		"empty":            {func(b *center.BackfillRange) { b.Trigger, b.To = r.task, b.From }, "must be before to"},
		"no from":          {func(b *center.BackfillRange) { b.Trigger, b.From = r.task, time.Time{} }, "from must be set"},
		"parallel":         {func(b *center.BackfillRange) { b.Trigger, b.Parallel = r.task, 101 }, "parallel (101) must be from 1 to 100"},
		"no slots": {func(b *center.BackfillRange) {
			b.Trigger, b.From, b.To = r.task, last.Add(-20*time.Hour), last.Add(-19*time.Hour)
		}, "has no slot in the range: its slots begin at "},
		"too many":      {func(b *center.BackfillRange) { b.Trigger, b.From = fast.Name, last.Add(-3*time.Hour) }, "the range has 10800 slots; a backfill has at most 10000"},
		"far too many":  {func(b *center.BackfillRange) { b.Trigger, b.From = fast.Name, last.Add(-90*time.Hour) }, "the range has more than 100000 slots"},
		"unknown name":  {func(b *center.BackfillRange) { b.Trigger = "nobody" }, "unknown trigger"},
		"unknown task":  {func(b *center.BackfillRange) { b.TaskType = "nobody" }, "unknown task type"},
		"negative":      {func(b *center.BackfillRange) { b.Trigger, b.Parallel = r.task, -1 }, "parallel (-1) must be from 1 to 100"},
		"reversed ends": {func(b *center.BackfillRange) { b.Trigger, b.To = r.task, b.From.Add(-time.Hour) }, "must be before to"},
	} {
		t.Run("R20 a range is refused: "+name, func(t *testing.T) {
			want := r.hours(last, 2, tt.change)
			_, err := c.Backfills().Start(t.Context(), want, "test")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("start: got %v, want an error with %q", err, tt.want)
			}
			if _, _, err := c.Backfills().Preview(t.Context(), want); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("preview: got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_backfill WHERE task_type = '%s'", r.task); n != 0 {
		t.Fatalf("%d backfills were started, want none", n)
	}
}
