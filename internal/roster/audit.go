package roster

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// AuditInterval is how often one server of a roster checks that the rows are as planned.
const AuditInterval = 30 * time.Second

// Audit plans from unlocked reads, once per audit interval and roster (S4). If the rows differ from the plan, for
// example because a row was edited by hand, it rebalances. It calls OnInvalid for each invalid value (S13). It reports
// whether it was this server's turn.
func (p Planner) Audit(ctx context.Context) (turn bool, err error) {
	n, err := p.roster.DB.Exec(ctx, `UPDATE schedule_task_running SET audited_at = {now}
		WHERE task_type = ? AND own_sign = ? AND (audited_at IS NULL OR audited_at > {now} OR audited_at < {ago `+fmt.Sprint(AuditInterval.Milliseconds())+`})`+p.roster.DB.Limits, p.taskType, p.roster.OwnSign)
	if err != nil || n == 0 {
		return false, err
	}
	if err := p.reportInvalid(ctx); err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	if err := p.correctTimes(ctx); err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	reader := p.roster.Reader(p.taskType)
	servers, err := reader.Servers(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	if own := slices.IndexFunc(servers, func(s ServerRow) bool { return s.UUID == p.actor }); own >= 0 && servers[own].PlannerVersion != p.roster.PlannerVersion {
		_, err = p.Rebalance(ctx, RebalanceOptions{Always: true})
		return true, err
	}
	in, err := reader.PlanInput(ctx, servers)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	if changes := in.Plan().Changes; len(changes) == 0 && len(in.shares(servers, changes)) == 0 {
		return true, nil
	}
	_, err = p.Rebalance(ctx, RebalanceOptions{Always: true})
	return true, err
}

// reportInvalid reports invalid values. It withdraws a request for an invalid number of queues, which would keep the
// task type from working.
func (p Planner) reportInvalid(ctx context.Context) error {
	list, err := p.InvalidValues(ctx)
	if err != nil {
		return err
	}
	for _, v := range list {
		p.roster.OnInvalid(ctx, p.taskType, v)
	}
	if !slices.ContainsFunc(list, func(v InvalidValue) bool { return v.Column == "requested_total" }) {
		return nil
	}
	return p.roster.UnderLock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
		_, err := numberedQueues(ctx, l)
		if err == nil { // an operator has corrected it meanwhile
			return nil
		}
		return withdrawRepartition(ctx, l, p.actor, err)
	})
}

// correctTimes brings times back that are further in the future than any that a server writes: they were edited by hand, or
// the clock was set back since. InvalidValues has reported them.
func (p Planner) correctTimes(ctx context.Context) error {
	for _, statement := range []string{
		fmt.Sprintf(`UPDATE schedule_task_running SET load_moves_until = {ago -%d} WHERE task_type = ? AND own_sign = ? AND NOT (`, budgetTime.Milliseconds()) + soonMoves + `)`,
		`UPDATE schedule_queue SET reserved_for = NULL, reserved_until = NULL WHERE task_type = ? AND own_sign = ? AND NOT (` + soonReserved + `)`,
		`UPDATE schedule_task_running SET reserved_until = {now} WHERE task_type = ? AND own_sign = ? AND NOT (` + soonReserved + `)`, // a plan is due
	} {
		if _, err := p.roster.DB.Exec(ctx, statement+p.roster.DB.Limits, p.taskType, p.roster.OwnSign); err != nil {
			return fmt.Errorf("correct times in the future: %w", err)
		}
	}
	return nil
}

// The latest times that a server writes, as conditions on the lock row or on a row of schedule_queue.
var (
	soonMoves    = fmt.Sprintf(`load_moves_until <= {ago -%d}`, budgetTime.Milliseconds())
	soonReserved = fmt.Sprintf(`reserved_until <= {ago -%d}`, MaxReturn.Milliseconds())
)
