package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// lateTriggerMS is how long a trigger may be due before that is a problem, in milliseconds. Live servers fire it within
// a second or two.
const lateTriggerMS = 60_000

// A skipped slot is what overlap SKIP is for. It is a problem when so many slots in a row were skipped, or when none has
// fired for so long.
const (
	skippedSlots = 3
	skippedFor   = 24 * time.Hour
)

// stallBegan is how long an open run of a task type t may make no progress before that is a problem.
const stallBegan = `{ago CASE WHEN t.stall_after_ms > 900000 THEN t.stall_after_ms * 2 ELSE 1800000 END}`

// These statements select the problems of each kind, with the columns of Problem in the order of the first one.
// %[1]s and %[2]s stand for the condition that selects a task type by its runs and by its triggers.
var (
	// A run that is RUNNING has a deadline. One that waits has one if run_start_timeout is set.
	overdueProblems = `SELECT '` + ProblemOverdue + `' AS kind, r.task_type, r.trigger_name, r.backfill_id, r.run_id, r.run_id AS first_run_id, 1 AS count, r.state,
			r.message, r.started_at AS since, r.deadline_at AS until
		FROM schedule_run r LEFT JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND r.state = '` + RunRunning + `' AND r.deadline_at < {ago -(COALESCE(t.run_timeout_ms, 0) / 10)}`

	unopenedProblems = `SELECT '` + ProblemOverdue + `', r.task_type, r.trigger_name, r.backfill_id, r.run_id, r.run_id, 1, r.state,
			r.message, COALESCE(r.not_before, r.created_at), COALESCE(r.deadline_at, r.not_before, r.created_at)
		FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND (r.state IN ('` + RunReady + `', '` + RunWaiting + `') AND r.deadline_at < {ago -(t.run_start_timeout_ms / 10)}
			OR r.state = '` + RunReady + `' AND r.deadline_at IS NULL AND t.run_timeout_ms > 0 AND COALESCE(r.not_before, r.created_at) < {ago t.run_timeout_ms * 9 / 10})`

	// A run of a backfill or a trigger holds up the slots after it, so it is told long before its deadline. A call that may
	// last long (stall_after) is no stall, nor is the pause before the next attempt of a queue.
	stalledProblems = `SELECT '` + ProblemStalled + `', r.task_type, r.trigger_name, r.backfill_id, r.run_id, r.run_id, 1, r.state,
			COALESCE((SELECT MAX(q.last_error) FROM schedule_run_queue q WHERE q.run_id = r.run_id AND q.state = '` + RunQueueRunning + `'), ''), r.started_at, COALESCE((SELECT MAX(q.progress_at) FROM schedule_run_queue q WHERE q.run_id = r.run_id), r.started_at)
		FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		JOIN schedule_task_running k ON k.task_type = r.task_type AND k.own_sign = r.own_sign
		WHERE r.own_sign = ?%[1]s AND r.state = '` + RunRunning + `' AND NOT r.paused AND NOT k.paused AND r.started_at < ` + stallBegan + `
		AND NOT EXISTS (SELECT 1 FROM schedule_run_queue q WHERE q.run_id = r.run_id
			AND (q.progress_at > ` + stallBegan + ` OR q.finished_at > ` + stallBegan + ` OR q.next_attempt_at > {now}))`

	missedProblems = `SELECT '` + ProblemMissed + `', g.target, g.name, NULL, '', '', g.missed, g.status, g.message, g.missed_at, g.missed_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND g.missed_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = g.target AND s.own_sign = g.own_sign
			AND s.trigger_name = g.name AND s.state = '` + RunSuccess + `' AND s.scheduled_at >= g.missed_at)`

	skippedProblems = `SELECT '` + ProblemSkipped + `', g.target, g.name, NULL, '', '', g.skipped, g.status, g.message, g.skipped_since, g.skipped_since
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND (g.skipped >= ` + fmt.Sprint(skippedSlots) + ` OR g.skipped_since < {ago ` + fmt.Sprint(skippedFor.Milliseconds()) + `})`

	brokenProblems = `SELECT CASE WHEN g.status = '` + TriggerError + `' THEN '` + ProblemInvalid + `' ELSE '` + ProblemLate + `' END,
			g.target, g.name, NULL, '', '', 0, g.status, g.message, g.next_fire_at, g.next_fire_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s
		AND (g.status = '` + TriggerError + `' OR g.status = '` + TriggerActive + `' AND g.next_fire_at < {ago ` + fmt.Sprint(lateTriggerMS) + `})`
)

// Problems lists what an operator should look after in the runs of the task type, or of all task types if it is empty
// (R19). It is two statements, and up to three more for each trigger whose runs have failed.
func (rs *Runs) Problems(ctx context.Context, taskType string) ([]Problem, error) {
	list, err := rs.failures(ctx, taskType)
	if err != nil {
		return nil, fmt.Errorf("list the failed runs: %w", err)
	}
	others, err := rs.otherProblems(ctx, taskType)
	if err != nil {
		return nil, fmt.Errorf("list the problems of runs: %w", err)
	}
	list = append(list, others...)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.TaskType, b.TaskType), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Trigger, b.Trigger), cmp.Compare(a.RunID, b.RunID))
	})
	return list, nil
}

// Cancelled lists the runs that an operator cancelled although they had not failed, those of each trigger as one record,
// until a later run of the trigger succeeds or an operator acknowledges them. That is no problem: it was meant so.
func (rs *Runs) Cancelled(ctx context.Context, taskType string) ([]Problem, error) {
	list, err := rs.endings(ctx, taskType, calledOff, NoteCancelled)
	if err != nil {
		return nil, fmt.Errorf("list the cancelled runs: %w", err)
	}
	return list, nil
}

// otherProblems lists the problems except failed runs.
func (rs *Runs) otherProblems(ctx context.Context, taskType string) ([]Problem, error) {
	var run, trigger string
	args := []any{rs.ownSign}
	if taskType != "" {
		run, trigger, args = ` AND r.task_type = ?`, ` AND g.target = ?`, append(args, taskType)
	}
	parts := []string{overdueProblems, unopenedProblems, stalledProblems, missedProblems, skippedProblems, brokenProblems}
	for i := range parts {
		parts[i] = fmt.Sprintf(parts[i], run, trigger)
	}
	return sqldb.Records[Problem](ctx, rs.db, `SELECT {columns} FROM (`+strings.Join(parts, ` UNION ALL `)+`) x ORDER BY task_type, kind, trigger_name, run_id`,
		slices.Repeat(args, len(parts))...)
}
