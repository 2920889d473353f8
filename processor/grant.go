package processor

import (
	"context"
	"time"
)

// grant is one queue under one epoch: the unit of ownership and of draining. The scheduler's lock guards it, except
// failures.
type grant struct {
	queue      Queue
	total      int
	lane       *lane
	inFlight   int // calls that concern the queue
	draining   bool
	drainedAt  time.Time   // when it began to drain
	lost       bool        // draining, because a call met the loss of the queue
	survived   bool        // worked since its last crash, while Queue.Crashes is not 0
	emptySince time.Time   // when the last select began, if it found nothing; else zero
	cursor     cursorState // of a Cursored dealer
	work       Work
	streak     queueStreak

	failures failures

	// The context of the calls that concern this queue alone. The first call creates it. Revoke cancels it.
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (g *grant) contextLocked(parent context.Context) context.Context {
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancelCause(parent)
	}
	return g.ctx
}

func (g *grant) cancelLocked(cause error) {
	if g.ctx != nil {
		g.cancel(cause)
		g.ctx, g.cancel = nil, nil
	}
}

// queuesOf returns the queues of grants.
func queuesOf(grants []*grant) []Queue {
	queues := make([]Queue, len(grants))
	for i, g := range grants {
		queues[i] = g.queue
	}
	return queues
}

// cursorState is what is known about the cursor of a Cursored dealer, besides Queue.Cursor.
type cursorState struct {
	unknown    bool // the cursor must be loaded, because a batch may have moved it
	suspects   int  // how many of the next items are suspects
	batchLimit int  // the largest batch of suspects
}

// moveCursorLocked moves the cursor of the queue to a known position, where some suspects are left.
func (g *grant) moveCursorLocked(cursor string, suspects int) {
	g.queue.Cursor, g.cursor.unknown, g.cursor.suspects = cursor, false, suspects
}
