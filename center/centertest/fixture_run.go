package centertest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// newRunFixture returns a task type of mode RUN with numbered queues. Server A owns them all.
func newRunFixture(t *testing.T, c *center.Center, queues int) *fixture {
	t.Helper()
	r := newFixture(t, c, center.Settings{Mode: center.ModeRun, Queues: queues})
	r.join("A")
	return r
}

// runSteps are what a case does with the runs of its task type.
type runSteps struct{ queueSteps }

// traceParent is the trace context of each run that submit submits.
const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// submit submits a run that waits for the runs with the ids in after. It returns the id of the run.
func (r runSteps) submit(key string, after ...string) string {
	r.Helper()
	id, _, err := r.c.Engine().Runs.Submit(r.Context(), r.task, runs.Submission{
		Key: key, Params: "p", TraceParent: traceParent, After: after,
	})
	r.must(err)
	return id
}

// sweepBatch returns the context of a batch of a sweep that moves its cursor.
func (r runSteps) sweepBatch(s runs.Sweep, from, to string) context.Context {
	return r.c.Bind(r.Context(), center.Batch{
		Server: s.Server, TaskType: r.task, Run: s.RunID, Cursor: &center.CursorMove{From: from, To: to},
		Queue: center.QueueEpoch{ID: s.QueueID, Epoch: s.Epoch},
	})
}

// moveCursor moves the cursor of a sweep from where it was claimed, as a batch does.
func (r runSteps) moveCursor(s runs.Sweep, to string) {
	r.Helper()
	r.must(center.SaveCursor(r.sweepBatch(s, s.Cursor, to)))
}

// tick ticks as a worker does, until nothing is left to do.
func (r runSteps) tick() runs.TickResult {
	r.Helper()
	for range 20 {
		ticked, err := r.c.Engine().Scheduler.Tick(r.Context(), r.task)
		r.must(err)
		if !ticked.More {
			return ticked
		}
	}
	r.Fatal("20 ticks did not finish what is due")
	return runs.TickResult{}
}

// submitAndOpen submits a run and opens it.
func (r runSteps) submitAndOpen(key string) string {
	r.Helper()
	id := r.submit(key)
	if ticked := r.tick(); ticked.Open != id {
		r.Fatalf("run %q is open, want the submitted run, which is %s", ticked.Open, r.run(id).State)
	}
	return id
}

// backdate makes a run that has ended one of long ago, and returns the id that it has then: Clean looks at the ids.
func (r runSteps) backdate(id string) string {
	r.Helper()
	old := "00000000-0000-7000-8000-" + id[24:]
	r.exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id)
	for _, table := range []string{"schedule_run", "schedule_run_queue", "schedule_run_dep"} {
		r.exec("UPDATE "+table+" SET run_id = '%s' WHERE run_id = '%s'", old, id)
	}
	r.exec("UPDATE schedule_run_dep SET upstream_run_id = '%s' WHERE upstream_run_id = '%s'", old, id)
	return old
}

func (r runSteps) run(id string) runs.Run { return r.record(id).Run }

func (r runSteps) record(id string) runs.Record {
	r.Helper()
	run, err := ops.New(r.c).Runs().Get(r.Context(), id)
	r.must(err)
	return run
}

// wantState checks the state of a run. It returns the run.
func (r runSteps) wantState(id, want string) runs.Run {
	r.Helper()
	run := r.run(id)
	if run.State != want {
		r.Fatalf("run %s is %s (%s), want %s", id, run.State, run.Message, want)
	}
	return run
}

func (r runSteps) wantMessage(id, want string) {
	r.Helper()
	if got := r.run(id).Message; !strings.Contains(got, want) {
		r.Fatalf("run %s has message %q, want %q in it", id, got, want)
	}
}

// runStates returns the states of all runs of the task type, the oldest slot first.
func (r runSteps) runStates() []string {
	r.Helper()
	return r.readColumn("SELECT state FROM schedule_run WHERE task_type = '%s' AND own_sign = '%s' ORDER BY scheduled_at, run_id", r.task, r.c.OwnSign())
}

func (r runSteps) wantRunStates(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.runStates()); diff != "" {
		r.Fatalf("states of all runs (-want +got):\n%s", diff)
	}
}

// claim claims queues of the open run for a server that owns them and sweeps none of them.
func (r runSteps) claim(name string, queues ...string) []runs.Sweep {
	r.Helper()
	var held []center.QueueEpoch
	for _, q := range queues {
		held = append(held, center.QueueEpoch{ID: q, Epoch: r.epoch(q)})
	}
	sweeps, err := r.c.Engine().Sweeps.Claim(r.Context(), r.task, r.uuid(name), held, len(held))
	r.must(err)
	return sweeps
}

// claimOne claims one queue of the open run.
func (r runSteps) claimOne(name, queue string) runs.Sweep {
	r.Helper()
	sweeps := r.claim(name, queue)
	if len(sweeps) != 1 {
		r.Fatalf("server %s claimed %d sweeps of queue %s, want 1", name, len(sweeps), queue)
	}
	return sweeps[0]
}

// finishAll claims queues and finishes their sweeps.
func (r runSteps) finishAll(name string, queues ...string) {
	r.Helper()
	for _, q := range queues {
		r.must(r.c.Engine().Sweeps.Finish(r.Context(), r.claimOne(name, q), runs.Progress{ItemsDone: 1}))
	}
}

// failAll claims queues and fails their sweeps permanently.
func (r runSteps) failAll(name, cause string, queues ...string) {
	r.Helper()
	for _, q := range queues {
		_, err := r.c.Engine().Sweeps.Fail(r.Context(), r.claimOne(name, q), runs.Progress{}, cause, true)
		r.must(err)
	}
}

// queueStates returns the queues of a run with their states, in the order of the queues: "0 DONE".
func (r runSteps) queueStates(id string) (states []string) {
	r.Helper()
	queues, err := r.c.Engine().Runs.Queues(r.Context(), id)
	r.must(err)
	for _, q := range queues {
		states = append(states, q.QueueID+" "+q.State)
	}
	return states
}

func (r runSteps) wantQueueStates(id string, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.queueStates(id)); diff != "" {
		r.Fatalf("queues of run %s (-want +got):\n%s", id, diff)
	}
}

// runQueue returns the row of a queue in a run.
func (r runSteps) runQueue(id, queue string) runs.Queue {
	r.Helper()
	queues, err := r.c.Engine().Runs.Queues(r.Context(), id)
	r.must(err)
	return queues[slices.IndexFunc(queues, func(q runs.Queue) bool { return q.QueueID == queue })]
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }
