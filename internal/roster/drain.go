package roster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// DrainServer makes a server give up all its queues until PauseServer resumes it: other servers request its queues,
// and it hands over each as soon as nothing of the queue is in flight. While there are no eligible servers, it goes
// on working. It returns ErrGone if there is no such server.
//
// With force, DrainServer takes the queues at once, for other servers or for none, although the server may have them
// in flight (H5). The events are FORCED. The server learns of it with its next heartbeat and cancels what it has in
// flight. Until then its fenced writes are rejected; e-mails and HTTP calls cannot be undone. DrainServer returns the
// queues that it could not take because a transaction of the server holds their rows: an operator must end that
// session in the database, or the process.
func (o Operator) DrainServer(ctx context.Context, uuid string, force bool) (held []string, err error) {
	err = o.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, now string) error {
		held = nil
		if now != StateDraining {
			if err := l.Record(ctx, Event{Kind: EventDraining, to: uuid, Actor: o.actor}); err != nil {
				return err
			}
		}
		if !force {
			_, err := setState(ctx, l, newState{uuid, StateDraining}, rebalancing{actor: o.actor})
			return err
		}
		skipped, err := forceDrain(ctx, l, uuid, o.actor)
		for _, c := range skipped {
			if c.OldOwner == uuid {
				held = append(held, c.QueueID)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("drain %s: %w", uuid, err)
	}
	return held, nil
}

// The pauses between two attempts of ForceDrainServer.
const (
	firstForcePause = 50 * time.Millisecond
	lastForcePause  = time.Second
)

// ForceDrainServer calls DrainServer with force until it has taken all queues, for at most the given time. A server that
// leaves or expires meanwhile has no queues any more.
func (o Operator) ForceDrainServer(ctx context.Context, uuid string, wait time.Duration) (held []string, err error) {
	held, err = o.DrainServer(ctx, uuid, true)
	over := time.NewTimer(wait)
	defer over.Stop()
	for pause := firstForcePause; err == nil && len(held) > 0; pause = min(2*pause, lastForcePause) {
		select {
		case <-ctx.Done():
			return held, fmt.Errorf("drain %s: wait for the transactions on its queues: %w", uuid, context.Cause(ctx))
		case <-over.C:
			return held, nil
		case <-time.After(pause):
		}
		if held, err = o.DrainServer(ctx, uuid, true); errors.Is(err, ErrGone) {
			return nil, nil
		}
	}
	return held, err
}

// forceDrain sets the server to DRAINING and rebalances without it, as if it were dead (H5). It returns the changes that were skipped.
func forceDrain(ctx context.Context, l *LockTx, uuid, actor string) (skipped []plan.Change, err error) {
	queues, err := sqldb.Records[string](ctx, l, `SELECT queue_id FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND cur_server = ? ORDER BY queue_id`, l.TaskType, l.OwnSign, uuid)
	if err != nil {
		return nil, err
	}
	return setState(ctx, l, newState{uuid, StateDraining}, rebalancing{actor: actor, leaving: uuid, forced: queues, reason: "by an operator"})
}
