package roster

import (
	"context"
	"fmt"
	"time"
)

// auditInterval is how often one server of a roster checks that the rows are as planned.
const auditInterval = 30 * time.Second

// Audit plans from unlocked reads, once per audit interval and roster (S4). If the rows differ from the plan, for
// example because a row was edited by hand, it rebalances. It reports whether it was this server's turn.
func (p Planner) Audit(ctx context.Context) (turn bool, err error) {
	n, err := p.roster.DB.Exec(ctx, `UPDATE schedule_task_running SET audited_at = {now}
		WHERE task_type = ? AND own_sign = ? AND (audited_at IS NULL OR audited_at > {now} OR audited_at < {ago `+fmt.Sprint(auditInterval.Milliseconds())+`})`+p.roster.DB.Limits, p.taskType, p.roster.OwnSign)
	if err != nil || n == 0 {
		return false, err
	}
	reader := Reader{DB: p.roster.DB.Store, Dialect: p.roster.DB.Dialect, TaskType: p.taskType, OwnSign: p.roster.OwnSign}
	servers, err := reader.Servers(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	removing, err := reader.Removing(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", p.taskType, p.roster.OwnSign, err)
	}
	changes, err := reader.plan(ctx, servers, removing)
	if err != nil || len(changes) == 0 {
		return true, err
	}
	_, err = p.Rebalance(ctx, RebalanceOptions{Always: true})
	return true, err
}
