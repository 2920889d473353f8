package center

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/runs"
)

// Runs lists, submits and controls the runs of task types of mode RUN.
type Runs struct {
	runs    *runs.Runs
	ownSign string
}

// Runs returns the bundle of runs.
func (c *Center) Runs() *Runs { return &Runs{c.runs.Runs, c.ownSign} }

// The records of runs and triggers. Their fields are the columns of the tables, see docs/tables.md.
type (
	// Run is one sweep of all queues of a task type, a row of schedule_run.
	Run = runs.Run
	// RunQueue is a queue of a run, a row of schedule_run_queue.
	RunQueue = runs.RunQueue
	// RunItem is an item that failed in the sweep of a queue of a run, a row of schedule_run_item.
	RunItem = runs.RunItem
	// RunItemFilter selects failed items of a run. An empty QueueID selects all queues.
	RunItemFilter = runs.RunItemFilter
	// RunDep is an edge of a graph of runs: Run waits for Upstream (R5).
	RunDep = runs.RunDep
	// RunRecord is a run and its progress.
	RunRecord = runs.RunRecord
	// Submission is what a caller of Submit asks for.
	Submission = runs.Submission
	// RunFilter selects runs. Empty fields select all.
	RunFilter = runs.RunFilter
	// QueueRun is a queue in one of the runs of its task type.
	QueueRun = runs.QueueRun
	// RunDay counts the runs of a day.
	RunDay = runs.RunDay
	// RunEnd is how runs of a task type ended.
	RunEnd = runs.RunEnd
	// RunProblem is something about the runs of a task type that an operator should look after (R19).
	RunProblem = runs.Problem
	// Backfill makes a run for each slot of a trigger in a range of time. It is a row of schedule_backfill.
	Backfill = runs.Backfill
	// BackfillRange asks for a Backfill.
	BackfillRange = runs.BackfillRange
	// BackfillRecord is a backfill and the numbers of its runs.
	BackfillRecord = runs.BackfillRecord
	// BackfillFilter selects backfills. Empty fields select all.
	BackfillFilter = runs.BackfillFilter
	// BackfillSlot is a slot of a backfill and its run.
	BackfillSlot = runs.BackfillSlot
	// BackfillQueue is a queue in the run of a slot.
	BackfillQueue = runs.BackfillQueue
	// PlannedSlot is a slot and what a backfill would do with it.
	PlannedSlot = runs.PlannedSlot
	// Trigger says when runs of a task type begin without a Submit. It is a row of schedule_trigger.
	Trigger = runs.Trigger
	// TriggerRecord is a trigger as operators see it.
	TriggerRecord = runs.TriggerRecord
	// TriggerFilter selects triggers. Empty fields select all.
	TriggerFilter = runs.TriggerFilter
	// TriggerDiff is a trigger beside the row that it replaces.
	TriggerDiff = runs.TriggerDiff
	// After is an upstream of a task type, with the rule for its end.
	After = runs.After
	// Difference is a setting for which a program or a file gives another value than the row has.
	Difference = runs.Difference
)

// The states of a run (R1). The first three are open: the run has not ended.
const (
	RunWaiting         = runs.RunWaiting         // it waits for its upstreams
	RunReady           = runs.RunReady           // it is opened when no other run of the task type is RUNNING
	RunRunning         = runs.RunRunning         // its queues are being swept
	RunSuccess         = runs.RunSuccess         // every queue is drained
	RunFailed          = runs.RunFailed          // a queue has failed, or the deadline has passed
	RunDependentFailed = runs.RunDependentFailed // an upstream did not succeed
	RunCancelled       = runs.RunCancelled       // an operator cancelled it
	RunSkipped         = runs.RunSkipped         // other runs of the task type were open
)

// The states of a queue of a run.
const (
	RunQueuePending   = runs.RunQueuePending   // its owner may claim it, from next_attempt_at on
	RunQueueRunning   = runs.RunQueueRunning   // a server has claimed it
	RunQueueDone      = runs.RunQueueDone      // it is drained
	RunQueueFailed    = runs.RunQueueFailed    // it has failed too often, or the deadline has passed
	RunQueueCancelled = runs.RunQueueCancelled // the run was cancelled, or the queue was removed
)

// The kinds of RunProblem, which are also the kinds of the alerts about them.
const (
	ProblemFailed  = runs.ProblemFailed  // a run has failed, and no later run of its trigger has succeeded
	ProblemOverdue = runs.ProblemOverdue // an open run has used 90 % of run_timeout
	ProblemStalled = runs.ProblemStalled // no item of an open run has ended for half an hour
	ProblemMissed  = runs.ProblemMissed  // a slot of a trigger never fires, and no run of a later slot has succeeded
	ProblemSkipped = runs.ProblemSkipped // three slots of a trigger in a row were skipped, or all slots of a day
	ProblemLate    = runs.ProblemLate    // a trigger has been due for a minute, and no server fires it
	ProblemInvalid = runs.ProblemInvalid // the row of a trigger is invalid
)

// List lists the latest runs of this own_sign that the filter selects, the newest first, at most limit.
func (r *Runs) List(ctx context.Context, f RunFilter, limit int) ([]RunRecord, error) {
	return r.runs.List(ctx, f, limit)
}

// Find returns the run with the given id, or the newest run of the task type with the given name. It returns
// ErrNoRunOrTask if there is neither, and ErrNoRunYet if the task type has had no run. It refuses a task type of mode
// CONTINUOUS.
func (r *Runs) Find(ctx context.Context, name string) (RunRecord, error) {
	run, err := r.Get(ctx, name)
	if !errors.Is(err, ErrUnknownRun) {
		return run, err
	}
	run, err = r.runs.Latest(ctx, name)
	switch {
	case errors.Is(err, ErrUnknownTask):
		err = fmt.Errorf("find run %s in own_sign %s: %w", name, r.ownSign, ErrNoRunOrTask)
	case errors.Is(err, ErrUnknownRun):
		err = fmt.Errorf("find the newest run of %s$%s: %w", name, r.ownSign, ErrNoRunYet)
	}
	return run, err
}

// Get returns the run with the given id, or ErrUnknownRun if there is none.
func (r *Runs) Get(ctx context.Context, runID string) (RunRecord, error) {
	list, err := r.List(ctx, RunFilter{RunID: runID}, 1)
	if err != nil {
		return RunRecord{}, err
	}
	if len(list) == 0 {
		return RunRecord{}, fmt.Errorf("read run %s: %w", runID, ErrUnknownRun)
	}
	return list[0], nil
}

// Queues returns the queues of a run in natural order. There are none before the run is opened.
func (r *Runs) Queues(ctx context.Context, runID string) ([]RunQueue, error) {
	return r.runs.Queues(ctx, runID)
}

// OfQueue returns what a queue did in the latest runs of its task type, at most limit, the newest first. Runs that were not
// opened, or that had no such queue, are left out.
func (r *Runs) OfQueue(ctx context.Context, taskType, queueID string, limit int) ([]QueueRun, error) {
	return r.runs.OfQueue(ctx, taskType, queueID, limit)
}

// FailedItems lists the items of a run that failed, by queue and in the order of their failures, at most limit. A queue
// records its first 100; RunQueue.ItemsFailed counts all of them. FailedItems also lists the items that failed in an
// earlier attempt of the queue, until a later attempt has been through the whole queue. Dealers without keys and
// cursors have no failed items.
func (r *Runs) FailedItems(ctx context.Context, f RunItemFilter, limit int) ([]RunItem, error) {
	return r.runs.FailedItems(ctx, f, limit)
}

// Graph returns a run with its upstreams and dependants, direct and indirect, in the order in which they were made, and
// the edges between them. It returns ErrUnknownRun if there is no such run.
func (r *Runs) Graph(ctx context.Context, runID string) ([]Run, []RunDep, error) {
	return r.runs.Graph(ctx, runID)
}

// Submit makes a run of a task type of mode RUN, and the runs of its dependants, and returns its id. There is one run
// of a key: a call with a key that was submitted before returns the id of the first run, reopened if it was SKIPPED,
// and existed is true. Without a key each call makes a run. The run is opened when the runs in After have succeeded, the
// time NotBefore has come and no other run of the task type is RUNNING. If one of the runs in After does not succeed, the
// run ends DEPENDENT_FAILED.
//
// The dependants get the key, the params and the priority. Submit returns ErrUnknownTask if the task type has no row, and
// ErrUnknownRun if a run in After does not exist. After a commit whose reply was lost, existed is false.
func (r *Runs) Submit(ctx context.Context, taskType string, s Submission) (runID string, existed bool, err error) {
	return r.runs.Submit(ctx, taskType, s)
}

// Days counts the runs of this own_sign by task type, by the day in UTC for which they were scheduled and by state: those
// of today and of so many days before it. It reads all runs of these days.
func (r *Runs) Days(ctx context.Context, days int) ([]RunDay, error) { return r.runs.Days(ctx, days) }

// Problems lists what an operator should look after in the runs of the task type, or of all task types if it is empty.
// It sends two statements, and three more for each trigger whose runs have failed.
func (r *Runs) Problems(ctx context.Context, taskType string) ([]RunProblem, error) {
	return r.runs.Problems(ctx, taskType)
}

// Cancelled lists the runs that an operator cancelled although they had not failed, those of each trigger as one record,
// until a later run of the trigger succeeds or an operator acknowledges them.
func (r *Runs) Cancelled(ctx context.Context, taskType string) ([]RunProblem, error) {
	return r.runs.Cancelled(ctx, taskType)
}
