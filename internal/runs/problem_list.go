package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// lateTriggerMS is how long a trigger may be due before that is a problem, in milliseconds. Live servers fire it within a
// second or two.
const lateTriggerMS = 60_000

// failedStates are the states of runs that have not done their work although no operator has cancelled them.
const failedStates = `('` + RunFailed + `', '` + RunDependentFailed + `')`

// unresolved is the condition that a run r has failed, that no operator has acknowledged it, and that no later run of the
// same trigger has succeeded; submitted runs count as those of one trigger (R19). The two subqueries each read one index.
const unresolved = `r.state IN ` + failedStates + ` AND r.acked_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
		AND s.trigger_name = r.trigger_name AND s.state = '` + RunSuccess + `' AND s.scheduled_at > r.scheduled_at)
	AND NOT (r.trigger_name IS NULL AND EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
		AND s.trigger_name IS NULL AND s.state = '` + RunSuccess + `' AND s.scheduled_at > r.scheduled_at))`

// These statements select the problems of each kind, with the columns of Problem in the order of the first one. %[1]s and
// %[2]s stand for the condition that selects a task type by its runs and by its triggers.
var (
	// The failed runs of each trigger are one problem: a trigger of each minute must not give 1,440 of them a day.
	failedProblems = `SELECT '` + ProblemFailed + `' AS kind, l.task_type, l.trigger_name, l.run_id, f.run_id AS first_run_id, g.runs AS count, l.state,
			l.message, f.finished_at AS since, l.finished_at AS until
		FROM (SELECT MIN(r.run_id) AS first_id, MAX(r.run_id) AS last_id, COUNT(*) AS runs FROM schedule_run r
			WHERE r.own_sign = ?%[1]s AND ` + unresolved + ` GROUP BY r.task_type, r.trigger_name) g
		JOIN schedule_run f ON f.run_id = g.first_id JOIN schedule_run l ON l.run_id = g.last_id`

	// A run that is RUNNING has a deadline. One that waits has one if run_start_timeout is set.
	overdueProblems = `SELECT '` + ProblemOverdue + `', r.task_type, r.trigger_name, r.run_id, r.run_id, 1, r.state,
			r.message, r.started_at, r.deadline_at
		FROM schedule_run r LEFT JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND r.state = '` + RunRunning + `' AND r.deadline_at < {ago -(COALESCE(t.run_timeout_ms, 0) / 10)}`

	unopenedProblems = `SELECT '` + ProblemOverdue + `', r.task_type, r.trigger_name, r.run_id, r.run_id, 1, r.state,
			r.message, r.created_at, COALESCE(r.deadline_at, r.created_at)
		FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND (r.state IN ('` + RunReady + `', '` + RunWaiting + `') AND r.deadline_at < {ago -(t.run_start_timeout_ms / 10)}
			OR r.state = '` + RunReady + `' AND r.deadline_at IS NULL AND t.run_timeout_ms > 0 AND r.created_at < {ago t.run_timeout_ms * 9 / 10})`

	missedProblems = `SELECT '` + ProblemMissed + `', g.target, g.name, '', '', g.missed, g.status, g.message, g.missed_at, g.missed_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND g.missed_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = g.target AND s.own_sign = g.own_sign
			AND s.trigger_name = g.name AND s.state = '` + RunSuccess + `' AND s.scheduled_at > g.missed_at)`

	brokenProblems = `SELECT CASE WHEN g.status = '` + TriggerError + `' THEN '` + ProblemInvalid + `' ELSE '` + ProblemLate + `' END,
			g.target, g.name, '', '', 0, g.status, g.message, g.next_fire_at, g.next_fire_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s
		AND (g.status = '` + TriggerError + `' OR g.status = '` + TriggerActive + `' AND g.next_fire_at < {ago ` + fmt.Sprint(lateTriggerMS) + `})`
)

// Problems lists what an operator should look after in the runs of the task type, or of all task types if it is empty
// (R19). It is one statement.
func (rs *Runs) Problems(ctx context.Context, taskType string) ([]Problem, error) {
	var run, trigger string
	args := []any{rs.ownSign}
	if taskType != "" {
		run, trigger, args = ` AND r.task_type = ?`, ` AND g.target = ?`, append(args, taskType)
	}
	parts := []string{failedProblems, overdueProblems, unopenedProblems, missedProblems, brokenProblems}
	for i := range parts {
		parts[i] = fmt.Sprintf(parts[i], run, trigger)
	}
	all := slices.Repeat(args, len(parts))
	list, err := sqldb.Records[Problem](ctx, rs.db, `SELECT {columns} FROM (`+strings.Join(parts, ` UNION ALL `)+`) x ORDER BY task_type, kind, trigger_name, run_id`, all...)
	if err != nil {
		return nil, fmt.Errorf("list the problems of runs: %w", err)
	}
	return list, nil
}
