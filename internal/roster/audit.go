package roster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// AuditInterval is how often one server of a roster checks that the rows are as planned.
const AuditInterval = 30 * time.Second

// Audit plans from unlocked reads, once per audit interval and roster (S4). If the rows differ from the plan, for
// example because a row was edited by hand, it rebalances. It calls OnInvalid for each invalid value (S13). It reports
// whether it was this server's turn.
//
// If the database's clock was set back since the last audit, it first corrects the times of the roster (S17).
func (p Planner) Audit(ctx context.Context) (turn bool, err error) {
	// The stamp below ends what shows that the clock was set back.
	if back, err := p.setBack(ctx); err != nil {
		return false, err
	} else if back {
		if err := p.correctTimes(ctx, true); err != nil {
			return false, fmt.Errorf("after the clock was set back: %w", err)
		}
	}
	n, err := p.roster.DB.Exec(ctx, `UPDATE schedule_task_running SET audited_at = {now} WHERE `+ofTask+` AND `+
		auditDue("audited_at")+p.roster.DB.Limits, p.taskType, p.roster.OwnSign)
	if err != nil || n == 0 {
		return false, err
	}
	return true, sqldb.Wrap(p.audit(ctx), "audit %s$%s", p.taskType, p.roster.OwnSign)
}

// auditDue is the condition that the audit interval has passed since the time in a column.
func auditDue(column string) string {
	return fmt.Sprintf(`(%[1]s IS NULL OR %[1]s > {now} OR %[1]s < {ago %[2]d})`, column, AuditInterval.Milliseconds())
}

func (p Planner) audit(ctx context.Context) error {
	for _, e := range extensions() {
		if e.repair == nil {
			continue
		}
		if err := e.repair(ctx, p); err != nil {
			return err
		}
	}
	reader := p.roster.Reader(p.taskType)
	servers, err := reader.Servers(ctx)
	if err != nil {
		return err
	}
	in, err := reader.PlanInput(ctx, servers)
	if err != nil {
		return err
	}
	if err := p.findEdits(ctx, servers, in.Queues); err != nil {
		return err
	}
	made := planning{staying: servers, in: in, result: in.Plan()}
	if len(made.result.Changes) == 0 && !slices.ContainsFunc(extensions(), made.differsFor) {
		return nil
	}
	_, err = p.Rebalance(ctx, RebalanceOptions{Always: true})
	return err
}

// Unserved returns the task types of the environment that have queues, are not paused, and that no server has served
// for their judge_dead_interval. They have no server of their own that could raise an alert. Unserved leaves out a task
// type whose queues have changed within that time: a server is about to serve it, or served it until now.
//
// After an outage of the database all servers look silent: the caller must have watched for long enough (S7).
func (r *Roster) Unserved(ctx context.Context) (taskTypes []string, err error) {
	taskTypes, err = sqldb.Records[string](ctx, r.DB, `SELECT r.task_type
		FROM schedule_task_running r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ? AND r.queue_total > 0 AND NOT r.paused
		AND NOT EXISTS (SELECT 1 FROM schedule_server d WHERE d.task_type = r.task_type AND d.own_sign = r.own_sign
			AND NOT `+IsDead+`)
		AND NOT EXISTS (SELECT 1 FROM schedule_queue q WHERE q.task_type = r.task_type AND q.own_sign = r.own_sign
			AND q.gmt_modified >= {ago t.judge_dead_interval_ms})
		ORDER BY r.task_type`, r.OwnSign)
	return taskTypes, sqldb.Wrap(err, "look for task types without workers in %s", r.OwnSign)
}
