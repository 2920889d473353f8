package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/runs"
)

// newRunFixture returns a task type of mode RUN with numbered queues. Server A owns them all.
func newRunFixture(t *testing.T, c *center.Center, queues int) *fixture {
	t.Helper()
	r := newFixture(t, c, center.Settings{Mode: center.ModeRun, Queues: queues})
	r.join("A")
	return r
	// submit submits a run. It starts after the runs with the ids after.
}

func (r *fixture) submit(key string, after ...string) string {
	r.Helper()
	id, err := r.c.Engine().Submit(r.Context(), r.task, key, "p", after...)
	r.must(err)
	return id
}

// tick ticks as a worker does, until nothing is left to do.
func (r *fixture) tick() runs.TickResult {
	r.Helper()
	for range 20 {
		ticked, err := r.c.Engine().Tick(r.Context(), r.task)
		r.must(err)
		if !ticked.More {
			return ticked
		}
	}
	r.Fatal("20 ticks did not finish what is due")
	return runs.TickResult{}
}

// submitAndOpen submits a run and opens it.
func (r *fixture) submitAndOpen(key string) string {
	r.Helper()
	id := r.submit(key)
	if ticked := r.tick(); ticked.Open != id {
		r.Fatalf("run %q is open, want the submitted run, which is %s", ticked.Open, r.run(id).State)
	}
	return id
}

func (r *fixture) run(id string) center.Run {
	r.Helper()
	run, err := r.c.Engine().Run(r.Context(), id)
	r.must(err)
	return run
}

// wantState checks the state of a run. It returns the run.
func (r *fixture) wantState(id, want string) center.Run {
	r.Helper()
	run := r.run(id)
	if run.State != want {
		r.Fatalf("run %s is %s (%s), want %s", id, run.State, run.Message, want)
	}
	return run
}

func (r *fixture) wantMessage(id, want string) {
	r.Helper()
	if got := r.run(id).Message; !strings.Contains(got, want) {
		r.Fatalf("run %s has message %q, want %q in it", id, got, want)
	}
}

// runStates returns the states of all runs of the task type, the oldest slot first.
func (r *fixture) runStates() []string {
	r.Helper()
	return r.readColumn("SELECT state FROM schedule_run WHERE task_type = '%s' AND own_sign = '%s' ORDER BY scheduled_at, run_id", r.task, r.c.OwnSign())
}

func (r *fixture) wantRunStates(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.runStates()); diff != "" {
		r.Fatalf("states of all runs (-want +got):\n%s", diff)
	}
}

// claim claims queues of the open run for a server that owns them and sweeps none of them.
func (r *fixture) claim(name string, queues ...string) []runs.Sweep {
	r.Helper()
	var held []center.QueueEpoch
	for _, q := range queues {
		held = append(held, center.QueueEpoch{ID: q, Epoch: r.epoch(q)})
	}
	sweeps, err := r.c.Engine().Claim(r.Context(), r.task, r.uuid(name), held, len(held))
	r.must(err)
	return sweeps
}

// claimOne claims one queue of the open run.
func (r *fixture) claimOne(name, queue string) runs.Sweep {
	r.Helper()
	sweeps := r.claim(name, queue)
	if len(sweeps) != 1 {
		r.Fatalf("server %s claimed %d sweeps of queue %s, want 1", name, len(sweeps), queue)
	}
	return sweeps[0]
}

// finishAll claims queues and finishes their sweeps.
func (r *fixture) finishAll(name string, queues ...string) {
	r.Helper()
	for _, q := range queues {
		r.must(r.c.Engine().FinishSweep(r.Context(), r.claimOne(name, q), runs.Progress{ItemsDone: 1}))
	}
}

// failAll claims queues and fails their sweeps permanently.
func (r *fixture) failAll(name, cause string, queues ...string) {
	r.Helper()
	for _, q := range queues {
		_, err := r.c.Engine().FailSweep(r.Context(), r.claimOne(name, q), runs.Progress{}, cause, true)
		r.must(err)
	}
}

// queueStates returns the queues of a run with their states, in the order of the queues: "0 DONE".
func (r *fixture) queueStates(id string) (states []string) {
	r.Helper()
	queues, err := r.c.Engine().RunQueues(r.Context(), id)
	r.must(err)
	for _, q := range queues {
		states = append(states, q.QueueID+" "+q.State)
	}
	return states
}

func (r *fixture) wantQueueStates(id string, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.queueStates(id)); diff != "" {
		r.Fatalf("queues of run %s (-want +got):\n%s", id, diff)
	}
}

// runQueue returns the row of a queue in a run.
func (r *fixture) runQueue(id, queue string) center.RunQueue {
	r.Helper()
	queues, err := r.c.Engine().RunQueues(r.Context(), id)
	r.must(err)
	return queues[slices.IndexFunc(queues, func(q center.RunQueue) bool { return q.QueueID == queue })]
}

// moveQueue makes another server the owner of a queue, as a hand-over or a take-over does.
func (r *fixture) moveQueue(queue, to string) {
	r.Helper()
	r.exec("UPDATE schedule_queue SET cur_server = '%s', req_server = NULL, epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '%s'", r.uuid(to), r.task, queue)
}

func testRunLifecycle(t *testing.T, c *center.Center) {
	t.Run("R1 a run passes from READY through RUNNING to SUCCESS", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submit("k")
		if again := r.submit("k"); again != id {
			t.Fatalf("the key was submitted again as run %s, want run %s", again, id)
		}
		r.wantRunStates(center.RunReady)
		if len(r.claim("A", "0", "1")) != 0 {
			t.Fatal("a queue was claimed before the run was open")
		}
		if ticked := r.tick(); ticked.Open != id || ticked.Paused || ticked.Now.IsZero() {
			t.Fatalf("tick returned %+v, want run %s open and not paused", ticked, id)
		}
		run := r.wantState(id, center.RunRunning)
		if run.QueueTotal != 2 || run.DeadlineAt.Sub(run.StartedAt).Round(time.Second) != 24*time.Hour || run.Key != "k" || run.Params != "p" {
			t.Fatalf("the open run is %+v, want 2 queues, a deadline after 24 hours, key k and params p", run)
		}
		sweeps := r.claim("A", "0", "1")
		if len(sweeps) != 2 || len(r.claim("A")) != 0 {
			t.Fatalf("claimed sweeps %+v, want 2, and none without queues", sweeps)
		}
		want := runs.Sweep{
			RunID: id, Key: "k", Params: "p", TaskType: r.task, QueueID: "0", QueueTotal: 2, Server: r.uuid("A"), Epoch: r.epoch("0"), Attempt: 1,
			ScheduledAt: run.ScheduledAt, StartedAt: run.StartedAt, DeadlineAt: run.DeadlineAt,
		}
		if diff := cmp.Diff(want, sweeps[0]); diff != "" {
			t.Fatalf("first sweep (-want +got):\n%s", diff)
		}
		r.must(c.Engine().SaveSweep(t.Context(), sweeps[0], runs.Progress{Cursor: new("17"), ItemsDone: 3, ItemsFailed: 1}))
		r.must(c.Engine().FinishSweep(t.Context(), sweeps[0], runs.Progress{ItemsDone: 5, ItemsFailed: 1}))
		if q := r.runQueue(id, "0"); q.Cursor != "17" || q.ItemsDone != 5 || q.State != center.RunQueueDone || q.FinishedAt.IsZero() {
			t.Fatalf("queue 0 is %+v, want DONE with cursor 17 and 5 items done", q)
		}
		if ticked := r.tick(); ticked.Open != id {
			t.Fatalf("run %q is open, want run %s until its last queue is done", ticked.Open, id)
		}
		r.must(c.Engine().FinishSweep(t.Context(), sweeps[1], runs.Progress{ItemsDone: 2}))
		run = r.wantState(id, center.RunSuccess)
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
			r.wantState(id, center.RunSuccess)
		}
	})
	t.Run("R6 a run without queues fails", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submit("k")
		r.exec("DELETE FROM schedule_queue WHERE task_type = '%s'", r.task)
		r.tick()
		r.wantState(id, center.RunFailed)
		r.wantMessage(id, "the task type has no queues")
	})
	t.Run("R6 a run without live servers waits for a server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Mode: center.ModeRun, Queues: 1})
		id := r.submit("k")
		r.wantState(id, center.RunReady)
		r.join("A")
		r.tick()
		r.finishAll("A", "0")
		r.wantState(id, center.RunSuccess)
	})
	t.Run("R6 R7 a run waits during a pause and while no server owns its queues", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first := r.submitAndOpen("1")
		r.exec("UPDATE schedule_queue SET cur_server = NULL, epoch = epoch + 1 WHERE task_type = '%s'", r.task)
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a server claimed a queue that it does not own")
		}
		r.tick()
		r.wantState(first, center.RunRunning)
		r.moveQueue("0", "A")
		r.finishAll("A", "0")
		r.must(c.Roster().Pause(t.Context(), r.task, true, "test"))
		second := r.submit("2")
		_, hour := r.hourly(nil)
		r.downSince(hour) // the tick also has a trigger to fire
		if r.tick(); r.run(second).State != center.RunReady || r.readTrigger(r.task).Fires != 1 {
			t.Fatalf("the paused task type has a run that is %s and %d firings, want READY and 1", r.run(second).State, r.readTrigger(r.task).Fires)
		}
		r.must(c.Roster().Pause(t.Context(), r.task, false, "test"))
		if ticked := r.tick(); ticked.Open != second {
			t.Fatalf("run %q is open after the pause, want run %s", ticked.Open, second)
		}
	})
}

func testRunErrors(t *testing.T, c *center.Center) {
	t.Run("errors name the operation and the cause", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		continuous := r.sibling("continuous")
		continuous.define(center.Settings{Queues: 1})
		submit := func(task, key, params string, after ...string) error {
			_, err := c.Engine().Submit(t.Context(), task, key, params, after...)
			return err
		}
		_, errRun := c.Engine().Run(t.Context(), "nobody")
		_, errTick := c.Engine().Tick(t.Context(), "nobody")
		wantErrors(t, map[string]error{
			"submit nobody: unknown task type":               submit("nobody", "k", ""),
			"mode is CONTINUOUS, and only task types of":     submit(continuous.task, "k", ""),
			"after x: unknown run":                           submit(r.task, "k", "", "x"),
			`key ("a\nb") must be printable`:                 submit(r.task, "a\nb", ""),
			"params must have at most 60000 bytes, not 7000": submit(r.task, "k", strings.Repeat("x", 70_000)),
			"params must be UTF-8":                           submit(r.task, "k", "\xff"),
			"read run nobody: unknown run":                   errRun,
			"tick nobody$BASE: unknown task type":            errTick,
			"cancel run nobody":                              c.Engine().CancelRun(t.Context(), "nobody", "test"),
			"pause run nobody":                               c.Engine().PauseRun(t.Context(), "nobody", true, "test"),
			"rerun nobody":                                   c.Engine().Rerun(t.Context(), "nobody", "test"),
		})
		r.wantRunStates()
	})
}

func testSweepClaims(t *testing.T, c *center.Center) {
	t.Run("R7 a take-over resumes from the cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		old := r.claimOne("A", "0")
		r.must(c.Engine().SaveSweep(t.Context(), old, runs.Progress{Cursor: new("17"), ItemsDone: 3}))
		r.moveQueue("0", "B")
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a server claimed a queue that it had lost")
		}
		s := r.claimOne("B", "0")
		if s.Cursor != "17" || s.ItemsDone != 3 || !s.Recovering || s.Attempt != 1 {
			t.Fatalf("the new owner claimed %+v, want a recovering first attempt with cursor 17 and 3 items done", s)
		}
		r.must(c.Engine().FinishSweep(t.Context(), s, runs.Progress{Cursor: new("20"), ItemsDone: 5}))
		if run := r.wantState(id, center.RunSuccess); run.ItemsDone != 5 {
			t.Fatalf("the run has %d items done, want 5", run.ItemsDone)
		}
	})
	t.Run("R7 a server claims a queue again after a lost reply", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		r.claimOne("A", "0") // the server never sees this reply
		if s := r.claimOne("A", "0"); !s.Recovering || s.Attempt != 1 {
			t.Fatalf("claimed %+v, want a recovering first attempt", s)
		}
	})
	t.Run("R7 a claim returns at most as many sweeps as asked for", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		r.submitAndOpen("k")
		held := []center.QueueEpoch{{ID: "0", Epoch: r.epoch("0")}, {ID: "1", Epoch: r.epoch("1")}, {ID: "2", Epoch: r.epoch("2")}}
		for i, want := range []int{2, 1} {
			sweeps, err := c.Engine().Claim(t.Context(), r.task, r.uuid("A"), held[2*i:], 2)
			if err != nil || len(sweeps) != want {
				t.Fatalf("claimed %d sweeps, want %d: %v", len(sweeps), want, err)
			}
		}
	})
}

func testSweepFence(t *testing.T, c *center.Center) {
	t.Run("R8 the late writes of a server that has lost the queue are rejected", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		zombie := r.claimOne("A", "0")
		r.moveQueue("0", "B") // B has not claimed it yet
		for name, err := range map[string]error{
			"done": c.Engine().FinishSweep(t.Context(), zombie, runs.Progress{}),
			"save": c.Engine().SaveSweep(t.Context(), zombie, runs.Progress{Cursor: new("99")}),
			"fail": second(c.Engine().FailSweep(t.Context(), zombie, runs.Progress{}, "no", true)),
			"stop": c.Engine().SuspendSweep(t.Context(), zombie, runs.Progress{}),
		} {
			if !center.IsFenced(err) {
				t.Errorf("%s under an old epoch: error %v, want ErrFenced", name, err)
			}
		}
		s := r.claimOne("B", "0")
		if s.Cursor != "" {
			t.Fatalf("the new owner claimed cursor %q, want none", s.Cursor)
		}
		if err := c.Engine().FinishSweep(t.Context(), zombie, runs.Progress{}); !center.IsFenced(err) {
			t.Fatalf("finish after the claim of the new owner: error %v, want ErrFenced", err)
		}
		r.wantQueueStates(id, "0 RUNNING")
	})
	t.Run("R8 a sweep ends when another server has claimed its queue", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET server = 'other' WHERE run_id = '%s'", s.RunID)
		if err := c.Engine().FinishSweep(t.Context(), s, runs.Progress{}); !errors.Is(err, center.ErrRunOver) {
			t.Fatalf("finish the lost sweep: error %v, want ErrRunOver", err)
		}
	})
}

func testSweepCursor(t *testing.T, c *center.Center) {
	t.Run("R8 F4 the fence saves the cursor of a sweep in the row of the run", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		bind := func(value string) center.Batch {
			return center.Batch{Server: s.Server, TaskType: r.task, Run: s.RunID, Cursor: &value, Queues: []center.QueueEpoch{{ID: "0", Epoch: s.Epoch}}}
		}
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		ctx := c.Bind(t.Context(), bind("17"))
		r.must(center.Fence(ctx, tx))
		r.must(tx.Commit())
		r.must(center.SaveCursor(ctx)) // writes nothing, since the fence has saved it
		if got := r.runQueue(s.RunID, "0").Cursor; got != "17" {
			t.Fatalf("cursor %q, want 17", got)
		}
		r.must(center.SaveCursor(c.Bind(t.Context(), bind("18"))))
		if got := r.runQueue(s.RunID, "0").Cursor; got != "18" || r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cursor_value <> ''", r.task) > 0 {
			t.Fatalf("cursor %q, want 18 in the run and none in schedule_queue", got)
		}
		r.must(c.Engine().CancelRun(t.Context(), s.RunID, "test"))
		if err := center.SaveCursor(c.Bind(t.Context(), bind("19"))); !center.IsFenced(err) || !errors.Is(err, center.ErrRunOver) {
			t.Fatalf("save the cursor of a cancelled run: error %v, want ErrFenced and ErrRunOver", err)
		}
	})
	t.Run("F4 only the server that sweeps a queue reads the cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		own := center.QueueEpoch{ID: "0", Epoch: s.Epoch}
		r.must(c.Engine().SaveSweep(t.Context(), s, runs.Progress{Cursor: new("17")}))
		if cursor, err := c.Engine().SweepCursor(t.Context(), s.RunID, s.Server, own); err != nil || cursor != "17" {
			t.Fatalf("cursor %q, want 17: %v", cursor, err)
		}
		r.moveQueue("0", "B")
		r.claimOne("B", "0")
		if _, err := c.Engine().SweepCursor(t.Context(), s.RunID, s.Server, own); !center.IsFenced(err) || !errors.Is(err, center.ErrRunOver) {
			t.Fatalf("read the cursor of the sweep of B: error %v, want ErrFenced and ErrRunOver", err)
		}
	})
	t.Run("R8 F4 a cursor is not saved under an old epoch", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		late := center.Batch{Server: s.Server, TaskType: r.task, Run: s.RunID, Cursor: new("17"), Queues: []center.QueueEpoch{{ID: "0", Epoch: s.Epoch}}}
		r.moveQueue("0", "B") // B has not claimed it yet
		if err := center.SaveCursor(c.Bind(t.Context(), late)); !center.IsFenced(err) {
			t.Fatalf("save a cursor under an old epoch: error %v, want ErrFenced", err)
		}
	})
}

func testSweepRetries(t *testing.T, c *center.Center) {
	t.Run("R11 a failed queue is tried again after a pause that doubles", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "1")
		for attempt, pause := range []time.Duration{30 * time.Second, time.Minute} {
			s := r.claimOne("A", "0")
			if s.Attempt != attempt+1 || s.Recovering {
				t.Fatalf("claimed %+v, want attempt %d and not recovering", s, attempt+1)
			}
			failed, err := c.Engine().FailSweep(t.Context(), s, runs.Progress{Cursor: new("3"), ItemsFailed: 1}, "no luck", false)
			if err != nil || failed {
				t.Fatalf("the queue has failed: %t, want another attempt: %v", failed, err)
			}
			q := r.runQueue(id, "0")
			if got := q.NextAttemptAt.Sub(q.ProgressAt).Round(time.Second); got != pause || q.State != center.RunQueuePending || q.LastError != "no luck" {
				t.Fatalf("the next attempt is after %s, want %s, and the queue PENDING with its error: %+v", got, pause, q)
			}
			if len(r.claim("A", "0")) != 0 {
				t.Fatal("the queue was claimed during the pause")
			}
			r.exec("UPDATE schedule_run_queue SET next_attempt_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id)
		}
		s := r.claimOne("A", "0")
		if s.Cursor != "3" || s.ItemsFailed != 1 {
			t.Fatalf("claimed %+v, want cursor 3 and 1 failed item", s)
		}
		failed, err := c.Engine().FailSweep(t.Context(), s, runs.Progress{}, "no luck at all", false)
		if err != nil || !failed {
			t.Fatalf("the queue has failed: %t, want true after the last attempt: %v", failed, err)
		}
		r.wantState(id, center.RunFailed)
		r.wantMessage(id, "1 of 2 queues failed, first queue 0: no luck at all")
		r.wantQueueStates(id, "0 FAILED", "1 DONE")
	})
	t.Run("R11 take-overs without progress fail a queue", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.exec("UPDATE schedule_task_type SET max_recoveries = 2 WHERE task_type = '%s'", r.task)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.claimOne("A", "0")
		r.must(c.Engine().SaveSweep(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 1})) // progress: the count starts anew
		r.claimOne("A", "0")
		r.must(c.Engine().SaveSweep(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 1})) // no progress
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("the queue was taken over more than max_recoveries times")
		}
		r.wantState(id, center.RunFailed)
		r.wantMessage(id, "first queue 0: taken over more than 2 times without progress")
	})
}

func testSweepSuspension(t *testing.T, c *center.Center) {
	t.Run("R8 a suspended sweep is neither an attempt nor a take-over", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		for range 10 {
			s := r.claimOne("A", "0")
			if s.Attempt != 1 || s.Recovering {
				t.Fatalf("claimed %+v, want a first attempt that is not recovering", s)
			}
			r.must(c.Engine().SuspendSweep(t.Context(), s, runs.Progress{Cursor: new("4")}))
		}
		if s := r.claimOne("A", "0"); s.Cursor != "4" {
			t.Fatalf("claimed cursor %q, want 4", s.Cursor)
		}
	})
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

func testRunFinaliser(t *testing.T, c *center.Center, url string) {
	t.Run("R10 the last two queues finish at the same time", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		other := Open(t, url, center.Options{})
		for i := range 20 {
			id := r.submitAndOpen(fmt.Sprint(i))
			sweeps := r.claim("A", "0", "1")
			var both sync.WaitGroup
			errs := make([]error, 2)
			for j, c := range []*center.Center{c, other} {
				both.Go(func() { errs[j] = c.Engine().FinishSweep(t.Context(), sweeps[j], runs.Progress{}) })
			}
			both.Wait()
			r.must(errors.Join(errs...))
			r.wantState(id, center.RunSuccess) // without a tick
		}
	})
	t.Run("R10 a tick ends a run whose last queue is done", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET state = 'DONE' WHERE run_id = '%s'", id)
		r.tick()
		r.wantState(id, center.RunSuccess)
	})
	t.Run("R10 the finaliser waits for a concurrent rerun", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET state = 'FAILED' WHERE run_id = '%s'", id)
		// A rerun that also opens the run is not committed yet. The finaliser has read the rows before it, and waits for the
		// row of the run.
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		for _, statement := range []string{
			"UPDATE schedule_run SET version = version + 1 WHERE run_id = '%s'",
			"UPDATE schedule_run_queue SET state = 'PENDING' WHERE run_id = '%s'",
		} {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf(statement, id))
			r.must(err)
		}
		finalised := make(chan error, 1)
		go func() { finalised <- second(c.Engine().Tick(t.Context(), r.task)) }()
		select {
		case err := <-finalised:
			r.must(err) // the finaliser decided from rows that are out of date
			r.Fatal("the finaliser did not wait for the row of the run")
		case <-time.After(100 * time.Millisecond): // the finaliser waits: not every database shows its locks
		}
		r.must(tx.Commit())
		r.must(<-finalised)
		r.wantState(id, center.RunRunning)
		r.finishAll("A", "0")
		r.wantState(id, center.RunSuccess)
	})
}

func testRunEnd(t *testing.T, c *center.Center) {
	t.Run("R9 a run ends at its deadline while a server sweeps it", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		s := r.claimOne("A", "1")
		r.exec("UPDATE schedule_run SET deadline_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id)
		if ticked := r.tick(); ticked.Open != "" {
			t.Fatalf("run %s is open after its deadline, want none", ticked.Open)
		}
		r.wantState(id, center.RunFailed)
		r.wantMessage(id, "the deadline of the run has passed: 1 of 2 queues were not done")
		r.wantQueueStates(id, "0 DONE", "1 FAILED")
		if err := c.Engine().FinishSweep(t.Context(), s, runs.Progress{}); !errors.Is(err, center.ErrRunOver) {
			t.Fatalf("finish a sweep after the deadline: error %v, want ErrRunOver", err)
		}
	})
	t.Run("R9 a run whose owner is dead is cancelled at once", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		s := r.claimOne("A", "1")
		r.makeSilent("A")
		r.must(c.Engine().CancelRun(t.Context(), id, "test"))
		r.wantState(id, center.RunCancelled)
		r.wantQueueStates(id, "0 DONE", "1 CANCELLED")
		if err := c.Engine().SaveSweep(t.Context(), s, runs.Progress{}); !errors.Is(err, center.ErrRunOver) {
			t.Fatalf("save a sweep of a cancelled run: error %v, want ErrRunOver", err)
		}
		if err := c.Engine().CancelRun(t.Context(), id, "test"); !errors.Is(err, center.ErrRunState) {
			t.Fatalf("cancel a run twice: error %v, want ErrRunState", err)
		}
	})
	t.Run("R9 a tick completes an interrupted cancel", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		running, ready := r.submitAndOpen("1"), r.submit("2")
		r.exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE task_type = '%s'", r.task)
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a queue was claimed although the cancel is requested")
		}
		r.tick()
		r.wantState(running, center.RunCancelled)
		r.wantState(ready, center.RunCancelled)
	})
}

func testRunPause(t *testing.T, c *center.Center) {
	t.Run("R1 a paused run is neither opened nor claimed", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		running, ready := r.submitAndOpen("1"), r.submit("2")
		for _, id := range []string{running, ready} {
			r.must(c.Engine().PauseRun(t.Context(), id, true, "test"))
		}
		if ticked := r.tick(); !ticked.Paused || len(r.claim("A", "0")) != 0 {
			t.Fatalf("tick returned %+v, want a paused run and no claim", ticked)
		}
		r.must(c.Engine().PauseRun(t.Context(), running, false, "test"))
		r.finishAll("A", "0")
		if ticked := r.tick(); ticked.Open != "" {
			t.Fatalf("run %s is open, want none while it is paused", ticked.Open)
		}
		r.must(c.Engine().PauseRun(t.Context(), ready, false, "test"))
		if ticked := r.tick(); ticked.Open != ready {
			t.Fatalf("run %q is open, want run %s after its pause", ticked.Open, ready)
		}
	})
}

func testRerun(t *testing.T, c *center.Center) {
	t.Run("R11 a rerun repeats only the queues that failed", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		r.must(c.Engine().SaveSweep(t.Context(), r.claimOne("A", "1"), runs.Progress{Cursor: new("17"), ItemsDone: 4}))
		r.failAll("A", "no", "1", "2")
		run := r.wantState(id, center.RunFailed)
		next := r.submitAndOpen("next")
		r.must(c.Engine().Rerun(t.Context(), id, "test"))
		r.wantQueueStates(id, "0 DONE", "1 PENDING", "2 PENDING")
		if ticked := r.tick(); ticked.Open != next {
			t.Fatalf("run %q is open, want only run %s", ticked.Open, next)
		}
		if len(r.claim("A", "1")) != 1 || r.runQueue(id, "1").State != center.RunQueuePending {
			t.Fatal("the claim took the queue of the run that is not open")
		}
		r.must(c.Engine().CancelRun(t.Context(), next, "test"))
		r.tick()
		again := r.wantState(id, center.RunRunning)
		if !again.StartedAt.Equal(run.StartedAt) || !again.DeadlineAt.After(run.DeadlineAt) {
			t.Fatalf("the rerun is %+v, want the first start and a later deadline", again)
		}
		if s := r.claimOne("A", "1"); s.Cursor != "17" || s.Attempt != 1 || s.Recovering {
			t.Fatalf("claimed %+v, want a first attempt from cursor 17 that is not recovering", s)
		}
		if err := c.Engine().Rerun(t.Context(), id, "test"); !errors.Is(err, center.ErrRunState) {
			t.Fatalf("rerun a run that is open: error %v, want ErrRunState", err)
		}
		r.finishAll("A", "1", "2")
		r.wantState(id, center.RunSuccess)
	})
}

func testRunRetention(t *testing.T, c *center.Center) {
	t.Run("R12 an old run is deleted unless an open run waits for it", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		var ids []string
		for i := range 3 {
			ids = append(ids, r.submitAndOpen(fmt.Sprint(i)))
			r.finishAll("A", "0", "1")
		}
		old := func(id string) {
			// The id tells when a run was made: the run gets the id of an old one.
			r.exec("UPDATE schedule_run_queue SET run_id = '0%s' WHERE run_id = '%s'", id[1:], id)
			r.exec("UPDATE schedule_run SET run_id = '00000000%s', finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id[8:], id)
			r.exec("UPDATE schedule_run_queue SET run_id = '00000000%s' WHERE run_id = '0%s'", id[8:], id[1:])
		}
		old(ids[0])
		old(ids[1])
		needed := "00000000" + ids[1][8:]
		waits := r.submit("waits", needed)
		r.exec("UPDATE schedule_run SET state = 'WAITING' WHERE run_id = '%s'", waits)
		for range 5 {
			_, err := c.Clean(t.Context(), time.Hour)
			r.must(err)
		}
		if got := r.readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' ORDER BY run_id", r.task); !slices.Equal(got, []string{needed, ids[2], waits}) {
			t.Fatalf("runs %v are left, want %v", got, []string{needed, ids[2], waits})
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = '00000000%s'", ids[0][8:]); n != 0 {
			t.Fatalf("%d queues of a deleted run are left, want 0", n)
		}
		r.exec("UPDATE schedule_run SET state = 'CANCELLED', finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", waits)
		_, err := c.Clean(t.Context(), time.Hour)
		r.must(err)
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE run_id = '%s'", needed); n != 0 {
			t.Fatal("an upstream is kept although the run that waited for it has ended")
		}
	})
}

// namedRun is a task type of mode RUN with named queues.
var namedRun = center.Settings{Mode: center.ModeRun, QueueNames: []string{"north", "south"}}

func testNamedQueuesInRun(t *testing.T, c *center.Center) {
	t.Run("R6 a queue that is added during a run is not swept", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		r.must(c.Roster().AddQueue(t.Context(), r.task, "west", "", "test"))
		r.rebalance("A")
		if len(r.claim("A", "west")) != 0 {
			t.Fatal("the queue was claimed for a run that began without it")
		}
		r.finishAll("A", "north", "south")
		r.wantState(id, center.RunSuccess)
		r.submitAndOpen("next")
		r.claimOne("A", "west")
	})
	t.Run("N2 a queue that is removed during a run is cancelled in it", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "south")
		r.finishAll("A", "north")
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		r.wantQueueStates(id, "north DONE", "south RUNNING") // until the owner has drained it
		r.must(c.Engine().SuspendSweep(t.Context(), s, runs.Progress{}))
		if !r.finishRemoval("A", "south") {
			t.Fatal("the drained queue was not removed")
		}
		r.wantQueueStates(id, "north DONE", "south CANCELLED")
		r.tick()
		r.wantState(id, center.RunSuccess)
		r.wantMessage(id, "without 1 queues that were removed")
	})
	t.Run("R6 N2 a queue under removal is not swept", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		r.wantQueueStates(r.submitAndOpen("k"), "north PENDING")
	})
	t.Run("R11 N2 a rerun leaves out a queue that is gone", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		r.failAll("A", "no", "north", "south")
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		r.finishRemoval("A", "south")
		r.must(c.Engine().Rerun(t.Context(), id, "test"))
		r.tick()
		r.wantQueueStates(id, "north PENDING", "south CANCELLED")
	})
}

func testRepartitionInRun(t *testing.T, c *center.Center) {
	repartition := func(r *fixture, total int) {
		r.Helper()
		r.must(c.Roster().Repartition(r.Context(), r.task, total, "test"))
		r.reportDrained("A")
		if !r.finishRepartition("A") {
			r.Fatal("the repartition did not finish")
		}
		r.rebalance("A")
	}
	t.Run("N1 an open run keeps its number of queues", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		r.must(c.Engine().SuspendSweep(t.Context(), r.claimOne("A", "1"), runs.Progress{}))
		repartition(r, 4)
		if s := r.claimOne("A", "1"); s.QueueTotal != 2 {
			t.Fatalf("claimed %+v, want a sweep of 2 queues", s)
		}
		r.finishAll("A", "1")
		if run := r.wantState(id, center.RunSuccess); run.QueueTotal != 2 {
			t.Fatalf("the run has %d queues, want 2", run.QueueTotal)
		}
		if r.submitAndOpen("next"); len(r.claim("A", "0", "1", "2", "3")) != 4 {
			t.Fatal("the next run does not have 4 queues")
		}
	})
	t.Run("N1 fewer queues fail an open run, and a rerun sweeps all", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		repartition(r, 2)
		r.wantQueueStates(id, "0 DONE", "1 PENDING", "2 FAILED")
		r.finishAll("A", "1")
		r.wantState(id, center.RunFailed)
		r.wantMessage(id, "first queue 2: there are fewer queues now: rerun the run")
		r.must(c.Engine().Rerun(t.Context(), id, "test"))
		r.tick()
		if run := r.wantState(id, center.RunRunning); run.QueueTotal != 2 {
			t.Fatalf("the rerun has %d queues, want 2", run.QueueTotal)
		}
		r.wantQueueStates(id, "0 PENDING", "1 PENDING")
	})
	t.Run("N1 no run is opened during the barrier", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		r.must(c.Roster().Repartition(t.Context(), r.task, 3, "test"))
		id := r.submit("k")
		_, hour := r.hourly(nil)
		r.downSince(hour) // the tick also has a trigger to fire
		if r.tick(); r.run(id).State != center.RunReady || r.readTrigger(r.task).Fires != 1 {
			t.Fatalf("during the barrier the run is %s and the trigger has %d firings, want READY and 1", r.run(id).State, r.readTrigger(r.task).Fires)
		}
		r.reportDrained("A")
		r.finishRepartition("A")
		r.tick()
		if run := r.wantState(id, center.RunRunning); run.QueueTotal != 3 {
			t.Fatalf("the run has %d queues, want 3", run.QueueTotal)
		}
	})
}

func testHandoverInRun(t *testing.T, c *center.Center) {
	t.Run("R8 H2 a queue that is handed over goes on at its cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "1")
		r.join("B") // requests queue 1
		r.must(c.Engine().SuspendSweep(t.Context(), s, runs.Progress{Cursor: new("5"), ItemsDone: 2}))
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B")
		if s := r.claimOne("B", "1"); s.Cursor != "5" || s.Recovering {
			t.Fatalf("the new owner claimed %+v, want cursor 5 and not recovering", s)
		}
		r.finishAll("B", "1")
		r.finishAll("A", "0")
		r.wantState(id, center.RunSuccess)
	})
}
