package processor

import (
	"context"
	"io"

	"github.com/sirupsen/logrus"
)

// Env is what the processor needs to know of the world that it works in. The functions are called from the
// executors, several at once and without any lock of the processor, so they may call it back; they must be quick
// and must not panic.
type Env struct {
	TaskType, OwnSign string

	// Trusted is asked before every select and every batch whether this server may still believe that it owns its
	// queues. When it says no, nothing starts and all unstarted items are dropped, until Wake is called. Nil is
	// always yes, for work without a roster.
	Trusted func() bool

	// Bind derives the context of Execute from ctx, so that it carries queues, those of the batch under the epochs
	// that were held when it was selected. It may only add values. Nil adds nothing.
	Bind func(ctx context.Context, queues []Queue) context.Context

	// Lost reports that an error of the dealer means that a queue of the call was lost. Then the items have not
	// failed, and all queues of the call stop until Resume or Revoke says what is true. Nil is never.
	Lost func(err error) bool

	// Log receives failures at Error, once for a page, and what repeats them at Debug. Nil discards them.
	Log logrus.FieldLogger
}

func (e Env) withDefaults() Env {
	if e.Trusted == nil {
		e.Trusted = func() bool { return true }
	}
	if e.Bind == nil {
		e.Bind = func(ctx context.Context, _ []Queue) context.Context { return ctx }
	}
	if e.Lost == nil {
		e.Lost = func(error) bool { return false }
	}
	if e.Log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		e.Log = silent
	}
	e.Log = e.Log.WithFields(logrus.Fields{"task_type": e.TaskType, "own_sign": e.OwnSign})
	return e
}
