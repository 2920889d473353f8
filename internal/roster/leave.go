package roster

import (
	"context"
	"fmt"
)

// Drain sets a server that is about to leave to DRAINING and rebalances: other servers request its queues.
func (s Server) Drain(ctx context.Context) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		var n int
		err := l.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_server WHERE uuid = ?`, s.uuid).Scan(&n)
		if err == nil && n == 0 {
			err = ErrGone
		}
		if err != nil {
			return err
		}
		return setState(ctx, l, s.uuid, StateDraining, s.uuid)
	})
	if err != nil {
		return fmt.Errorf("drain %s of %w", s.uuid, err)
	}
	return nil
}

// Leave hands all queues of the server to other servers, or to none, withdraws the requests for it and deletes its
// row, in one transaction (H4). It does not wait for a requester. The caller must have nothing in flight, except of
// the queues in forced. A server whose row is gone already has left. After ErrUnknownCommit the caller may call Leave
// again.
func (s Server) Leave(ctx context.Context, forced []string) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		left, err := MoveToHistory(ctx, l, reasonLeft, []ServerRow{{UUID: s.uuid}})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := l.Record(ctx, Event{Kind: EventLeft, from: s.uuid, Actor: s.uuid}); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		_, _, err = rebalance(ctx, l, rebalancing{actor: s.uuid, leaving: s.uuid, forced: forced, reason: "drain_timeout"})
		return err
	})
	if err != nil {
		return fmt.Errorf("leave %w", err)
	}
	return nil
}
