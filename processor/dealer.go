package processor

import "context"

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
	// empty result means that there is nothing to do for now.
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
	// after Settings.ItemMaxAttempts. Without these powers the whole queue pauses and all is selected again.
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

	// Limit is how many items are wanted: fetch_number, and as many more as the select may return in vain, because
	// they are in hand, back off or are dead (X1, X2).
	Limit int
}

// Queue is one partition of the data under one grant. But for Cursor it does not change while it is held.
type Queue struct {
	ID        string // the number of the queue, or its name
	Index     int    // its place, 0..Total-1
	Parameter string // the queue's own parameter
	Cursor    string // how far the source of a Cursored dealer is done
	Epoch     int64  // rises with every change of owner; the fence compares it
}
