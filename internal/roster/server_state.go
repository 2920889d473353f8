package roster

import (
	"context"

	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a server. Only a SERVING or STANDBY server is eligible: see MayOwn.
const (
	StateServing  = "SERVING"  // owns queues
	StateStandby  = "STANDBY"  // owns none: there are more servers than queues; first in line
	StatePaused   = "PAUSED"   // an operator paused it
	StateDraining = "DRAINING" // about to leave
)

// MayOwn reports whether a server in the state is eligible: whether it may be assigned queues (P1). A paused or
// draining server only keeps the queues that no eligible server takes (P7).
func MayOwn(state string) bool { return state == StateServing || state == StateStandby }

// ownerStates is MayOwn as a condition on a row of schedule_server.
const ownerStates = `state IN ('` + StateServing + `', '` + StateStandby + `')`

// setState changes the state of a server and rebalances, so that no server has to wait for the next heartbeat.
func setState(ctx context.Context, l *LockTx, uuid, state, actor string) error {
	if err := writeState(ctx, l, uuid, state); err != nil {
		return err
	}
	_, _, err := rebalance(ctx, l, rebalancing{actor: actor})
	return err
}

// writeState changes the state of a server.
func writeState(ctx context.Context, l *LockTx, uuid, state string) error {
	if _, err := l.Exec(ctx, `UPDATE schedule_server SET state = ? WHERE uuid = ?`, state, uuid); err != nil {
		return err
	}
	return l.membershipChanged(ctx)
}

// underServerLock runs f under the lock row of the server's task type, with the server's state.
func (o Operator) underServerLock(ctx context.Context, uuid string, f func(ctx context.Context, l *LockTx, state string) error) error {
	var taskType string
	err := o.roster.DB.QueryRow(ctx, `SELECT task_type FROM schedule_server WHERE uuid = ? AND own_sign = ?`, uuid, o.roster.OwnSign).Scan(&taskType)
	if sqldb.NoRows(err) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	return o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		var state string
		err := l.QueryRow(ctx, `SELECT state FROM schedule_server WHERE uuid = ?`, uuid).Scan(&state)
		if sqldb.NoRows(err) {
			return ErrGone
		}
		if err != nil {
			return err
		}
		return f(ctx, l, state)
	})
}
