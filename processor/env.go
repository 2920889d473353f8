package processor

import (
	"context"
	"log/slog"
	"time"
)

// Env connects the processor to its surroundings. The executors call its functions and interfaces concurrently and
// without holding a lock, so these may call the processor back. They must not panic. All except the database calls must
// return quickly.
type Env struct {
	TaskType, OwnSign string

	// Trusted reports whether this server may still believe that it owns its queues (S5). The executors call it before
	// every select and every batch. After false, nothing starts and all unstarted items are dropped, until Wake is
	// called. Nil always means true, for work without a roster.
	Trusted func() bool

	// Bind derives the context of Execute from ctx, so that it carries queues: the queues of the batch under their
	// epochs at the time of the select. cursor is not nil only for a batch of a Cursored dealer. It is then the
	// position after the last item. The fence saves it (F4), in the row of queues[0].Run if that is not nil. Bind may
	// only add values. Nil adds nothing.
	Bind func(ctx context.Context, queues []Queue, cursor *string) context.Context

	// Lost reports whether an error of the dealer, of Items or of Cursors means that a queue of the call was lost. The
	// items then have not failed, and all queues of the call stop until Resume or Revoke decides. Nil always means
	// false.
	Lost func(err error) bool

	// DataError reports whether an error of the dealer means that the database has refused the data: a value that is too
	// long, a constraint that is violated. Such a failure is the item's and no outage. Nil always means false.
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

	// Hooks are called around selects and batches.
	Hooks Hooks

	// Logger receives failures: the first of a kind at once, and then one line per minute with a count and an example. A
	// failure after which the processor tries again is a warning. The death of an item and a panic are errors. The context
	// of a line is that of its call, as Hooks return it. Nil discards them.
	Logger *slog.Logger
}

// Alert is a lasting condition that needs an operator.
type Alert struct {
	Kind  string // one of the constants below
	Queue string // its ID; empty for all queues of a SetSelector
	Text  string // for humans

	Subject string    // what else it is about, such as "item 7"; empty if Queue says it
	Since   time.Time // when the condition began; zero if that is not known
}

// AlertNoEffect is the Kind of an Alert that says that Execute succeeds, and that the selects of the queue return the
// same items again and again. The queue pauses between them, for up to a minute. The alert is sent once, and again only
// after a select had returned others.
const AlertNoEffect = "NO_EFFECT"

// AlertLimit is the Kind of an Alert that says that a select seems to ignore Selection.Limit. It is sent once per queue
// and process.
const AlertLimit = "LIMIT"

// AlertPage is the Kind of an Alert that says that a select returned an item twice, or items of queues that were not
// selected. It is sent once for each of the two per queue and process.
const AlertPage = "BAD_PAGE"

// AlertParked is the Kind of an Alert that says that too many items of a queue have failed, back off or are dead. A
// select is bounded by ten times fetch_number and may return only such items (X2), unless the dealer is Paged. The
// alert is sent again with a select after a minute, for as long as that lasts.
const AlertParked = "PARKED"

// blames reports whether each failure in err says that its item is at fault, so that none of them is an outage.
func (e Env) blames(err error) bool {
	return allFailures(err, func(err error) bool { return isPermanent(err) || e.DataError(err) })
}

func (e Env) withDefaults() Env {
	if e.Trusted == nil {
		e.Trusted = func() bool { return true }
	}
	if e.Bind == nil {
		e.Bind = func(ctx context.Context, _ []Queue, _ *string) context.Context { return ctx }
	}
	if e.Lost == nil {
		e.Lost = func(error) bool { return false }
	}
	if e.DataError == nil {
		e.DataError = func(error) bool { return false }
	}
	if e.Alone == nil {
		e.Alone = make(chan struct{}, 1)
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
