package processor

import (
	"context"
	"time"
)

// TaskDealer selects and executes the items of the queues that this server owns. It is the whole of what a user
// must write; Keyed, Cursored, Discarder and SetSelector are powers that it may have beside. New looks for them once.
//
// Both methods are called from several executors at once, for different queues or for different batches of one
// queue, so a TaskDealer is safe for concurrent use. A panic in any method is a failure like an error, and is logged
// with its stack.
type TaskDealer[T any] interface {
	// Select returns the next items of s.Queue, by preference no more than s.Limit; all that it returns are executed,
	// but those that are in hand, back off or are dead if the dealer is Keyed. It claims nothing: items that are not
	// executed, because the queue moved or the process stopped, are simply selected again, here or elsewhere. An
	// empty result means that there is nothing to do for now, or, if s.Run is not nil, that the queue is swept.
	//
	// There is never more than one Select of a queue at a time, and none while items of the queue are in hand,
	// unless Settings.NotSleep is set. ctx is cancelled when the queue is lost or the process must stop, and ends
	// after Settings.BatchTimeout. The result may be of any type of item; it is not written to, and belongs to the
	// processor until its last item is executed.
	Select(ctx context.Context, s Selection) ([]T, error)

	// Execute does the work of items, which all belong to one queue, unless the dealer is a SetSelector. Items are
	// executed at least once, so Execute must bear a repetition, or write through the fenced transaction of package
	// center.
	//
	// An error is a failure of the whole batch, unless it is that of Failures; Permanent and RetryAfter say more.
	// The items of a Keyed or Cursored dealer are then selected again and executed one by one, without a pause, to
	// find out which of them fail; an item that fails alone is tried again after a pause of its own, and given up
	// after Settings.ItemMaxAttempts. Without these powers the whole queue pauses and all is selected again. In a
	// sweep nothing is tried again, see Queue.Run: a Keyed item that fails alone is passed, else the
	// sweep has failed.
	//
	// ctx carries the queues of the batch under the epochs of its selection, for the fence. It is cancelled when
	// the queue is lost or the process must stop, and ends after Settings.BatchTimeout; an Execute that ignores that
	// holds up the hand-over of its queue. items is valid until Execute returns.
	Execute(ctx context.Context, items []T) error
}

// Selection says what a select should return.
type Selection struct {
	TaskType  string // the kind of work
	OwnSign   string // the environment
	Parameter string // the task type's parameter, as its settings have it
	Queue     Queue  // the queue to select; empty in SelectSet
	Total     int    // number of queues of the task type: mod(id, Total) = Queue.Index
	Run       *Run   // that of Queue: the run that sweeps it; nil in mode CONTINUOUS

	// Limit is how many items are wanted: fetch_number, and as many more as the select may return in vain, because
	// they are in hand, back off or are dead (X1, X2), or have failed in this sweep. A select in a sweep that returns
	// fewer has returned all that there are: if they have all failed before, the queue is swept.
	Limit int
}

// Queue is one partition of the data under one grant. But for Cursor it does not change while it is held.
type Queue struct {
	ID        string // the number of the queue, or its name
	Index     int    // its place, 0..Total-1
	Parameter string // the queue's own parameter
	Cursor    string // how far the source of a Cursored dealer is done
	Epoch     int64  // rises with every change of owner; the fence compares it
	Run       *Run   // the run that sweeps the queue under this grant; nil in mode CONTINUOUS
}

// Run is one sweep of all queues of a task type until they are drained (mode RUN), as one queue sees it. It is not
// written to.
type Run struct {
	ID          string    // of the run
	Key         string    // what it was submitted under: unique among the runs of the task type
	Params      string    // what whoever submitted it wants it to know
	ScheduledAt time.Time // the slot that it was fired for

	// StartedAt is when the run began, by the database's clock: the upper watermark of what is swept. Rows that are
	// newer belong to the next run; a Select that returns them too may find no end.
	StartedAt time.Time

	Attempt    int  // of this queue: 1 for the first
	Recovering bool // an earlier sweep of this attempt has ended without a word
}
