package rotatest

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// TakeOver takes all queues of a task type from the worker that executes a batch, as other workers do with a worker
// that has been silent for too long. ctx is that of Execute. From then on the fence rejects the batch: Fence and InTx
// return center.ErrFenced. The worker notices the loss with its next heartbeat and joins again. Until then, the
// queues belong to the other workers of the test, or to none.
//
// Call it in Execute before the transaction begins. While a fenced transaction is open, its queues cannot be taken
// over: TakeOver would wait for its end for ever. TakeOver may be called concurrently.
func (r *Roster) TakeOver(ctx context.Context) error {
	b, ok := center.BatchFrom(ctx)
	if !ok {
		return fmt.Errorf("take the queues over: %w", center.ErrNoBatch)
	}
	// The worker may notice the loss, and cancel the batch, before Leave returns.
	if err := r.c.Roster().Server(b.TaskType, b.Server).Leave(context.WithoutCancel(ctx), []string{b.Queue.ID},
		roster.Reservation{}); err != nil {
		return fmt.Errorf("take the queues over: %w", err)
	}
	return nil
}
