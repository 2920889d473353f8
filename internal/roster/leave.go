package roster

import (
	"context"
	"fmt"
)

// Drain sets a server that is about to leave to DRAINING and rebalances: other servers request its queues.
func (s Server) Drain(ctx context.Context) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		there, err := s.registered(ctx, l)
		if err == nil && !there {
			err = ErrGone
		}
		if err != nil {
			return err
		}
		_, err = setState(ctx, l, newState{s.uuid, StateDraining}, rebalancing{actor: s.uuid})
		return err
	})
	if err != nil {
		return fmt.Errorf("drain %s of %w", s.uuid, err)
	}
	return nil
}

// registered reports whether the server has a row. Only transactions under the lock row delete one.
func (s Server) registered(ctx context.Context, l *LockTx) (there bool, err error) {
	var n int
	err = l.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_server WHERE uuid = ?`, s.uuid).Scan(&n)
	return n > 0, err
}

// Leave hands all queues of the server to other servers, or to none, withdraws the requests for it and deletes its
// row, in one transaction (H4). It does not wait for a requester. The caller must have nothing in flight, except of
// the queues in forced. A server whose row is gone already has left. After ErrUnknownCommit the caller may call Leave
// again.
//
// With a reservation it keeps the queues for a later server of the name.
func (s Server) Leave(ctx context.Context, forced []string, r Reservation) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		if there, err := s.registered(ctx, l); err != nil || !there {
			return err
		}
		if err := l.Record(ctx, Event{Kind: EventLeft, from: s.uuid, Actor: s.uuid}); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		if err := r.keep(ctx, l, s.uuid, forced); err != nil {
			return err
		}
		_, _, err := rebalance(ctx, l, rebalancing{actor: s.uuid, leaving: s.uuid, forced: forced, reason: "drain_timeout"})
		if err != nil {
			return err
		}
		// Last: from here on the heartbeats of the process wait (S1).
		_, err = MoveToHistory(ctx, l, reasonLeft, []ServerRow{{UUID: s.uuid}})
		return err
	})
	if err != nil {
		return fmt.Errorf("leave %w", err)
	}
	return nil
}
