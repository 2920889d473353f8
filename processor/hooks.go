package processor

import (
	"context"
	"time"
)

// Hooks wrap the calls of the dealer, for tracing spans and metrics. The executors call them concurrently, each
// directly before its call of the dealer. A hook returns the context for that call and a function, which the same
// executor calls once after the call. The context may only add values. The function may be nil. A hook that is nil
// costs nothing.
type Hooks struct {
	// Select wraps Select. items is the number of items that the dealer returned, including items that
	// are dropped later.
	Select func(context.Context, Selection) (context.Context, func(items int, err error))

	// Execute wraps Execute. Its function is called after the failed items are recorded and the cursor is saved.
	Execute func(context.Context, Batch) (context.Context, func(Result))
}

// Batch describes the batch that one Execute gets.
type Batch struct {
	TaskType, OwnSign string
	Queue             Queue
	Items             int
	TraceParents      []string // of the items that have one, in their order, if the dealer is Traced
}

// Result is the result of one Execute.
type Result struct {
	Err     error // the error or panic of Execute; nil if Outcome is OutcomeDone
	Outcome Outcome
	Failed  int           // failed items of the batch; all of them if the error does not name them
	Dead    int           // items that died
	Took    time.Duration // of Execute alone
}

// Outcome classifies the end of a call of the dealer.
type Outcome string

// The verdicts of calls that were started.
const (
	OutcomeDone      Outcome = "done"
	OutcomeFailed    Outcome = "failed"     // an error or a panic
	OutcomeLost      Outcome = "queue lost" // the queue of the call was lost: the items have not failed
	OutcomeCancelled Outcome = "cancelled"  // an error after the processor cancelled the call; the items have not failed
)
