package processor

import (
	"context"
	"io"

	"github.com/sirupsen/logrus"
)

// Env is what the processor needs to know of the world that it works in. Its functions and interfaces are called
// from the executors, several at once and without any lock of the processor, so they may call it back; they must not
// panic, and those that are not about a database must be quick.
type Env struct {
	TaskType, OwnSign string

	// Trusted is asked before every select and every batch whether this server may still believe that it owns its
	// queues (S5). When it says no, nothing starts and all unstarted items are dropped, until Wake is called. Nil is
	// always yes, for work without a roster.
	Trusted func() bool

	// Bind derives the context of Execute from ctx, so that it carries queues, those of the batch under the epochs
	// that were held when it was selected. cursor is nil but for a batch of a Cursored dealer: then it is the
	// position after the last item, which the fence saves (F4), in the row of queues[0].Run if that is not nil. Bind may only add values. Nil adds nothing.
	Bind func(ctx context.Context, queues []Queue, cursor *string) context.Context

	// Lost reports that an error of the dealer, of Items or of Cursors means that a queue of the call was lost. Then
	// the items have not failed, and all queues of the call stop until Resume or Revoke says what is true. Nil is
	// never.
	Lost func(err error) bool

	// Items keeps the failed items of Keyed and Cursored dealers beyond this process. Nil is memory only, which ends
	// with the grant of the queue. It is not used for queues with a Run.
	Items ItemStore

	// Cursors keeps the cursors of a Cursored dealer, in a sweep those of the queue in its Run. Nil is memory only.
	Cursors CursorStore

	// Alert receives what an operator should look at. Nil discards it.
	Alert func(Alert)

	// Hooks are called around selects and batches.
	Hooks Hooks

	// Log receives failures at Error, once for a page, and what repeats them at Debug; the death of an item at
	// Error. Nil discards them.
	Log logrus.FieldLogger
}

// Alert is something that goes on and needs a human.
type Alert struct {
	Kind  string // one of the constants below
	Queue string // its ID; empty for all of a SetSelector
	Text  string // for humans
}

// AlertParked is the Kind of an Alert that says that so many items of a queue have failed, back off or are dead that a select,
// which is bounded by ten times fetch_number, may not find any others (X2). It is sent once until there are fewer.
const AlertParked = "PARKED"

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
	if e.Alert == nil {
		e.Alert = func(Alert) {}
	}
	if e.Log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		e.Log = silent
	}
	e.Log = e.Log.WithFields(logrus.Fields{"task_type": e.TaskType, "own_sign": e.OwnSign})
	return e
}
