package processor

import "context"

// TaskDealer selects and executes the items of the queues that this server owns. It is the whole of what a user
// must write.
//
// Both methods are called from several executors at once, for different queues or for different batches of one
// queue, so a TaskDealer is safe for concurrent use. A panic in either is a failure like an error, and is logged
// with its stack.
type TaskDealer[T any] interface {
	// Select returns the next items of s.Queue, by preference no more than s.Limit; all that it returns are executed.
	// It claims nothing: items that are not executed, because the queue moved or the process stopped, are simply
	// selected again, here or elsewhere. An empty result means that there is nothing to do for now.
	//
	// There is never more than one Select of a queue at a time, and none while items of the queue are in hand.
	// ctx is cancelled when the queue is lost or the process must stop. The result may be of any type of item; it
	// is not written to, and belongs to the processor until its last item is executed.
	Select(ctx context.Context, s Selection) ([]T, error)

	// Execute does the work of items, which all belong to one queue, unless the dealer is a SetSelector. An error
	// is a failure of the whole batch: its items are selected again after a pause. Items are executed at least
	// once, so Execute must bear a repetition, or write through the fenced transaction of package center.
	//
	// ctx carries the queues of the batch under the epochs of its selection, for the fence. It is cancelled when
	// the queue is lost or the process must stop; an Execute that ignores that holds up the hand-over of its queue.
	// items is valid until Execute returns.
	Execute(ctx context.Context, items []T) error
}

// SetSelector is an optional power of a TaskDealer, TBSchedule's form of select: one query over all queues that
// the server owns. New looks for it once; a dealer that has it is never asked to Select.
//
// A batch may then hold items of several queues, and one of them that is lost spoils the batch. All queues wait
// for each other: the set is selected again when nothing of it is in hand, and a failure makes the whole set pause.
type SetSelector[T any] interface {
	// SelectSet returns the next items of the owned queues, as Select does for one. s.Queue is empty. There is
	// never more than one SelectSet at a time, and owned belongs to it.
	SelectSet(ctx context.Context, s Selection, owned []Queue) ([]T, error)

	// QueueOf returns the ID of the queue that item belongs to. It is called once for every selected item, by the
	// executor that selected it. An item of a queue that was not among the owned is skipped, and the select counts
	// as failed with an error that names the queue.
	QueueOf(item T) string
}

// Selection says what a select should return.
type Selection struct {
	TaskType  string // the kind of work
	OwnSign   string // the environment
	Parameter string // the task type's parameter, as its settings have it
	Queue     Queue  // the queue to select; empty in SelectSet
	Total     int    // number of queues of the task type: mod(id, Total) = Queue.Index
	Limit     int    // how many items are wanted, fetch_number
}

// Queue is one partition of the data under one grant. It does not change while it is held.
type Queue struct {
	ID        string // the number of the queue, or its name
	Index     int    // its place, 0..Total-1
	Parameter string // the queue's own parameter
	Cursor    string // how far an append-only source had been read when the queue was granted
	Epoch     int64  // rises with every change of owner; the fence compares it
}
