package roster

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Drain announces that a server is about to leave, and rebalances: no plan gives it a queue any more. Without a
// reservation the server is DRAINING, and other servers request its queues. With one it is LEAVING, and keeps them until
// Leave reserves them (P13). A server that an operator has paused or drained reserves nothing.
func (s Server) Drain(ctx context.Context, r Reservation) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		now, err := s.state(ctx, l)
		if err == nil && now == "" {
			err = ErrGone
		}
		if err != nil {
			return err
		}
		next := StateDraining
		if r.Within > 0 && MayOwn(now) {
			next = StateLeaving
		}
		_, err = setState(ctx, l, newState{s.uuid, next}, rebalancing{actor: s.uuid})
		return err
	})
	if err != nil {
		return fmt.Errorf("drain %s of %w", s.uuid, err)
	}
	return nil
}

// state returns the state of the server, or "" if it has no row. Only transactions under the lock row delete one.
func (s Server) state(ctx context.Context, l *LockTx) (state string, err error) {
	err = l.QueryRow(ctx, `SELECT state FROM schedule_server WHERE uuid = ?`, s.uuid).Scan(&state)
	if sqldb.NoRows(err) {
		return "", nil
	}
	return state, err
}

// Leave hands all queues of the server to other servers, or to none, withdraws the requests for it and deletes its
// row, in one transaction (H4). It does not wait for a requester. The caller must have nothing in flight, except of
// the queues in forced. A server whose row is gone already has left. After ErrUnknownCommit the caller may call Leave
// again.
//
// With a reservation it keeps the queues for a later server of the name, if Drain has announced that: otherwise plans may
// have given it queues meanwhile that it never worked.
func (s Server) Leave(ctx context.Context, forced []string, r Reservation) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		state, err := s.state(ctx, l)
		if err != nil || state == "" {
			return err
		}
		if err := l.Record(ctx, Event{Kind: EventLeft, from: s.uuid, Actor: s.uuid}); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		if state == StateLeaving {
			if err := r.keep(ctx, l, s.uuid, forced); err != nil {
				return err
			}
		}
		_, _, err = rebalance(ctx, l, rebalancing{actor: s.uuid, leaving: s.uuid, forced: forced, reason: "drain_timeout"})
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
