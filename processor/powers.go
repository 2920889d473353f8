package processor

import (
	"context"
	"errors"
)

// Keyed is an optional power of a TaskDealer: it tells its items apart. Then a failing item backs off by itself and
// is dead after item_max_attempts, while its queue goes on, and Settings.NotSleep is allowed. In a sweep it is passed: not
// executed again under this grant, and counted.
type Keyed[T any] interface {
	// Key returns what identifies item: the same whenever it is selected, and unique among all items of the task
	// type; a new item under the key of a dead one counts as dead. One select should not return a key twice.
	//
	// Key is called only when something is to be told apart: if items have failed, or are executed during a select, and
	// always in a sweep, which must notice that it gets the same items again.
	// It is called by several executors at once, also while item is executed, so it may not read what Execute writes.
	Key(item T) string
}

// Cursored is an optional power of a TaskDealer: its queues are append-only sources, such as a log, which are read
// in order. Select returns the items after s.Queue.Cursor, in their order.
//
// One batch of a queue is executed at a time, and the cursor moves behind its last item after Execute has returned
// nil. An error of Execute says that the cursor was not to move: after it, the cursor is read again, since what
// Execute has committed stays committed, the batch's items are executed one by one, and Failures are not looked into.
// The item that fails is tried again while its queue waits; when it is dead, it is recorded under its key, or its
// cursor if the dealer is not Keyed, and passed.
//
// In a sweep the item that fails ends the sweep, and the next attempt of the queue begins with it. The cursor is that of
// the queue in the run: it begins at Queue.Cursor, and Holding.Sweep tells where it is. A batch whose error comes after its commit, because the reply
// was lost, say, is done, as the cursor shows.
type Cursored[T any] interface {
	// Cursor returns the position after item. It is called by the executor that executes item, and in a sweep by the
	// one that selects it.
	Cursor(item T) string
}

// Discarder is an optional power of a TaskDealer, which must be Keyed: it is told of the items that are given up.
// There are none in a sweep.
type Discarder[T any] interface {
	// Discard puts an item aside that has failed for the last time, with cause; most simply it changes what Select
	// filters on. It is called by the executor of the last attempt, in the context of its batch, once if it returns
	// nil: the item is dead then. After an error it is called again later, in place of Execute, until it succeeds.
	// A process that ends between Discard and its record has it called again elsewhere.
	Discard(ctx context.Context, item T, cause error) error
}

// SetSelector is an optional power of a TaskDealer, TBSchedule's form of select: one query over all queues that
// the server owns. New looks for it once; a dealer that has it is never asked to Select.
//
// A batch may then hold items of several queues, and one of them that is lost spoils the batch. All queues wait
// for each other: what pauses, rests or is executed is the set.
type SetSelector[T any] interface {
	// SelectSet returns the next items of the owned queues, as Select does for one. s.Queue is empty. There is
	// never more than one SelectSet at a time, and owned belongs to it.
	SelectSet(ctx context.Context, s Selection, owned []Queue) ([]T, error)

	// QueueOf returns the ID of the queue that item belongs to. It is called once for every selected item, by the
	// executor that selected it. An item of a queue that was not among the owned is skipped, and the select counts
	// as failed with an error that names the queue.
	QueueOf(item T) string
}

// powers are the optional ones that a dealer has.
type powers struct{ keyed, cursored, discards, set bool }

// tracks reports whether failures are those of items rather than of their queue.
func (w powers) tracks() bool { return w.keyed || w.cursored }

// check refuses what does not go together.
func (w powers) check(s *Settings) error {
	switch {
	case w.discards && !w.keyed:
		return errors.New("a dealer that is a Discarder must be Keyed")
	case w.cursored && w.set:
		return errors.New("a dealer that is Cursored must not be a SetSelector: each queue has a cursor of its own")
	case s.Runs && w.set:
		return errors.New("mode (RUN) needs a select per queue, and the dealer is a SetSelector")
	case s.NotSleep && w.cursored:
		return errors.New("processor_type (NOTSLEEP) must be SLEEP for a dealer that is Cursored, whose batches run one after another")
	case s.NotSleep && !w.keyed:
		return errors.New("processor_type (NOTSLEEP) needs a dealer that is Keyed, to tell what is in hand")
	}
	return nil
}
