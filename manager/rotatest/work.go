package rotatest

import (
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Work runs a worker until nothing is left to do, and stops it. Then the last select of each queue has found nothing to
// execute, and each failed item is dead. Work waits for items that are tried again: call it in a bubble of
// testing/synctest. Run is for task types in mode RUN.
//
// Work fails the test if that takes longer than Options.Timeout, for instance because a dealer that is not Keyed fails
// again and again.
func (r *Roster) Work(tasks ...manager.Task) {
	r.tb.Helper()
	w := r.Start(tasks...)
	w.until("there is work left", w.idle)
	w.Stop()
}

// idle reports whether nothing is left to do. A select between the two looks at the queues would have begun after the
// records of the failed items were read.
func (w *Worker) idle() bool {
	before := w.Status()
	for _, s := range before {
		if s.Empty < s.Queues || s.Queues < w.queuesOf(s.TaskType) || w.retries(s.TaskType) {
			return false
		}
	}
	for i, s := range w.Status() {
		if s.Empty < s.Queues || s.Work.FetchItemCount != before[i].Work.FetchItemCount {
			return false
		}
	}
	return true
}

func (w *Worker) queuesOf(taskType string) int {
	w.r.tb.Helper()
	list, err := ops.New(w.r.c).Tasks().List(w.r.tb.Context(), taskType)
	if err != nil {
		w.r.tb.Fatal("rotatest: ", err)
	}
	return int(list[0].QueueTotal)
}

// retries reports whether a failed item is tried again.
func (w *Worker) retries(taskType string) bool {
	w.r.tb.Helper()
	items, err := ops.New(w.r.c).Items().List(w.r.tb.Context(), ops.ItemFilter{TaskType: taskType, State: "RETRY"}, 1)
	if err != nil {
		w.r.tb.Fatal("rotatest: ", err)
	}
	return len(items) > 0
}

// Run submits a run of a task type in mode RUN, which is among the tasks. It runs a worker until the run has ended,
// however it ends, and stops the worker. It returns the run: State is runs.Success or runs.Failed, for
// instance. Center().Runs() has its queues and failed items.
//
// Run fails the test if the key was submitted before, in this test or in an earlier program on the same database:
// that run has ended, and its outcome says nothing of these tasks. Without a key, each call makes a run.
func (r *Roster) Run(taskType, key, params string, tasks ...manager.Task) runs.Record {
	r.tb.Helper()
	w := r.Start(tasks...)
	ctx := r.tb.Context()
	id, existed, err := ops.New(r.c).Runs().Submit(ctx, taskType, runs.Submission{Key: key, Params: params})
	if err != nil {
		r.tb.Fatal("rotatest: ", err)
	}
	if existed {
		r.tb.Fatalf("rotatest: run %s: key %q was submitted before, as run %s, which says nothing of these tasks: "+
			"take another key or none", taskType, key, id)
	}
	var run runs.Record
	w.until("the run has not ended", func() bool {
		if run, err = ops.New(r.c).Runs().Get(ctx, id); err != nil {
			r.tb.Fatal("rotatest: ", err)
		}
		return run.Ended()
	})
	w.Stop()
	return run
}
