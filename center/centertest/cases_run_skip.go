package centertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testSkippedRuns checks that a skipped slot can still get its run, and all runs that depend on it.
func testSkippedRuns(t *testing.T, c *center.Center) {
	skipped := func(t *testing.T) (g graph, busy, id string) {
		g = newGraph(t, c, "a", "b after a", "c after b")
		g["a"].hourly(nil)
		busy = g["a"].fire(g["a"].task)
		id = g.fire("a")
		g["a"].wantState(id, runs.Skipped)
		return g, busy, id
	}
	for name, reopen := range map[string]func(g graph, id string) error{
		"rerun": func(_ graph, id string) error { return c.Engine().Runs.Rerun(t.Context(), id, "test") },
		"submission of its key": func(g graph, id string) error {
			again, existed, err := c.Engine().Runs.Submit(t.Context(), g["a"].task, runs.Submission{Key: g["a"].run(id).Key, Params: "ignored"})
			if again != id || !existed {
				g["a"].Fatalf("the key was submitted as run %s, existed %t, want run %s, existed", again, existed, id)
			}
			return err
		},
	} {
		t.Run("R11 a skipped run begins after a "+name+", with its dependants", func(t *testing.T) {
			g, busy, id := skipped(t)
			g["a"].must(reopen(g, id))
			g.want(id, "a READY", "b WAITING", "c WAITING")
			g["a"].finishAll("A", "0")
			for _, name := range []string{"a", "b", "c"} {
				g["b"].exec("UPDATE schedule_run SET paused = TRUE WHERE root_run_id = '%s' AND state = 'READY' AND task_type = '%s'", busy, g[name].task)
				g.succeed(name)
			}
			g.want(id, "a SUCCESS", "b SUCCESS", "c SUCCESS")
			if n := len(g["b"].runStates()); n != 2 {
				t.Fatalf("b has %d runs, want 2: one of each run of a", n)
			}
		})
	}
	t.Run("R11 a rerun lets the submitted runs wait that were skipped because of it", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "c after b")
		g["a"].hourly(nil)
		g["a"].fire(g["a"].task)
		id := g.fire("a")
		submitted := g["b"].submit("k", id)
		g.want(submitted, "b SKIPPED", "c SKIPPED")
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		g.want(submitted, "b WAITING", "c WAITING")
	})
	t.Run("R11 a submitted run that was skipped is run again while a dependant waits", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "d", "c after b? d")
		g["a"].hourly(nil)
		g["a"].fire(g["a"].task)
		g["d"].submit("k")
		submitted := g["b"].submit("k", g.fire("a"))
		g.want(submitted, "b SKIPPED", "c WAITING")
		g["b"].must(c.Engine().Runs.Rerun(t.Context(), submitted, "test"))
		g.want(submitted, "b SKIPPED", "c WAITING") // the run of a is still skipped
	})
	t.Run("R11 a rerun lets the dependants wait that were skipped because of it", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b")
		g["a"].hourly(nil)
		g["b"].exec("UPDATE schedule_task_type SET coalesce_runs = TRUE WHERE task_type = '%s'", g["b"].task)
		g.fire("a")
		g.succeed("a")
		second := g.fire("a")
		g.succeed("a")
		g.want(second, "b SKIPPED", "c SKIPPED")
		g["b"].must(c.Engine().Runs.Rerun(t.Context(), g.of("b", second), "test"))
		g.want(second, "b READY", "c WAITING")
	})
}

// testSkippedSlots checks what counts as a firing, and which open runs skip a slot.
func testSkippedSlots(t *testing.T, c *center.Center) {
	t.Run("R4 the slot of a trigger of kind ONCE waits for its other runs", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.defineTrigger(runs.Trigger{Kind: runs.TriggerOnce, Expression: r.now().Truncate(time.Hour).Format(time.RFC3339)})
		for range 2 {
			r.must(second(c.Engine().Triggers.Fire(t.Context(), r.task, "test")))
		}
		for range 3 {
			r.tick()
			r.finishAll("A", "0")
		}
		r.wantRunStates("SUCCESS", "SUCCESS", "SUCCESS")
		if now := r.readTrigger(r.task); now.Status != runs.TriggerDone || now.Fires != 1 {
			t.Fatalf("the trigger is %+v, want DONE with 1 firing", now)
		}
	})
	for _, overlap := range []string{runs.OverlapSkip, runs.OverlapWait} {
		t.Run("R4 a slot waits behind runs of other triggers and of operators, overlap "+overlap, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(func(t *runs.Trigger) { t.Overlap = overlap })
			other := r.defineTrigger(runs.Trigger{Name: r.task + ".other", Kind: runs.TriggerEvery, Expression: "1h", StartAt: hour.Add(-10 * time.Hour)})
			busy := r.submitAndOpen("busy")
			r.submit("next")
			r.must(second(c.Engine().Triggers.Fire(t.Context(), other.Name, "test")))
			slot := func(at time.Time) {
				due := at.UTC().Format(timeLayout) // and no later slot
				r.exec("UPDATE schedule_trigger SET next_fire_at = '%s', end_at = '%s', status = 'ACTIVE' WHERE target = '%s'", due, due, r.task)
				r.tick()
			}
			slot(hour.Add(-time.Hour))
			r.wantRunStates("READY", "SKIPPED", "RUNNING", "READY", "READY") // the other trigger has a run that waits
			slot(hour)
			r.wantRunStates("READY", "SKIPPED", "SKIPPED", "SKIPPED", "RUNNING", "READY", "READY") // and now both have
			r.finishAll("A", "0")
			r.wantState(busy, runs.Success)
			for range 3 {
				r.tick()
				r.finishAll("A", "0")
			}
			r.wantRunStates("SUCCESS", "SKIPPED", "SKIPPED", "SKIPPED", "SUCCESS", "SUCCESS", "SUCCESS")
		})
	}
	t.Run("R4 triggers that are due at once all have their runs", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		many := 1000
		if testing.Short() {
			many = 30
		}
		start := r.now().Add(-time.Minute).Truncate(time.Second)
		for i := range many {
			r.defineTrigger(runs.Trigger{
				Name: fmt.Sprintf("%s.%03d", r.task, i), Kind: runs.TriggerEvery, Expression: "1h", StartAt: start, Params: fmt.Sprint(i),
			})
		}
		r.exec("UPDATE schedule_trigger SET next_fire_at = start_at WHERE target = '%s'", r.task)
		r.exec("UPDATE schedule_trigger SET start_at = '%s' WHERE name = '%s.000'", start.Add(-time.Hour).UTC().Format(timeLayout), r.task)
		_, err := c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{
			TaskType: r.task, Trigger: r.task + ".000", From: start.Add(-time.Hour), To: start,
		}, "test") // a run beside those of the triggers
		r.must(err)
		seen := map[string]bool{}
		for range many + 1 {
			r.tick()
			sweep := r.claimOne("A", "0")
			seen[sweep.Params] = true
			r.must(c.Engine().Sweeps.Finish(t.Context(), sweep, runs.Progress{}))
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE task_type = '%s' AND state = 'SUCCESS'", r.task); n != int64(many)+1 || len(seen) != many {
			t.Fatalf("%d runs succeeded with %d different parameters, want %d and %d", n, len(seen), many+1, many)
		}
	})
	t.Run("R4 one event tells the slots that are skipped together", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		const many = 5
		for i := range many {
			name := fmt.Sprintf("%s.%d", r.task, i)
			r.defineTrigger(runs.Trigger{Name: name, Kind: runs.TriggerEvery, Expression: "1h"})
			r.must(second(c.Engine().Triggers.Fire(t.Context(), name, "test")))
		}
		r.exec("UPDATE schedule_trigger SET next_fire_at = start_at WHERE target = '%s'", r.task)
		r.tick()
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE task_type = '%s' AND state = 'SKIPPED'", r.task); n != many {
			t.Fatalf("%d slots were skipped, want %d", n, many)
		}
		events := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'RUN'", r.task)
		if len(events) != 1 || !strings.HasSuffix(events[0], "; 4 other runs are SKIPPED, too") {
			t.Fatalf("events %q, want one", events)
		}
	})
	t.Run("R4 a skipped slot does not use up max_fires", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(func(t *runs.Trigger) { t.MaxFires = 1 })
		r.fire(r.task)
		r.downSince(hour)
		r.tick()
		if now := r.readTrigger(r.task); now.Status != runs.TriggerActive || now.Fires != 0 || !now.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("the trigger is %+v after a skipped slot, want ACTIVE, no firings and the next in an hour", now)
		}
		r.finishAll("A", "0")
		r.exec("DELETE FROM schedule_run WHERE state = 'SKIPPED' AND task_type = '%s'", r.task)
		r.downSince(hour) // stands for the next slot
		r.tick()
		if now := r.readTrigger(r.task); now.Status != runs.TriggerDone || now.Fires != 1 {
			t.Fatalf("the trigger is %+v after its slot has fired, want DONE and 1 firing", now)
		}
	})
	t.Run("R4 R19 skipped slots are told until one fires", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		busy := r.fire(r.task)
		for i := 3; i > 0; i-- {
			r.downSince(hour.Add(-time.Duration(i) * time.Hour))
			r.exec("UPDATE schedule_trigger SET end_at = next_fire_at WHERE name = '%s'", r.task) // the later slots are not due yet
			r.tick()
			r.exec("UPDATE schedule_trigger SET end_at = NULL, status = 'ACTIVE' WHERE name = '%s'", r.task)
			note := r.findings("triggers")
			if i > 1 && (len(r.problems()) > 0 || len(note) != 1 || !strings.HasPrefix(note[0], "NOTE ")) {
				t.Fatalf("problems %q and findings %q after %d skipped slots, want only a note", r.problems(), note, 4-i)
			}
		}
		r.wantProblems("SLOT_SKIPPED iii ACTIVE")
		if got := r.readTrigger(r.task); !got.SkippedSince.Equal(hour.Add(-3 * time.Hour)) {
			t.Fatalf("the slots are skipped since %s, want %s", got.SkippedSince, hour.Add(-3*time.Hour))
		}
		events := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'RUN'", r.task)
		if len(events) != 3 || !strings.HasSuffix(events[0], " is SKIPPED: run "+busy+" is RUNNING") {
			t.Fatalf("events %q, want one for each skipped slot", events)
		}
		r.finishAll("A", "0")
		r.wantProblems("SLOT_SKIPPED iii ACTIVE")
		r.downSince(hour)
		r.tick()
		r.wantProblems()
		if got := r.readTrigger(r.task); got.Skipped != 0 || !got.SkippedSince.IsZero() {
			t.Fatalf("the trigger is %+v after a slot that fired, want no skipped slots", got)
		}
	})
	t.Run("R19 one slot skipped for a day is a problem until it is acknowledged", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.fire(r.task)
		r.downSince(hour)
		r.tick()
		r.wantProblems()
		r.exec("UPDATE schedule_trigger SET skipped_since = '%s' WHERE name = '%s'", hour.Add(-24*time.Hour).UTC().Format(timeLayout), r.task)
		r.wantProblems("SLOT_SKIPPED i ACTIVE")
		_, err := c.Engine().Runs.AckTask(t.Context(), r.task, "test")
		r.must(err)
		r.wantProblems()
	})
	for name, happen := range map[string]func(*fixture, string) error{
		"rerun": func(r *fixture, id string) error { return c.Engine().Runs.Rerun(r.Context(), id, "test") },
		"fire":  func(r *fixture, _ string) error { return second(c.Engine().Triggers.Fire(r.Context(), r.task, "test")) },
	} {
		t.Run("R4 a "+name+" ends the count of skipped slots", func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(nil)
			r.fire(r.task)
			r.downSince(hour)
			r.tick()
			r.finishAll("A", "0")
			list, err := ops.New(c).Runs().List(t.Context(), runs.Filter{TaskType: r.task, State: runs.Skipped}, 1)
			if err != nil || len(list) != 1 || r.readTrigger(r.task).Skipped != 1 {
				t.Fatalf("%d skipped runs, want 1: %v", len(list), err)
			}
			r.must(happen(r, list[0].ID))
			if got := r.readTrigger(r.task); got.Skipped != 0 {
				t.Fatalf("%d skipped slots, want 0", got.Skipped)
			}
		})
	}
	for _, overlap := range []string{runs.OverlapSkip, runs.OverlapWait} {
		t.Run("R4 paused runs that have not started skip no slot, overlap "+overlap, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(func(t *runs.Trigger) { t.Overlap = overlap })
			for range 2 {
				id, err := c.Engine().Triggers.Fire(t.Context(), r.task, "test")
				r.must(err)
				r.must(c.Engine().Runs.SetPaused(t.Context(), id, true, "test"))
			}
			r.downSince(hour)
			if open := r.tick().Open; open == "" || r.run(open).Trigger != r.task {
				t.Fatalf("run %q is open, want that of the slot", open)
			}
		})
	}
	t.Run("R4 the message of a skipped slot says that the open run is paused", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, _ = r.hourly(nil)
		id := r.fire(r.task)
		r.must(c.Engine().Runs.SetPaused(t.Context(), id, true, "test"))
		skipped, err := c.Engine().Triggers.Fire(t.Context(), r.task, "test")
		r.must(err)
		r.wantMessage(skipped, "run "+id+" is RUNNING and paused")
	})
}

// testStartLimits checks that a run does not wait longer than run_start_timeout until it is opened.
func testStartLimits(t *testing.T, c *center.Center) {
	const past = "'2020-01-01 00:00:00.000000'"
	t.Run("R13 a run fails that is READY or WAITING for too long", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b")
		for _, r := range g {
			r.exec("UPDATE schedule_task_type SET run_start_timeout_ms = 3600000 WHERE task_type = '%s'", r.task)
		}
		busy := g["a"].submitAndOpen("busy")
		ready := g["a"].submit("k")
		now := g["a"].now()
		for _, name := range []string{"a", "b"} {
			if wait := g[name].run(g.of(name, ready)).DeadlineAt.Sub(now); wait < 50*time.Minute || wait > time.Hour {
				t.Fatalf("the run of %s may wait for %s, want an hour", name, wait)
			}
		}
		g["a"].exec("UPDATE schedule_run SET deadline_at = "+past+" WHERE run_id = '%s'", ready)
		g["a"].tick()
		g.want(ready, "a FAILED", "b DEPENDENT_FAILED", "c DEPENDENT_FAILED")
		g["a"].wantMessage(ready, "it did not start in time (run_start_timeout)")
		waiting := g.of("b", busy)
		g["b"].exec("UPDATE schedule_run SET deadline_at = "+past+" WHERE run_id = '%s'", waiting)
		g["b"].tick()
		g.want(busy, "a RUNNING", "b FAILED", "c DEPENDENT_FAILED")
	})
	t.Run("R13 a rerun begins the wait anew", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		for _, r := range g {
			r.exec("UPDATE schedule_task_type SET run_start_timeout_ms = 3600000 WHERE task_type = '%s'", r.task)
		}
		id := g["a"].submit("k")
		g["a"].exec("UPDATE schedule_run SET deadline_at = "+past+" WHERE run_id = '%s'", id)
		g["a"].tick()
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		for _, name := range []string{"a", "b"} {
			if run := g[name].run(g.of(name, id)); !run.DeadlineAt.After(g["a"].now()) {
				t.Fatalf("the run of %s is %+v, want a deadline in an hour", name, run)
			}
		}
		g.succeed("a")
		g["a"].wantState(id, runs.Success)
	})
	t.Run("R13 without the setting a run waits for ever", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		if run := r.run(r.submit("k")); !run.DeadlineAt.IsZero() {
			t.Fatalf("the run is %+v, want no deadline", run)
		}
	})
}
