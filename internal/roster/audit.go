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
func (r *Roster) Audit(ctx context.Context, taskType, actor string) (turn bool, err error) {
	n, err := r.DB.Exec(ctx, `UPDATE schedule_task_running SET audited_at = {now}
		WHERE task_type = ? AND own_sign = ? AND (audited_at IS NULL OR audited_at > {now} OR audited_at < {ago `+fmt.Sprint(auditInterval.Milliseconds())+`})`+r.DB.Limits, taskType, r.OwnSign)
	if err != nil || n == 0 {
		return false, err
	}
	reader := Reader{DB: r.DB.Store, Dialect: r.DB.Dialect, TaskType: taskType, OwnSign: r.OwnSign}
	servers, err := reader.Servers(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", taskType, r.OwnSign, err)
	}
	removing, err := reader.Removing(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", taskType, r.OwnSign, err)
	}
	changes, err := reader.plan(ctx, servers, removing)
	if err != nil || len(changes) == 0 {
		return true, err
	}
	_, err = r.Rebalance(ctx, taskType, RebalanceOptions{Actor: actor, Always: true})
	return true, err
}
