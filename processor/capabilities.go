package processor

import (
	"context"
	"errors"
)

// Keyed is an optional capability of a TaskDealer: it identifies items. A failing item then backs off alone and is dead
// after item_max_attempts, while its queue goes on. Settings.NotSleep needs it. A sweep passes a failing item: it
// counts the item and does not execute it again under this grant.
type Keyed[T any] interface {
	// Key returns the identity of item. Every select must return the same key for the same item. The key must be
	// unique among all items of the task type: a new item under the key of a dead item counts as dead. One select
	// should not return a key twice: the alert BAD_PAGE tells it.
	//
	// The processor calls Key only when it must distinguish items: after failures, when items are executed during a
	// select, for the first item of a page, for all items of one page of a queue per minute, and for all in a sweep,
	// which must detect repeated items. Several executors call it concurrently, also while the item is executed, so Key
	// must not read what Execute writes.
	Key(item T) string
}

// Cursored is an optional capability of a TaskDealer: its queues are append-only sources, such as a log, that are read
// in order. Select returns the items after s.Queue.Cursor, in their order.
//
// What the cursor has passed is not selected again. So no item may appear behind it later. Two items must not have the
// same cursor, because the cursor of one passes the other. A number that a transaction draws before its commit does not
// suffice: a transaction that commits late adds an item behind the cursor, which is lost. Three ways are safe. On
// PostgreSQL, a column of type xid8 with the default pg_current_xact_id(), the cursor (xid, id), and the condition
// xid < pg_snapshot_xmin(pg_current_snapshot()). Elsewhere, a select that leaves out items for longer than any
// transaction lasts. Or a source that commits in the order of the cursor, such as a single writer.
//
// One batch of a queue runs at a time. After Execute has returned nil, the cursor moves to the last item of the batch.
// If Execute returns an error, the cursor must not have moved. The processor then loads the cursor again, because what
// Execute has committed stays committed. It executes the items of the batch in smaller batches, and ignores Failures.
// The queue waits while the failing item is retried. When the item is dead, the processor records it under its key, or
// under its cursor if the dealer is not Keyed, and passes it.
//
// In a sweep, the failing item ends the sweep, and the next attempt of the queue begins with that item. The cursor of a
// sweep belongs to the queue in the run: it begins at Queue.Cursor, and QueueState.Sweep shows its position. A batch
// that returns an error after its commit, for example because the reply was lost, counts as done if the cursor proves
// it.
type Cursored[T any] interface {
	// Cursor returns the position after item. The executor that executes item calls it. In a sweep, the executor that
	// selects item calls it too.
	Cursor(item T) string
}

// Paged is an optional capability of a TaskDealer that is Keyed: its selects can go on behind an item. Without it, a
// select returns at most ten times fetch_number items, and if all of them have failed, the items behind them are not
// found (X2).
type Paged[T any] interface {
	// Position returns the place of item in the order of the select. It is not empty. If s.After is not empty, Select
	// returns only items behind that position, in the same order: WHERE id > s.After ORDER BY id. The select needs an
	// index in this order. The executor that selected item calls it, for the last item of a page.
	Position(item T) string
}

// Discarder is an optional capability of a TaskDealer that is Keyed: it removes items that are given up. A sweep gives
// up no items.
type Discarder[T any] interface {
	// Discard removes an item that failed for the last time, with its cause. Most simply it changes a column that Select
	// filters on. The executor of the last attempt calls it. The context is that of the batch, whose fence does not save
	// the cursor of a Cursored dealer here: the cursor passes the item when its death is recorded (X3). After nil the item
	// is dead. After an error the processor calls Discard again later, instead of Execute, until it succeeds. If the
	// process ends between Discard and the record of the death, another process calls Discard again.
	Discard(ctx context.Context, item T, cause error) error
}

// SetSelector is an optional capability of a TaskDealer. It is TBSchedule's form of select: one query over all queues
// that the server owns. New looks for it once. The processor never calls Select of a dealer that has it.
//
// A batch may then hold items of several queues. If one of them is lost, the whole batch is cancelled. All queues
// pause, rest and execute together.
type SetSelector[T any] interface {
	// SelectSet returns the next items of the owned queues, as Select does for one queue. s.Queue is empty. At most
	// one SelectSet runs at a time. It may modify owned.
	SelectSet(ctx context.Context, s Selection, owned []Queue) ([]T, error)

	// QueueOf returns the ID of the queue that item belongs to. The executor that selected item calls it once per
	// item. If the queue was not among the owned ones, the processor skips the item, and the select fails with an
	// error that names the queue. The alert BAD_PAGE tells it.
	QueueOf(item T) string
}

// capabilities are the optional interfaces that a dealer implements.
type capabilities struct {
	keyed, cursored, discarder, setSelector, paged bool

	job bool // the dealer was made by Each
}

// tracksItems reports whether failures are counted per item rather than per queue.
func (a capabilities) tracksItems() bool { return a.keyed || a.cursored }

// check returns an error if the capabilities contradict each other or the settings.
func (a capabilities) check(s *Settings) error {
	switch {
	case a.discarder && !a.keyed:
		return errors.New("a dealer that is a Discarder must be Keyed")
	case a.paged && (!a.keyed || a.cursored):
		return errors.New("a dealer that is Paged must be Keyed and not Cursored")
	case a.cursored && a.setSelector:
		return errors.New("a dealer that is Cursored must not be a SetSelector: each queue has its own cursor")
	case s.Runs && a.setSelector:
		return errors.New("mode (RUN) needs a select per queue, and the dealer is a SetSelector")
	case s.NotSleep && a.cursored:
		return errors.New("processor_type (NOTSLEEP) must be SLEEP for a dealer that is Cursored, because its batches run one after another")
	case s.NotSleep && !a.keyed:
		return errors.New("processor_type (NOTSLEEP) needs a dealer that is Keyed, to recognize the items in flight")
	}
	return nil
}
