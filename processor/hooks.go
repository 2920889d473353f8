package processor

import (
	"context"
	"time"
)

// Hooks wrap the calls of the dealer, for spans and metrics. Each is called by an executor right before the call,
// several at once, and returns the context that the call gets, which may only add values, and a function that the
// same executor calls once when the call has ended; nil is fine. A hook that is nil costs nothing.
type Hooks struct {
	// Select wraps Select and SelectSet. items is what the dealer returned, whatever becomes of them.
	Select func(context.Context, Selection) (context.Context, func(items int, err error))

	// Execute wraps Execute. Its end comes after the failed items are recorded and the cursor is saved.
	Execute func(context.Context, Batch) (context.Context, func(Result))
}

// Batch says what one Execute is given.
type Batch struct {
	TaskType, OwnSign string
	Queues            []Queue // one, but for a SetSelector
	Items             int
}

// Result says what one Execute came to.
type Result struct {
	Err     error // as Execute returned it, or its panic; nil if Verdict is VerdictDone
	Verdict Verdict
	Failed  int           // items of the batch that failed; all of them if the error does not say which
	Dead    int           // items that are dead now
	Took    time.Duration // of Execute alone
}

// Verdict is what a call of the dealer came to.
type Verdict string

// The verdicts of calls that were started.
const (
	VerdictDone      Verdict = "done"
	VerdictFailed    Verdict = "failed"     // an error or a panic
	VerdictLost      Verdict = "queue lost" // an error that Env.Lost knows
	VerdictCancelled Verdict = "cancelled"  // an error after our own cancellation, which tells nothing about the items
)

// wrapSelect calls the hook of a select and returns the context and the function for its end.
func (p *Processor) wrapSelect(ctx context.Context, s Selection) (context.Context, func(items int, err error)) {
	if p.env.Hooks.Select == nil {
		return ctx, nil
	}
	return p.env.Hooks.Select(ctx, s)
}

// wrapExecute calls the hook of a batch; its end is called by conclude.
func (p *Processor) wrapExecute(ctx context.Context, c *call) context.Context {
	if p.env.Hooks.Execute == nil {
		return ctx
	}
	ctx, c.ended = p.env.Hooks.Execute(ctx, Batch{
		TaskType: p.env.TaskType, OwnSign: p.env.OwnSign, Queues: queuesOf(c.queues), Items: c.to - c.from,
	})
	return ctx
}
