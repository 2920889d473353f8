package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Env connects the processor to its surroundings. The executors call its functions and interfaces concurrently and,
// except Server, without holding a lock, so these may call the processor back. They must not panic. All except the
// database calls must return quickly.
type Env struct {
	TaskType, OwnSign string

	// Server returns Selection.Server. It is called under a lock, so it may only read a value. Nil returns "".
	Server func() string

	// Trusted reports whether this server may still believe that it owns its queues (S5). The executors call it before
	// every select and every batch. After false, nothing starts and all unstarted items are dropped, until Wake is
	// called. Nil always means true, for work without a roster.
	Trusted func() bool

	// Enter is called before each select of a queue. Until it returns nil, the queue is not selected.
	// It is also called when an item has just died: until it returns nil and no change, the item is not discarded. And it
	// is called when a batch of a sweep with a cursor has failed, before the cursor is loaded, which may say otherwise.
	// changed says that earlier transactions of the queue may have ended only now, so that the cursor must be loaded.
	// suspect says that the last select of the queue has failed. An error is no sign of an outage of what the dealer
	// calls. Nil does nothing. Databases is how many data databases the queues have.
	Enter     func(ctx context.Context, q processor.Queue, suspect bool) (changed bool, err error)
	Databases int

	// Bind derives the context of Execute from ctx, so that it carries the queue of the batch under its epoch at the
	// time of the select. cursor is not nil only for a batch of a Cursored dealer. It is then the position after the
	// last item, and q.Cursor is where the batch begins. The fence moves the cursor (F4), in the row of q.Run if that is
	// not nil. Bind may only add values. Nil adds nothing.
	Bind func(ctx context.Context, q processor.Queue, cursor *string) context.Context

	// Lost reports whether an error of the dealer, of Items or of Cursors means that the queue of the call was lost. The
	// items then have not failed, and the queue stops until Resume or Revoke decides. Nil always means false.
	Lost func(err error) bool

	// DataError reports whether an error of the dealer means that the database has refused the data: a value that is too
	// long, a constraint that is violated. Then the item is at fault, and it is no outage. Nil always means false.
	DataError func(err error) bool

	// Items keeps the failed items of Keyed and Cursored dealers beyond this process. Nil keeps them in memory, until
	// the grant of the queue ends. Queues with a Run do not use it.
	Items ItemStore

	// Cursors keeps the cursors of a Cursored dealer. For a queue with a Run it keeps the cursor of the queue in that
	// run. Nil keeps them in memory.
	Cursors CursorStore

	// Alert receives conditions that an operator should look at. Nil discards them.
	Alert func(Alert)

	// Alone is a channel of capacity 1 that the processors of a process share. While an item is executed alone, because
	// the owners of its queue have crashed (S14), its executor holds the only value. Nil serves one processor.
	Alone chan struct{}

	// Redact returns a text of an error of the dealer without its secrets. It is called where the error is returned,
	// before its text is cut, logged or stored. Nil returns the text.
	Redact func(text string) string

	// Hears reports whether hints arrive at present. The caller calls Hint for all queues when this changes. Defaults to
	// false. The processor calls it while it holds its lock: it must not wait.
	Hears func() bool

	// Peeking is a channel that the processors of a process share. Its capacity is how many peeks run at once: with many
	// task types, whose peeks are due at the same time, each would open a connection of its own. Defaults to no bound.
	Peeking chan struct{}

	// Hooks are called around selects and batches: the first of them outside of the others.
	Hooks []processor.Hooks

	// Logger receives failures: the first of a kind at once, and then one line per minute with a count and an example. A
	// failure after which the processor tries again is a warning. The death of an item and a panic are errors. The context
	// of a line is that of its call, as Hooks return it. Nil discards them.
	Logger *slog.Logger
}

// Alert is a lasting condition that needs an operator.
type Alert struct {
	Kind  string // one of the constants below
	Queue string // its ID
	Text  string // for humans

	Subject string // what else it is about, such as "item 7"; empty if Queue says it
}

// AlertNoEffect is the Kind of an Alert that says that Execute succeeds, and that the selects of the queue return the
// same items again and again. The queue pauses between them, for up to a minute. The alert is sent once, and again only
// after a select had returned others.
const AlertNoEffect = "NO_EFFECT"

// AlertLimit is the Kind of an Alert that says that a select seems to ignore Selection.Limit. It is sent again half an
// hour later, for as long as that lasts.
const AlertLimit = "LIMIT"

// AlertPage is the Kind of an Alert that says that a select returned an item twice. It is sent again half an hour
// later, for as long as that lasts.
const AlertPage = "BAD_PAGE"

// AlertKey is the Kind of an Alert that says that items of one order key are in two queues, so that they are in no
// order. It is sent again half an hour later, for as long as that lasts.
const AlertKey = "KEY_DIVIDED"

// AlertUnrecorded is the Kind of an Alert that says that the ItemStore has recorded no failure of an item for half a
// minute: a crash would forget its attempts, and a dead item is not discarded. It is sent again half an hour later, for
// as long as that lasts.
const AlertUnrecorded = "UNRECORDED"

// AlertUndiscarded is the Kind of an Alert that says that Discard fails for dead items, so that selects return them
// again and again. It is sent again half an hour later, for as long as that lasts.
const AlertUndiscarded = "UNDISCARDED"

// AlertParked is the Kind of an Alert that says that too many items of a queue have failed, back off or are dead. A
// select is bounded by ten times fetch_number and may return only such items (X2), unless the dealer is Paged. The
// alert is sent again with a select after a minute, for as long as that lasts.
const AlertParked = "PARKED"

// AlertUnhinted is the Kind of an Alert that says that selects without a hint have found items although
// Settings.Hinted says that there are none. It is sent again half an hour later, for as long as that lasts.
const AlertUnhinted = "UNHINTED"

// blames reports whether each failure in err says that its item is at fault, so that none of them is an outage.
func (e Env) blames(err error) bool {
	return allFailures(err, func(err error) bool { return processor.IsPermanent(err) || e.DataError(err) })
}

func (e Env) withDefaults() Env {
	if e.Trusted == nil {
		e.Trusted = func() bool { return true }
	}
	if e.Enter == nil {
		e.Enter = func(context.Context, processor.Queue, bool) (bool, error) { return false, nil }
	}
	if e.Bind == nil {
		e.Bind = func(ctx context.Context, _ processor.Queue, _ *string) context.Context { return ctx }
	}
	if e.Lost == nil {
		e.Lost = func(error) bool { return false }
	}
	if e.DataError == nil {
		e.DataError = func(error) bool { return false }
	}
	if e.Redact == nil {
		e.Redact = func(text string) string { return text }
	}
	if e.Hears == nil {
		e.Hears = func() bool { return false }
	}
	if e.Alone == nil {
		e.Alone = make(chan struct{}, 1)
	}
	if e.Server == nil {
		e.Server = func() string { return "" }
	}
	if e.Alert == nil {
		e.Alert = func(Alert) {}
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	e.Logger = e.Logger.With(slog.String("task_type", e.TaskType), slog.String("own_sign", e.OwnSign))
	return e
}

// FailedItem is the record of an item that failed and has not succeeded since.
type FailedItem struct {
	Key       string        // Keyed.Key, or Cursored.Cursor if the dealer is not Keyed
	OrderKey  string        // Ordered.OrderKey; empty if the dealer is not Ordered. The store keeps it for people.
	Queue     string        // ID of the queue that had the item when it was saved; the store sets it
	Attempts  int           // number of failures, alone or by name in Failures
	Dead      bool          // given up: not executed again while the record exists
	LastError string        // of the last attempt
	Started   bool          // it is executed alone, and the end of that is not recorded (S14)
	RetryIn   time.Duration // from now until the next attempt; 0 or less is at once
}

// ItemStore keeps failed items. Executors call its methods concurrently, but never two methods for one key at once. The
// methods should bound their time. An error for which Env.Lost is true means that the queue is lost. The processor
// calls nothing for items that succeed at once in a queue without failed items. A queue with a Run keeps no failures
// here: Any and Find tell which items are dead, and Save gets items that have Started, and those of them that have
// ended their process.
//
// A record belongs to the key of its item, not to a queue (X6).
type ItemStore interface {
	// Any reports whether an item of q may have a record: the store has records of the queue, or records from before items
	// last changed queues. If so, Find is asked for the items of each page. Any is called before the first select under a
	// grant, before the first select after Reload, and once a minute while it was true. An error fails the select.
	Any(ctx context.Context, q processor.Queue) (bool, error)

	// Started returns the items of q that are Started. It is called before the first select of a queue whose owners have
	// crashed. An error fails the select.
	Started(ctx context.Context, q processor.Queue) ([]FailedItem, error)

	// Find returns the failed items with these keys. It is called for the items of a page before they are executed. An
	// error fails the select.
	Find(ctx context.Context, q processor.Queue, keys []string) ([]FailedItem, error)

	// Save inserts or replaces items. It is called before their batch counts as finished, in the context of the
	// batch. An error is logged, and the items are kept in memory. No cursor passes a dead item that was not saved.
	Save(ctx context.Context, q processor.Queue, items []FailedItem) error

	// Delete removes items that have succeeded. An error is logged.
	Delete(ctx context.Context, q processor.Queue, keys []string) error
}

// CursorStore keeps cursors. Executors call its methods: concurrently for different queues, never for one queue. The
// methods should bound their time. An error for which Env.Lost is true means that the queue is lost. The cursor of a
// queue with a Run belongs to the queue in that run.
type CursorStore interface {
	// Load returns the cursor of q. It is called before the next select after a batch that did not succeed, because
	// the batch may have committed all the same. An error fails the select. In a sweep it is also called directly
	// after a failed batch. An error then fails the sweep.
	Load(ctx context.Context, q processor.Queue) (string, error)

	// Save moves the cursor of q. It is called after Execute has returned nil, in the context that Bind made with
	// this cursor. If the fence has saved the cursor, Save has nothing to do. It is also called when the cursor passes
	// a dead item, in a context of its own that Bind made. After an error the batch has failed, but none of its
	// items, and the queue pauses.
	Save(ctx context.Context, q processor.Queue, cursor string) error
}
