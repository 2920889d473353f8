package processor

import (
	"context"
	"time"
)

// TaskDealer selects and executes the items of the queues that this server owns. A user must implement only this
// interface. Keyed, Cursored, Discarder and SetSelector are optional capabilities of the same value. New looks for
// them once.
//
// The executors call both methods concurrently: for different queues, and for different batches of one queue. A
// TaskDealer must therefore be safe for concurrent use. A panic in any method counts as an error. It is logged with its
// stack.
type TaskDealer[T any] interface {
	// Select returns the next items of s.Queue, preferably at most s.Limit. The processor executes all of them. If
	// the dealer is Keyed, it leaves out the items that are in flight, back off or are dead. Select claims nothing:
	// when items are not executed because the queue moved or the process stopped, the next select returns them again,
	// here or on another server. An empty result means that there is nothing to do at the moment. If s.Run is not
	// nil, it means that the sweep of the queue is complete.
	//
	// At most one Select of a queue runs at a time. Unless Settings.NotSleep is set, none runs while items of the
	// queue are in flight. ctx is cancelled when the queue is lost or the process must stop, and it expires after
	// Settings.BatchTimeout. The processor does not write to the result, and uses it until the last item is executed.
	Select(ctx context.Context, s Selection) ([]T, error)

	// Execute processes items. All of them belong to one queue, unless the dealer is a SetSelector. The processor
	// executes items at least once, so Execute must tolerate a repetition, or write through the fenced transaction
	// of package center.
	//
	// An error means that the whole batch failed, unless it comes from Failures. Permanent and RetryAfter add
	// details. If the dealer is Keyed or Cursored, the items of a failed batch are selected again without a pause and
	// executed in smaller batches, down to one item, to find the items that fail. An item that fails alone is tried
	// again after its own pause, and is dead after Settings.ItemMaxAttempts. Otherwise the whole queue pauses and all
	// items are selected again. A sweep retries nothing, see Queue.Run: it passes a Keyed item that fails alone, and
	// any other error fails the sweep.
	//
	// ctx carries the queues of the batch under the epochs of its selection, for the fence. It is cancelled when the
	// queue is lost or the process must stop, and it expires after Settings.BatchTimeout. context.Cause(ctx) wraps
	// center.ErrFenced if the process knows that it does not own the queue any more. An Execute that ignores ctx
	// delays the hand-over of its queue. items is valid until Execute returns.
	Execute(ctx context.Context, items []T) error
}

// Selection says what a select should return.
type Selection struct {
	TaskType  string // the kind of work
	OwnSign   string // the environment
	Parameter string // Settings.Parameter
	Queue     Queue  // the queue to select; empty in SelectSet
	Total     int    // number of queues of the task type: mod(id, Total) = Queue.Index
	Run       *Run   // Queue.Run: the run that sweeps the queue; nil in mode CONTINUOUS

	// After is the position of a Paged dealer behind which the select goes on. It is empty at the start of the source,
	// and for other dealers.
	After string

	// Limit is the number of items that the processor asks for. It is the size of a page, which is about a second of
	// work and at most fetch_number, plus the number of items that the select may return although they are not
	// executed: they are in flight, back off or are dead (X1, X2), or failed in this sweep. In a sweep, a result with
	// fewer items than Limit is complete: if all its items failed before, the sweep ends.
	Limit int
}

// Queue is one partition of the data under one grant. Only Cursor changes during the grant.
type Queue struct {
	ID        string // the number of the queue, or its name
	Index     int    // its position, 0..Total-1
	Parameter string // the queue's own parameter
	Cursor    string // the position up to which the source of a Cursored dealer is done
	Epoch     int64  // rises with every change of owner; the fence compares it
	Run       *Run   // the run that sweeps the queue under this grant; nil in mode CONTINUOUS

	// Partition is the caller's version of the division of items into queues, for Env.Items.
	Partition int64

	// Crashes is the number of owners in a row that were expired before they had executed a page of the queue. In a run,
	// it is at least the number of takeovers without progress.
	Crashes int

	// FailingSince is when the first of the calls ended that failed for the earlier owner, if QueueState.Failing was set
	// there and nothing of the queue has succeeded since. The queue then fails until a call says otherwise.
	FailingSince time.Time
}

// Run describes one run to one of its queues (mode RUN). A run sweeps all queues of a task type until they are drained.
// The processor does not write to it.
type Run struct {
	ID          string    // of the run
	Key         string    // the key of the submission; unique among the runs of the task type
	Params      string    // the parameters of the submission
	ScheduledAt time.Time // the time slot that fired the run

	// StartedAt is the time at which the run began, by the database's clock. It is the upper bound for the rows of
	// this run: newer rows belong to the next run. A Select that also returns newer rows may never return an empty
	// result.
	StartedAt time.Time

	Attempt    int  // of this queue; the first is 1
	Recovering bool // an earlier sweep of this attempt stopped without reporting a result

	// What failed in earlier sweeps of this queue in the run, also before a rerun: the number of items, and the keys of
	// those that were recorded. An item that fails again is poison.
	ItemsFailed  int64
	FailedBefore []string
}
