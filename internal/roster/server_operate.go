package roster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a server. Only a SERVING or STANDBY server is eligible: see MayOwn.
const (
	StateServing  = "SERVING"  // owns queues
	StateStandby  = "STANDBY"  // owns none: there are more servers than queues, or a limit allows no more
	StatePaused   = "PAUSED"   // an operator paused it
	StateDraining = "DRAINING" // about to leave
	StateLeaving  = "LEAVING"  // about to leave; a later server of its name gets its queues back (P13)
)

// MayOwn reports whether a server in the state is eligible: whether it may be assigned queues (P1). A paused or
// draining server only keeps the queues that no eligible server takes (P7). A leaving one keeps all that no other
// server has requested (P13).
func MayOwn(state string) bool { return state == StateServing || state == StateStandby }

// ownerStates is MayOwn as a condition on a row of schedule_server.
const ownerStates = `state IN ('` + StateServing + `', '` + StateStandby + `')`

// keptStates is a condition on a row of schedule_server: its heartbeats do not change the state.
const keptStates = `state IN ('` + StatePaused + `', '` + StateDraining + `', '` + StateLeaving + `')`

// newState is a state that a transaction gives to a server.
type newState struct{ uuid, state string }

// assumeIn replaces the state in the rows that were read.
func (n newState) assumeIn(servers []ServerRow) {
	for i := range servers {
		if servers[i].UUID == n.uuid {
			servers[i].State = n.state
		}
	}
}

// setState rebalances and changes the state of a server, so that no server has to wait for the next heartbeat. The plan
// assumes the new state. The server's row is written last: from then on until the commit, the heartbeat of its process
// waits (S1). It returns the changes that rebalance skipped.
func setState(ctx context.Context, l *LockTx, n newState, p rebalancing) (skipped []plan.Change, err error) {
	if err := l.membershipChanged(ctx); err != nil {
		return nil, err
	}
	p.newState = n
	did, err := rebalance(ctx, l, p)
	if err != nil {
		return nil, err
	}
	return did.skipped, l.setServer(ctx, n.uuid, `state = ?`, n.state)
}

// setServer writes columns of the row of a server. It returns ErrGone if the row was deleted by hand.
func (l *LockTx) setServer(ctx context.Context, uuid, set string, args ...any) error {
	n, err := l.Exec(ctx, `UPDATE schedule_server SET `+set+` WHERE uuid = ?`, append(args, uuid)...)
	if err == nil && n == 0 {
		err = ErrGone
	}
	return err
}

// underServerLock runs f under the lock row of the server's task type, with the server's state.
func (o Operator) underServerLock(ctx context.Context, uuid string,
	f func(ctx context.Context, l *LockTx, state string) error,
) error {
	taskType, err := sqldb.One[string](ctx, o.roster.DB, ErrGone, `SELECT task_type FROM schedule_server
		WHERE uuid = ? AND own_sign = ?`, uuid, o.roster.OwnSign)
	if err != nil {
		return err
	}
	return o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		state, err := stateOf(ctx, l, uuid)
		if err != nil {
			return err
		}
		return f(ctx, l, state)
	})
}

// MaxWeight is the greatest weight of a server.
const MaxWeight = plan.MaxWeight

// CheckWeight returns an error if the weight breaks its rule.
func CheckWeight(weight int) error {
	if weight < 0 || weight > MaxWeight {
		return fmt.Errorf("weight (%d) must be between 0 and %d", weight, MaxWeight)
	}
	return nil
}

// SetWeight gives a server another part of the queues (P2) until it leaves. The servers plan with their next
// heartbeats. The server's row is written last, as in setState. SetWeight returns ErrGone if there is no such server.
func (o Operator) SetWeight(ctx context.Context, uuid string, weight int) error {
	err := CheckWeight(weight)
	if err == nil {
		err = o.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, _ string) error {
			if err := l.membershipChanged(ctx); err != nil {
				return err
			}
			reason := fmt.Sprintf("its weight is %d", weight)
			if err := l.Record(ctx, Event{Kind: EventWeight, to: uuid, Actor: o.actor, Reason: reason}); err != nil {
				return err
			}
			return l.setServer(ctx, uuid, `weight = ?`, weight)
		})
	}
	return sqldb.Wrap(err, "set the weight of %s", uuid)
}

// Pause pauses or resumes a task type. While it is paused, each server drains its queues and keeps them.
func (o Operator) Pause(ctx context.Context, taskType string, paused bool) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		err := l.setLockRow(ctx, `paused = ?`, paused)
		switch {
		case err == nil && paused:
			err = voidReservations(ctx, l)
		case err == nil: // the pause was no stall of the runs (R19)
			_, err = l.Exec(ctx, `UPDATE schedule_run SET waiting_since = {now}
				WHERE `+ofTask+` AND state IN ('READY', 'RUNNING')`, l.TaskType, l.OwnSign)
		}
		if err != nil {
			return err
		}
		reason := "the task type was " + PauseVerb(paused) + "d"
		return l.Record(ctx, Event{Kind: pauseKind(paused), Actor: o.actor, Reason: reason})
	})
	return sqldb.Prefix(err, "%s", PauseVerb(paused))
}

// PauseServer pauses or resumes one server. A paused server drains its queues, and other servers take them over.
// While there are no eligible servers, it keeps its queues and does not work them. Resuming also ends a DrainServer.
// It returns ErrGone if there is no such server.
func (o Operator) PauseServer(ctx context.Context, uuid string, paused bool) error {
	state := StateStandby // its next heartbeat writes SERVING if it owns queues
	if paused {
		state = StatePaused
	}
	err := o.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, now string) error {
		if paused && now == StateDraining {
			return errors.New("it is draining")
		}
		reason := "the worker was " + PauseVerb(paused) + "d"
		if err := l.Record(ctx, Event{Kind: pauseKind(paused), to: uuid, Actor: o.actor, Reason: reason}); err != nil {
			return err
		}
		_, err := setState(ctx, l, newState{uuid, state}, rebalancing{actor: o.actor})
		return err
	})
	return sqldb.Wrap(err, "%s %s", PauseVerb(paused), uuid)
}

// pauseKind returns the kind of the event for a pause or a resume.
func pauseKind(paused bool) string {
	if paused {
		return EventPaused
	}
	return EventResumed
}

// PauseVerb returns what an operator does: "pause" or "resume". With a "d" it is what was done.
func PauseVerb(paused bool) string {
	if paused {
		return "pause"
	}
	return "resume"
}

// DrainServer makes a server give up all its queues until PauseServer resumes it: other servers request its queues,
// and it hands over each as soon as nothing of the queue is in flight. While there are no eligible servers, it goes
// on working, except queues that it gives up for a change (N1). It returns ErrGone if there is no such server.
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
	return held, sqldb.Wrap(err, "drain %s", uuid)
}

// The pauses between two attempts of ForceDrainServer.
const (
	firstForcePause = 50 * time.Millisecond
	lastForcePause  = time.Second
)

// ForceDrainServer calls DrainServer with force until it has taken all queues, for at most the given time. A server
// that leaves or expires meanwhile has no queues any more.
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

// forceDrain sets the server to DRAINING and rebalances without it, as if it were dead (H5). It returns the changes
// that were skipped.
func forceDrain(ctx context.Context, l *LockTx, uuid, actor string) (skipped []plan.Change, err error) {
	queues, err := sqldb.Records[string](ctx, l, `SELECT queue_id FROM schedule_queue
		WHERE `+ofTask+` AND cur_server = ? ORDER BY queue_id`, l.TaskType, l.OwnSign, uuid)
	if err != nil {
		return nil, err
	}
	p := rebalancing{actor: actor, leaving: uuid, forced: queues, reason: "by an operator"}
	return setState(ctx, l, newState{uuid, StateDraining}, p)
}
