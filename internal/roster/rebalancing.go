package roster

import (
	"context"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
)

// rebalancing is one rebalance under the lock row: by Rebalance, or for a server that leaves or is drained by force.
type rebalancing struct {
	RebalanceOptions
	newState newState // the state that the transaction gives to a server after the plan, which assumes it; zero for none
	actor    string   // the uuid of the server, or the name of the operator, that rebalances
	leaving  string   // the uuid of the server that is to own nothing any more; empty for none
	forced   []string // the queues that it may still have in flight: their change of owner is recorded FORCED
	reason   string   // why they are forced
}

// rebalance expires, plans and writes. It returns the changes that it skipped because another transaction holds their
// rows, and how long the servers that it expired had been silent.
func rebalance(ctx context.Context, l *LockTx, p rebalancing) (skipped []plan.Change, silences []time.Duration, err error) {
	due := func() bool {
		return l.versions.planDue || l.versions.planned != l.versions.membership || p.Always || p.RetrySkipped && l.versions.skipped
	}
	if !due() && !p.SharesDue && p.Watched == 0 && len(p.Ended) == 0 {
		return nil, nil, nil
	}
	r := l.Reader()
	servers, err := r.Servers(ctx)
	if err != nil {
		return nil, nil, err
	}
	if servers, silences, err = expire(ctx, l, servers, p); err != nil {
		return nil, nil, err
	}
	if !due() && p.SharesDue {
		return nil, silences, raiseShares(ctx, l, r, servers)
	}
	if !due() {
		return nil, silences, nil
	}
	p.newState.assumeIn(servers)
	staying := p.staying(servers)
	servers = slices.DeleteFunc(servers, func(s ServerRow) bool { return s.UUID == p.leaving })
	in, err := r.PlanInput(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	if err := correctOwnVersion(ctx, l, staying, p.actor); err != nil {
		return nil, nil, err
	}
	may, err := mayPlan(ctx, l, staying, p.actor)
	if err != nil {
		return nil, nil, err
	}
	if !may {
		skipped, err = p.leaveUnplanned(ctx, l, in.Queues)
		return skipped, silences, err
	}
	result := in.Plan()
	written, skipped, err := writePlan(ctx, l, result.Changes)
	if err != nil {
		return nil, nil, err
	}
	if err := writeWaiting(ctx, l, in, result.Waiting, written); err != nil {
		return nil, nil, err
	}
	if err := countLoadMoves(ctx, l, in.loadMoves, written); err != nil {
		return nil, nil, err
	}
	if err := countCrashes(ctx, l, p.crashed(written, servers)); err != nil {
		return nil, nil, err
	}
	if err := l.Record(ctx, p.events(written)...); err != nil {
		return nil, nil, err
	}
	if len(l.removing) > 0 {
		if err := deleteRemovedQueues(ctx, l, p.actor); err != nil {
			return nil, nil, err
		}
	}
	if err := recordPlanned(ctx, l, p.actor, len(written) > 0, l.versions.reserved || in.reserved(), skipped); err != nil {
		return nil, nil, err
	}
	return skipped, silences, writeShares(ctx, l, in.shares(staying, result.Changes))
}

// leaveUnplanned takes the queues from the server that is to own nothing any more, if there is one, and leaves the plan due.
func (p rebalancing) leaveUnplanned(ctx context.Context, l *LockTx, queues []plan.Queue) (skipped []plan.Change, err error) {
	if p.leaving == "" {
		return nil, nil
	}
	written, skipped, err := writePlan(ctx, l, giveUp(queues, p.leaving))
	if err != nil || len(written) == 0 {
		return skipped, err
	}
	if err := l.Record(ctx, p.events(written)...); err != nil {
		return nil, err
	}
	return skipped, l.planChanged(ctx)
}

// staying returns the servers that are still registered after the transaction. A server that an operator drains by
// force is one of them: its calls are in flight until it learns of the drain.
func (p rebalancing) staying(servers []ServerRow) []ServerRow {
	if p.newState.uuid == p.leaving {
		return slices.Clone(servers)
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s ServerRow) bool { return s.UUID == p.leaving })
}

// recordPlanned writes the plan's versions and the changes that it skipped to the lock row. A plan that skipped changes
// is due again after skipRetryInterval, for all servers together (L5). reserved says that queues are or were reserved.
func recordPlanned(ctx context.Context, l *LockTx, actor string, changed, reserved bool, skipped []plan.Change) error {
	v := &l.versions
	v.planned, v.planDue, v.skipped, v.toMove = v.membership, false, len(skipped) > 0, queuesToMove(skipped)
	if changed {
		v.plan++
	}
	list, err := v.skippedColumn()
	if err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET planned_version = ?, plan_version = ?, skipped = ?, last_assign_time = {now}, last_assign_server = ?
		WHERE task_type = ? AND own_sign = ?`, v.planned, v.plan, list, actor, l.TaskType, l.OwnSign)
	if err != nil || !reserved {
		return err
	}
	return noteReservations(ctx, l)
}
