package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// problems returns the problems of the task type as "kind count state".
func (r *fixture) problems() (list []string) {
	r.Helper()
	for _, p := range r.problemRecords() {
		list = append(list, strings.TrimSpace(p.Kind+" "+strings.Repeat("i", int(min(p.Count, 9)))+" "+p.State))
	}
	return list
}

func (r *fixture) problemRecords() []runs.Problem {
	r.Helper()
	list, err := ops.New(r.c).Runs().Problems(r.Context(), r.task)
	r.must(err)
	return list
}

func (r *fixture) wantProblems(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.problems(), cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("problems (-want +got):\n%s", diff)
	}
}

// fire fires the trigger of the task type and opens the run.
func (r *fixture) fire(trigger string) string {
	r.Helper()
	id, err := r.c.Engine().Triggers.Fire(r.Context(), trigger, "test")
	r.must(err)
	r.tick()
	r.wantState(id, runs.Running)
	return id
}

const failedOnce, failedTwice = "RUN_FAILED i FAILED", "RUN_FAILED ii FAILED"

func testRunProblems(t *testing.T, c *center.Center) {
	t.Run("R19 a failed run that was submitted is a problem until a rerun of it succeeds", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.wantProblems()
		first := r.submitAndOpen("1")
		r.failAll("A", "the disk is full", "0")
		second := r.submitAndOpen("2")
		r.wantProblems(failedOnce)
		r.failAll("A", "still full", "0")
		r.wantProblems(failedTwice)
		p := r.problemRecords()[0]
		if p.RunID != second || p.FirstID != first || p.Subject() != "run "+first || !strings.Contains(p.Text(), "still full") || p.Since.After(p.Until) {
			t.Fatalf("problem %+v, want first run %s and last run %s", p, first, second)
		}
		if state := r.taskRecord().DisplayState(); state != ops.StateIdle {
			t.Fatalf("the task type is %s, want IDLE: what is wrong with it is a finding", state)
		}
		if got := r.findings("runs"); len(got) != 1 || !strings.HasPrefix(got[0], "PROBLEM run "+first+": 2 submitted runs have failed since ") || !strings.Contains(got[0], "still full") {
			t.Fatalf("findings %q, want a problem of 2 runs", got)
		}
		r.submitAndOpen("3")
		r.finishAll("A", "0")
		r.wantProblems(failedTwice) // the success of another key makes up for neither
		for _, id := range []string{first, second} {
			r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
			r.tick()
			r.finishAll("A", "0")
		}
		r.wantProblems()
		if got := r.findings("runs"); len(got) != 0 || r.taskRecord().DisplayState() != ops.StateIdle {
			t.Fatalf("findings %q after the reruns, want none", got)
		}
	})
	t.Run("R19 the end of a failed run records an event", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		g.fail("a", "the disk is full")
		for name, want := range map[string]string{"a": "run " + root + " is FAILED: ", "b": " is DEPENDENT_FAILED: "} {
			got := g[name].readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'RUN'", g[name].task)
			if len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], "the disk is full") {
				t.Errorf("events of %s: %q, want one with %q and the cause", name, got, want)
			}
		}
	})
	t.Run("R19 a success of another trigger ends no problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		for _, name := range []string{"nightly", "hourly"} {
			r.defineTrigger(runs.Trigger{Name: r.task + name, Kind: runs.TriggerCron, Expression: "0 0 3 1 1 ? 2090"})
		}
		failed := r.fire(r.task + "nightly")
		r.failAll("A", "no", "0")
		r.fire(r.task + "hourly")
		r.finishAll("A", "0")
		r.submitAndOpen("by hand")
		r.finishAll("A", "0")
		r.wantProblems(failedOnce)
		if p := r.problemRecords()[0]; p.RunID != failed || p.Trigger != r.task+"nightly" {
			t.Fatalf("problem %+v, want run %s", p, failed)
		}
		r.fire(r.task + "nightly")
		r.finishAll("A", "0")
		r.wantProblems()
	})
	t.Run("R19 an earlier success ends no problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 1 1 ? 2090"})
		early := r.fire(r.task)
		r.finishAll("A", "0")
		r.fire(r.task)
		r.failAll("A", "no", "0")
		r.wantProblems(failedOnce)
		r.exec("UPDATE schedule_run SET own_sign = 'OTHER' WHERE task_type = '%s' AND run_id <> '%s'", r.task, early)
		r.wantProblems() // each environment has its own
	})
}

// testAlertFailures checks which failed runs raise alerts, whatever happens before a server looks for them.
func testAlertFailures(t *testing.T, c *center.Center) {
	// raise looks as a server does, and returns the subjects of the alerts that it raised.
	raise := func(r *fixture) (subjects []string) {
		r.Helper()
		raised, err := c.Engine().Runs.AlertFailures(r.Context(), r.task)
		r.must(err)
		for _, a := range raised {
			subjects = append(subjects, a.Subject)
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_event WHERE task_type = '%s' AND kind = 'ALERT'", r.task); n < int64(len(raised)) {
			r.Fatalf("%d events of alerts, want one for each of %q", n, subjects)
		}
		return subjects
	}
	want := func(r *fixture, when string, want ...string) {
		r.Helper()
		if diff := cmp.Diff(want, raise(r), cmpopts.EquateEmpty()); diff != "" {
			r.Fatalf("alerts %s (-want +got):\n%s", when, diff)
		}
	}
	t.Run("R19 a failure raises one alert although a later slot has succeeded", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 1 1 ? 2090"})
		r.fire(r.task)
		r.failAll("A", "no", "0")
		r.fire(r.task)
		r.finishAll("A", "0")
		r.wantProblems()
		want(r, "after the success", "trigger "+r.task)
		want(r, "at the next look")
	})
	t.Run("R19 the failures of a trigger raise one alert until it succeeds", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 1 1 ? 2090"})
		first := r.fire(r.task)
		r.failAll("A", "no", "0")
		want(r, "after the first failure", "trigger "+r.task)
		r.fire(r.task)
		r.failAll("A", "no", "0")
		want(r, "after the second failure")
		r.must(c.Engine().Runs.Ack(t.Context(), first, "test"))
		failed := r.problemRecords()[0].Condition() // a server tells the roster of it
		if begins, err := c.Roster().Alert(t.Context(), failed, time.Minute); err != nil || begins {
			r.Fatalf("an alert of %s after the first failure was acknowledged: %t, %v; want none", failed.Subject, begins, err)
		}
		r.fire(r.task)
		r.finishAll("A", "0")
		r.fire(r.task)
		r.failAll("A", "no", "0")
		want(r, "after a failure that follows a success", "trigger "+r.task)
	})
	t.Run("R19 each submitted run that fails raises an alert", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		for _, key := range []string{"fileA", "fileB"} {
			id := r.submitAndOpen(key)
			r.failAll("A", "no", "0")
			want(r, "after "+key, "run "+id)
		}
		id := r.submitAndOpen("fileC")
		r.failAll("A", "no", "0")
		r.must(c.Engine().Runs.Ack(t.Context(), id, "test"))
		want(r, "after an operator has acknowledged fileC")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		r.failAll("A", "no", "0")
		want(r, "after fileC has failed again", "run "+id)
	})
}

func testAckRuns(t *testing.T, c *center.Center) {
	t.Run("R19 an acknowledged failure is no problem until the next one", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first := r.submitAndOpen("1")
		r.failAll("A", "no", "0")
		second := r.submitAndOpen("2")
		r.failAll("A", "no", "0")
		r.must(c.Engine().Runs.Ack(t.Context(), first, "alice"))
		r.wantProblems(failedOnce) // the second failure is later
		r.must(c.Engine().Runs.Ack(t.Context(), second, "bob"))
		r.wantProblems()
		if run := r.run(second); run.AckedBy != "bob" || run.AckedAt.IsZero() || r.run(first).AckedBy != "alice" {
			t.Fatalf("the run is %+v, want acknowledged by bob, and the first one by alice", run)
		}
		if err := c.Engine().Runs.Ack(t.Context(), second, "bob"); !errors.Is(err, runs.ErrNoProblem) {
			t.Fatalf("acknowledge again: error %v, want ErrNoProblem", err)
		}
		if got := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'RUN' AND actor = 'bob'", r.task); !slices.Equal(got, []string{"acknowledged: " + second}) {
			t.Fatalf("events %q, want one of bob", got)
		}
		r.submitAndOpen("3")
		r.failAll("A", "no", "0")
		r.wantProblems(failedOnce)
		acked, err := c.Engine().Runs.AckTask(t.Context(), r.task, "carol")
		if err != nil || len(acked) != 1 {
			t.Fatalf("acknowledged %+v, want 1 problem: %v", acked, err)
		}
		r.wantProblems()
		r.submitAndOpen("4")
		r.failAll("A", "no", "0")
		fifth := r.submitAndOpen("5")
		r.failAll("A", "no", "0")
		r.must(c.Engine().Runs.Ack(t.Context(), fifth, "dave"))
		r.wantProblems(failedOnce) // the run of another key is another problem
		_, err = c.Engine().Runs.AckTask(t.Context(), r.task, "carol")
		r.must(err)
		r.wantProblems()
		if _, err := c.Engine().Runs.AckTask(t.Context(), r.task, "carol"); !errors.Is(err, runs.ErrNoProblem) {
			t.Fatalf("acknowledge nothing: error %v, want ErrNoProblem", err)
		}
	})
	t.Run("R19 a rerun undoes the acknowledgement", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("1")
		if err := c.Engine().Runs.Ack(t.Context(), id, "test"); !errors.Is(err, runs.ErrRunState) {
			t.Fatalf("acknowledge an open run: error %v, want ErrRunState", err)
		}
		r.failAll("A", "no", "0")
		r.must(c.Engine().Runs.Ack(t.Context(), id, "test"))
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		r.failAll("A", "no", "0")
		r.wantProblems(failedOnce)
	})
}

// testAckedRuns checks which other runs an acknowledgement of a run concerns.
func testAckedRuns(t *testing.T, c *center.Center) {
	t.Run("R19 the dependants that failed because of a run are acknowledged with it", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "d")
		root := g["a"].submit("k")
		g.fail("a", "the disk is full")
		g.want(root, "b DEPENDENT_FAILED", "c DEPENDENT_FAILED")
		g["c"].wantProblems("RUN_FAILED i DEPENDENT_FAILED")
		if p := g["c"].problemRecords()[0]; !strings.Contains(p.Text(), "(run "+root+") FAILED: ") || !strings.Contains(p.Text(), "the disk is full") {
			t.Fatalf("the problem of c is %q, want the cause in a", p.Text())
		}
		g["a"].must(c.Engine().Runs.Ack(t.Context(), root, "test"))
		for _, name := range []string{"a", "b", "c"} {
			g[name].wantProblems()
		}
	})
	twoOldFailures := func(t *testing.T) (r *fixture, ids []string, clean func()) {
		t.Helper()
		r = newRunFixture(t, c, 1)
		for _, key := range []string{"1", "2"} {
			r.submitAndOpen(key)
			r.failAll("A", "no", "0")
		}
		r.exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
		ids = r.readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' ORDER BY run_id", r.task)
		for i, id := range ids { // the id contains the time at which the run was made
			ids[i] = fmt.Sprintf("%08d", i) + id[8:]
			r.exec("UPDATE schedule_run SET run_id = '%s', root_run_id = '%s' WHERE run_id = '%s'", ids[i], ids[i], id)
		}
		return r, ids, func() {
			for range 3 {
				_, err := ops.New(c).Clean(t.Context(), time.Hour)
				r.must(err)
			}
		}
	}
	t.Run("R12 R19 the last failure of a trigger is kept until it is resolved", func(t *testing.T) {
		r, ids, clean := twoOldFailures(t)
		clean()
		r.wantProblems(failedOnce)
		r.must(c.Engine().Runs.Ack(t.Context(), ids[1], "test"))
		clean()
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE task_type = '%s'", r.task); n != 0 {
			t.Fatalf("%d runs are left after the acknowledgement, want 0", n)
		}
	})
	t.Run("R12 R19 a failure is kept although a later one is acknowledged", func(t *testing.T) {
		r, ids, clean := twoOldFailures(t)
		r.must(c.Engine().Runs.Ack(t.Context(), ids[1], "test"))
		clean()
		r.wantProblems(failedOnce)
	})
	t.Run("R12 R19 a failure is kept while a later one is rerun", func(t *testing.T) {
		r, ids, clean := twoOldFailures(t)
		r.must(c.Engine().Runs.Rerun(t.Context(), ids[1], "test"))
		clean()
		r.tick()
		r.finishAll("A", "0")
		r.wantProblems(failedOnce)
	})
}

// testCancelledRuns checks which cancelled runs are problems.
func testCancelledRuns(t *testing.T, c *center.Center) {
	t.Run("R19 a run that is cancelled in a rerun stays the one that failed", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("1")
		r.failAll("A", "the disk is full", "0")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		r.wantProblems()
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.wantProblems("RUN_FAILED i CANCELLED")
		if p := r.problemRecords()[0]; !strings.Contains(p.Text(), "it had failed at ") {
			t.Fatalf("the problem is %q, want the time of the failure", p.Text())
		}
		r.must(c.Engine().Runs.Ack(t.Context(), id, "test"))
		r.wantProblems()
		if got := r.findings("runs"); len(got) != 0 {
			t.Fatalf("findings %q after the acknowledgement, want none", got)
		}
	})
	t.Run("R19 the failed runs that a rerun has cancelled are named", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		var ids []string
		for _, key := range []string{"1", "2", "3"} {
			ids = append(ids, r.submitAndOpen(key))
			r.failAll("A", "the disk is full", "0")
		}
		if text := r.problemRecords()[0].Text(); strings.Contains(text, "rerun") {
			t.Fatalf("the problem is %q before any rerun", text)
		}
		for _, id := range ids[:2] {
			r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
			r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		}
		want := "3 submitted runs have failed"
		p := r.problemRecords()[0]
		if text := p.Text(); !strings.Contains(text, want) || !strings.HasSuffix(text, "; cancelled in a rerun: "+ids[1]+", "+ids[0]) {
			t.Fatalf("the problem is %q, want the two that were cancelled", text)
		}
	})
	t.Run("R19 a later success ends the problem of a run that was cancelled in a rerun", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 1 1 ? 2090"})
		id := r.fire(r.task)
		r.failAll("A", "no", "0")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.wantProblems("RUN_FAILED i CANCELLED")
		r.fire(r.task)
		r.finishAll("A", "0")
		r.wantProblems()
	})
	t.Run("R19 a run that an operator cancels is a note", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		var ids []string
		for _, key := range []string{"1", "2"} {
			ids = append(ids, r.submitAndOpen(key))
			r.must(c.Engine().Runs.Cancel(t.Context(), ids[len(ids)-1], "test"))
		}
		r.wantProblems()
		if got := r.findings("runs"); len(got) != 1 || !strings.HasPrefix(got[0], "NOTE run "+ids[0]+": 2 submitted runs were cancelled since ") {
			t.Fatalf("findings %q, want a note of both runs", got)
		}
		acked, err := c.Engine().Runs.AckTask(t.Context(), r.task, "test")
		if err != nil || len(acked) != 1 || acked[0].Count != 2 {
			t.Fatalf("acknowledged %+v, want both: %v", acked, err)
		}
		if got := r.findings("runs"); len(got) != 0 {
			t.Fatalf("findings %q after the acknowledgement, want none", got)
		}
	})
}

func testOverdueRuns(t *testing.T, c *center.Center) {
	t.Run("R19 an open run is a problem when run_timeout is nearly used up", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("1")
		waits := r.submit("2")
		r.wantProblems()
		near := r.now().Add(144*time.Minute - time.Second) // run_timeout is 24 h
		r.exec("UPDATE schedule_run SET deadline_at = '%s' WHERE run_id = '%s'", near.UTC().Format(timeLayout), id)
		r.wantProblems("RUN_OVERDUE i RUNNING")
		long := r.now().Add(-22 * time.Hour).UTC().Format(timeLayout)
		r.exec("UPDATE schedule_run SET created_at = '%[1]s', waiting_since = '%[1]s' WHERE run_id = '%[2]s'", long, waits)
		r.wantProblems("RUN_OVERDUE i RUNNING", "RUN_OVERDUE i READY")
		if got := r.findings("runs"); len(got) != 2 {
			t.Fatalf("findings %q, want 2", got)
		}
		for _, p := range r.problemRecords() { // this process may have another clock than the database (L2)
			if age, want := time.Since(p.Condition().Since), r.now().Sub(p.Since); (age - want).Abs() > time.Minute {
				t.Errorf("%s began %s ago by the clock of this process, and %s ago by that of the database", p.Kind, age, want)
			}
		}
	})
	t.Run("R13 R19 a run that must end soon has not used up its timeouts", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.exec("UPDATE schedule_task_type SET run_start_timeout_ms = 86400000 WHERE task_type = '%s'", r.task)
		soon := runs.Submission{EndBefore: r.now().Add(time.Hour)} // run_timeout is 24 h
		for _, state := range []string{runs.Running, runs.Ready} {
			id, _, err := c.Engine().Runs.Submit(t.Context(), r.task, soon)
			r.must(err)
			r.tick()
			r.wantState(id, state)
		}
		r.wantProblems()
		r.exec("UPDATE schedule_run SET waiting_since = '%s' WHERE task_type = '%s'", r.now().Add(-22*time.Hour).UTC().Format(timeLayout), r.task)
		r.wantProblems("RUN_OVERDUE i READY", "RUN_STALLED i RUNNING")
	})
	t.Run("R19 a run that is reopened, and one whose upstream ends late, wait anew", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("1")
		reopened, behind := r.submit("2"), r.submit("3")
		r.must(c.Engine().Runs.Cancel(t.Context(), reopened, "test"))
		r.tick()
		r.wantState(reopened, runs.Cancelled)
		long := r.now().Add(-22 * time.Hour).UTC().Format(timeLayout) // run_timeout is 24 h
		r.exec("UPDATE schedule_run SET state = 'WAITING' WHERE run_id = '%s'", behind)
		r.exec("UPDATE schedule_run SET created_at = '%[1]s', waiting_since = '%[1]s' WHERE run_id IN ('%[2]s', '%[3]s')", long, reopened, behind)
		r.must(c.Engine().Runs.Rerun(t.Context(), reopened, "test"))
		r.tick()
		r.wantState(reopened, runs.Ready)
		r.wantState(behind, runs.Ready)
		r.wantProblems()
	})
}

func testStalledRuns(t *testing.T, c *center.Center) {
	t.Run("R19 R20 a run without progress that holds up a backfill is a problem", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.backfillHours(2, nil)
		r.tick()
		r.claimOne("A", "0")
		r.stalledFor(29 * time.Minute)
		r.wantProblems()
		r.stalledFor(31 * time.Minute)
		r.wantProblems("RUN_STALLED i RUNNING")
		if p := r.problemRecords()[0]; p.Backfill != id {
			t.Fatalf("the problem is %+v, want it to name backfill %s", p, id)
		}
		r.exec("UPDATE schedule_task_type SET stall_after_ms = 3600000 WHERE task_type = '%s'", r.task)
		r.wantProblems()
		r.stalledFor(2*time.Hour + time.Minute)
		r.wantProblems("RUN_STALLED i RUNNING")
		r.exec("UPDATE schedule_run_queue SET next_attempt_at = '%s' WHERE queue_id = '1' AND run_id IN (SELECT run_id FROM schedule_run WHERE task_type = '%s')", r.now().Add(time.Hour).UTC().Format(timeLayout), r.task)
		r.wantProblems()
		r.exec("UPDATE schedule_run_queue SET next_attempt_at = NULL WHERE run_id IN (SELECT run_id FROM schedule_run WHERE task_type = '%s')", r.task)
		r.wantProblems("RUN_STALLED i RUNNING")
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
		r.wantProblems()
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, false))
		r.wantProblems() // no server has claimed its queues yet
		r.stalledFor(2*time.Hour + time.Minute)
		r.wantProblems("RUN_STALLED i RUNNING")
		open := r.tick().Open
		r.must(c.Engine().Runs.SetPaused(t.Context(), open, true, "test"))
		r.wantProblems()
		r.must(c.Engine().Runs.SetPaused(t.Context(), open, false, "test"))
		r.wantProblems()
	})
	t.Run("R19 a run that was reopened and waited for long is not stalled when it is opened", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("1")
		r.failAll("A", "no", "0")
		r.submitAndOpen("2")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		long := r.now().Add(-2 * time.Hour).UTC().Format(timeLayout)
		r.exec("UPDATE schedule_run SET waiting_since = '%[1]s', started_at = '%[1]s' WHERE run_id = '%[2]s'", long, id)
		r.exec("UPDATE schedule_run_queue SET progress_at = '%[1]s', finished_at = NULL WHERE run_id = '%[2]s'", long, id)
		r.finishAll("A", "0")
		r.tick()
		r.wantState(id, runs.Running)
		r.wantProblems()
	})
	t.Run("X5 R19 a run says for what it waits, until it waits no more", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		says := func(want string) {
			t.Helper()
			if got := r.runQueue(id, "0").LastError; got != want || r.run(id).Message != want {
				t.Fatalf("the queue says %q, the run %q, want %q", got, r.run(id).Message, want)
			}
		}
		wait := func(what string) {
			t.Helper()
			r.must(c.Engine().Sweeps.Save(t.Context(), r.claimOne("A", "0"), runs.Progress{Waits: &what}))
			says(what)
		}
		wait("it waits: nothing has succeeded")
		r.stalledFor(31 * time.Minute)
		if p := r.problemRecords(); len(p) != 1 || p[0].Kind != condition.RunStalled.Name || !strings.HasSuffix(p[0].Text(), ": it waits: nothing has succeeded") {
			t.Fatalf("the problems are %+v, want the stalled run with what it waits for", p)
		}
		wait("")
		wait("it waits again")
		r.moveQueue("0", "B")
		s := r.claimOne("B", "0") // a takeover
		says("")
		r.must(c.Engine().Sweeps.Save(t.Context(), s, runs.Progress{Waits: new("it waits for B")}))
		r.must(c.Engine().Sweeps.Finish(t.Context(), s, runs.Progress{ItemsDone: 1}))
		r.wantState(id, runs.Success)
		says("")
	})
}

// stalledFor sets the times of the open run, as if it had been opened and made its last progress that long ago.
func (r *fixture) stalledFor(d time.Duration) {
	at := r.now().Add(-d).UTC().Format(timeLayout)
	r.exec("UPDATE schedule_run SET waiting_since = '%[1]s', started_at = '%[1]s' WHERE task_type = '%[2]s' AND state = 'RUNNING'", at, r.task)
	r.exec("UPDATE schedule_run_queue SET progress_at = '%s' WHERE state = 'RUNNING' AND run_id IN (SELECT run_id FROM schedule_run WHERE task_type = '%s')", at, r.task)
}

func testTriggerProblems(t *testing.T, c *center.Center) {
	t.Run("R19 a missed slot is a problem until a later run succeeds", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.downSince(hour.Add(-3 * time.Hour))
		r.wantProblems("TRIGGER_LATE  ACTIVE")
		r.tick() // misfire ONE: the last slot fires, three are missed
		r.wantProblems("SLOT_MISSED iii ACTIVE")
		if got := r.readTrigger(r.task); !got.MissedAt.Equal(hour.Add(-time.Hour)) {
			t.Fatalf("missed_at is %s, want the newest missed slot %s", got.MissedAt, hour.Add(-time.Hour))
		}
		r.finishAll("A", "0")
		r.wantProblems()
	})
	t.Run("S17 R19 the success of a slot that is still to come ends no problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		// The clock was ahead when the trigger fired this run.
		ahead := r.fire(r.task)
		r.finishAll("A", "0")
		r.exec("UPDATE schedule_run SET scheduled_at = '%s' WHERE run_id = '%s'", r.now().Add(48*time.Hour).UTC().Format(timeLayout), ahead)
		r.downSince(hour.Add(-3 * time.Hour))
		r.tick()
		r.failAll("A", "no", "0")
		r.wantProblems("RUN_FAILED i FAILED", "SLOT_MISSED iii ACTIVE")
		if found := r.tick().LastSuccess; !found.IsZero() {
			t.Fatalf("the last success is %s, want none", found)
		}
	})
	t.Run("R12 R19 a missed slot that a run made up for is no problem after retention", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.downSince(hour.Add(-3 * time.Hour))
		made := r.tick().Open
		r.finishAll("A", "0")
		made = r.backdate(made)
		clean := func() []string {
			for range 3 {
				_, err := ops.New(c).Clean(t.Context(), time.Hour)
				r.must(err)
			}
			return r.readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' ORDER BY run_id", r.task)
		}
		left := clean()
		r.wantProblems()
		if !slices.Equal(left, []string{made}) {
			t.Fatalf("runs %v are left, want the one that ends the problem: %s", left, made)
		}
		later := r.fire(r.task)
		r.finishAll("A", "0")
		if left := clean(); !slices.Equal(left, []string{later}) {
			t.Fatalf("runs %v are left, want the last success: %s", left, later)
		}
	})
	t.Run("R19 missed slots can be acknowledged", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(func(t *runs.Trigger) { t.Misfire, t.Expression = runs.MisfireSkip, "6h" })
		slot := hour.Add(-4 * time.Hour)
		r.downSince(slot)
		r.tick()
		r.wantProblems("SLOT_MISSED i ACTIVE")
		if got := r.findings("triggers"); len(got) != 1 || !strings.Contains(got[0], " the slot "+slot.UTC().Format(time.RFC3339)+" was missed") {
			t.Fatalf("findings %q, want the missed slot %s", got, slot)
		}
		acked, err := c.Engine().Runs.AckTask(t.Context(), r.task, "test")
		if err != nil || len(acked) != 1 {
			t.Fatalf("acknowledged %+v, want 1 problem: %v", acked, err)
		}
		r.wantProblems()
		if r.readTrigger(r.task).Missed != 1 {
			t.Fatal("the acknowledgement changed the number of missed slots")
		}
	})
	t.Run("R19 a trigger that does not fire is a problem", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		trigger, _ := r.hourly(nil)
		r.downSince(r.now().Add(-30 * time.Second))
		r.wantProblems() // a server may fire it late
		r.downSince(r.now().Add(-2 * time.Minute))
		r.wantProblems("TRIGGER_LATE  ACTIVE")
		r.must(c.Engine().Triggers.SetPaused(t.Context(), trigger.Name, true, "test"))
		r.wantProblems()
		r.must(c.Engine().Triggers.SetPaused(t.Context(), trigger.Name, false, "test"))
		r.exec("UPDATE schedule_trigger SET expression = 'often' WHERE name = '%s'", trigger.Name)
		r.tick()
		r.wantProblems("TRIGGER_ERROR  ERROR")
		if got := r.findings("triggers"); len(got) != 1 || !strings.Contains(got[0], "often") {
			t.Fatalf("findings %q, want the invalid expression", got)
		}
	})
}
