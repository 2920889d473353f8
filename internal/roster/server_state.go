package roster

import (
	"context"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a server. Only a SERVING or STANDBY server is eligible: see MayOwn.
const (
	StateServing  = "SERVING"  // owns queues
	StateStandby  = "STANDBY"  // owns none: more servers than queues, or than max_servers or max_in_flight allow; first in line
	StatePaused   = "PAUSED"   // an operator paused it
	StateDraining = "DRAINING" // about to leave
	StateLeaving  = "LEAVING"  // about to leave; a later server of its name gets its queues back (P13)
)

// MayOwn reports whether a server in the state is eligible: whether it may be assigned queues (P1). A paused or
// draining server only keeps the queues that no eligible server takes (P7). A leaving one keeps all that no other server
// has requested (P13).
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
// waits (S1). Its share is not rounded up before those of others any more (P15): it would take back what the others got
// meanwhile. It returns the changes that rebalance skipped.
func setState(ctx context.Context, l *LockTx, n newState, p rebalancing) (skipped []plan.Change, err error) {
	if err := l.membershipChanged(ctx); err != nil {
		return nil, err
	}
	p.newState = n
	skipped, _, err = rebalance(ctx, l, p)
	if err != nil {
		return nil, err
	}
	rows, err := l.Exec(ctx, `UPDATE schedule_server SET state = ?, rounded_up = FALSE WHERE uuid = ?`, n.state, n.uuid)
	if err == nil && rows == 0 {
		err = ErrGone // deleted by hand
	}
	return skipped, err
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
