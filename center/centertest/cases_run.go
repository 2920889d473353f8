package centertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func testRunLifecycle(t *testing.T, c *center.Center) {
	t.Run("R1 a run passes from READY through RUNNING to SUCCESS", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submit("k")
		if again := r.submit("k"); again != id {
			t.Fatalf("the key was submitted again as run %s, want run %s", again, id)
		}
		r.wantRunStates(runs.Ready)
		if len(r.claim("A", "0", "1")) != 0 {
			t.Fatal("a queue was claimed before the run was open")
		}
		if ticked := r.tick(); ticked.Open != id || ticked.Paused || ticked.Now.IsZero() {
			t.Fatalf("tick returned %+v, want run %s open and not paused", ticked, id)
		}
		run := r.wantState(id, runs.Running)
		if run.QueueTotal != 2 || run.DeadlineAt.Sub(run.StartedAt).Round(time.Second) != 24*time.Hour || run.Key != "k" || run.Params != "p" {
			t.Fatalf("the open run is %+v, want 2 queues, a deadline after 24 hours, key k and params p", run)
		}
		sweeps := r.claim("A", "0", "1")
		if len(sweeps) != 2 || len(r.claim("A")) != 0 {
			t.Fatalf("claimed sweeps %+v, want 2, and none without queues", sweeps)
		}
		want := runs.Sweep{
			RunID: id, Key: "k", Params: "p", TraceParent: traceParent, TaskType: r.task, QueueID: "0", QueueTotal: 2, Server: r.uuid("A"), Epoch: r.epoch("0"), Attempt: 1,
			ScheduledAt: run.ScheduledAt, TimeZone: "UTC", StartedAt: run.StartedAt, DeadlineAt: run.DeadlineAt,
		}
		if diff := cmp.Diff(want, sweeps[0]); diff != "" {
			t.Fatalf("first sweep (-want +got):\n%s", diff)
		}
		r.moveCursor(sweeps[0], "17")
		r.must(c.Engine().Sweeps.Save(t.Context(), sweeps[0], runs.Progress{ItemsDone: 3, ItemsFailed: 1}))
		r.must(c.Engine().Sweeps.Finish(t.Context(), sweeps[0], runs.Progress{ItemsDone: 5, ItemsFailed: 1}))
		if q := r.runQueue(id, "0"); q.Cursor != "17" || q.ItemsDone != 5 || q.State != runs.QueueDone || q.FinishedAt.IsZero() {
			t.Fatalf("queue 0 is %+v, want DONE with cursor 17 and 5 items done", q)
		}
		if ticked := r.tick(); ticked.Open != id {
			t.Fatalf("run %q is open, want run %s until its last queue is done", ticked.Open, id)
		}
		r.must(c.Engine().Sweeps.Finish(t.Context(), sweeps[1], runs.Progress{ItemsDone: 2}))
		run = r.wantState(id, runs.Success)
		if run.ItemsDone != 7 || run.ItemsFailed != 1 || run.FinishedAt.IsZero() {
			t.Fatalf("the finished run is %+v, want 7 items done and 1 failed", run)
		}
		if ticked := r.tick(); ticked.Open != "" {
			t.Fatalf("run %s is open, want none after the last has ended", ticked.Open)
		}
	})
}

func testRunOpening(t *testing.T, c *center.Center) {
	t.Run("R4 one run is open at a time, the highest priority first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first, second, third := r.submit("1"), r.submit("2"), r.submit("3")
		r.exec("UPDATE schedule_run SET priority = 7 WHERE run_id = '%s'", third)
		for _, id := range []string{third, first, second} {
			if ticked := r.tick(); ticked.Open != id {
				t.Fatalf("run %s is open, want run %s", ticked.Open, id)
			}
			r.finishAll("A", "0")
			r.wantState(id, runs.Success)
		}
	})
	t.Run("R6 a run without queues fails", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submit("k")
		r.exec("DELETE FROM schedule_queue WHERE task_type = '%s'", r.task)
		r.tick()
		r.wantState(id, runs.Failed)
		r.wantMessage(id, "the task type has no queues")
	})
	t.Run("R6 a run without live servers waits for a server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Mode: center.ModeRun, Queues: 1})
		id := r.submit("k")
		r.wantState(id, runs.Ready)
		r.join("A")
		r.tick()
		r.finishAll("A", "0")
		r.wantState(id, runs.Success)
	})
	t.Run("R6 R7 a run waits during a pause and while no server owns its queues", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first := r.submitAndOpen("1")
		r.exec("UPDATE schedule_queue SET cur_server = NULL, epoch = epoch + 1 WHERE task_type = '%s'", r.task)
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a server claimed a queue that it does not own")
		}
		r.tick()
		r.wantState(first, runs.Running)
		r.moveQueue("0", "A")
		r.finishAll("A", "0")
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
		second := r.submit("2")
		_, hour := r.hourly(func(t *runs.Trigger) { t.Priority = -1 })
		r.downSince(hour) // the tick also has a trigger to fire
		if r.tick(); r.run(second).State != runs.Ready || !r.readTrigger(r.task).PrevFireAt.Equal(hour) {
			t.Fatalf("the paused task type has a run that is %s and the trigger is %+v, want READY and its slot taken", r.run(second).State, r.readTrigger(r.task))
		}
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, false))
		if ticked := r.tick(); ticked.Open != second {
			t.Fatalf("run %q is open after the pause, want run %s", ticked.Open, second)
		}
	})
}

func testRunPause(t *testing.T, c *center.Center) {
	t.Run("R1 a paused run is neither opened nor claimed", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		running, ready := r.submitAndOpen("1"), r.submit("2")
		for _, id := range []string{running, ready} {
			r.must(c.Engine().Runs.SetPaused(t.Context(), id, true, "test"))
		}
		if ticked := r.tick(); !ticked.Paused || len(r.claim("A", "0")) != 0 {
			t.Fatalf("tick returned %+v, want a paused run and no claim", ticked)
		}
		r.must(c.Engine().Runs.SetPaused(t.Context(), running, false, "test"))
		r.finishAll("A", "0")
		if ticked := r.tick(); ticked.Open != "" {
			t.Fatalf("run %s is open, want none while it is paused", ticked.Open)
		}
		r.must(c.Engine().Runs.SetPaused(t.Context(), ready, false, "test"))
		if ticked := r.tick(); ticked.Open != ready {
			t.Fatalf("run %q is open, want run %s after its pause", ticked.Open, ready)
		}
	})
}

func testRunErrors(t *testing.T, c *center.Center) {
	t.Run("errors name the operation and the cause", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		continuous := r.sibling("continuous")
		continuous.define(center.Settings{Queues: 1})
		ask := func(task string, s runs.Submission) error {
			_, _, err := c.Engine().Runs.Submit(t.Context(), task, s)
			return err
		}
		submit := func(task, key, params string, after ...string) error {
			return ask(task, runs.Submission{Key: key, Params: params, After: after})
		}
		_, errRun := ops.New(c).Runs().Get(t.Context(), "nobody")
		_, errTick := c.Engine().Scheduler.Tick(t.Context(), "nobody")
		wantErrors(t, map[string]error{
			"submit nobody: unknown task type":               submit("nobody", "k", ""),
			"mode is CONTINUOUS, and only task types of":     submit(continuous.task, "k", ""),
			"after \"x\": unknown run":                       submit(r.task, "k", "", "x"),
			`key ("a\nb") must be printable`:                 submit(r.task, "a\nb", ""),
			"params must have at most 60000 bytes, not 7000": submit(r.task, "k", strings.Repeat("x", 70_000)),
			"params must be UTF-8":                           submit(r.task, "k", "\xff"),
			`trace_parent ("00-4BF9") must be a traceparent`: ask(r.task, runs.Submission{TraceParent: "00-4BF9"}),
			"read run nobody: unknown run":                   errRun,
			"tick nobody$BASE: unknown task type":            errTick,
			"cancel run nobody":                              c.Engine().Runs.Cancel(t.Context(), "nobody", "test"),
			"pause run nobody":                               c.Engine().Runs.SetPaused(t.Context(), "nobody", true, "test"),
			"rerun run nobody":                               c.Engine().Runs.Rerun(t.Context(), "nobody", "test"),
		})
		r.wantRunStates()
	})
}
