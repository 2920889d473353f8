package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// unalerted is the condition that a run has failed, and that neither an alert nor an operator has taken note of it.
const unalerted = `task_type = ? AND own_sign = ? AND ` + unresolved + ` AND alerted_at IS NULL`

// AlertFailures raises the alerts of the failed runs of a task type for which no server has raised one: it records
// them as events, and returns them. The row of a run says whether its failure is still to be raised, so that no failure
// is missed, even if a later success has ended the problem already or the process that ended the run is gone (R19). The
// failures of a trigger raise one alert until the trigger succeeds. Submitted runs have nothing to do with each other:
// each raises an alert, together with the submitted runs that AlertFailures finds at the same time.
//
// AlertFailures is one statement if there is nothing to raise.
func (rs *Runs) AlertFailures(ctx context.Context, taskType string) (raised []condition.Condition, err error) {
	var due int
	err = rs.db.QueryRow(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM schedule_run WHERE `+unalerted+` LIMIT 1) u`, taskType, rs.ownSign).Scan(&due)
	if err == nil && due > 0 {
		err = rs.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			raised, err = rs.alertFailures(ctx, l)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("raise the alerts of failed runs of %s$%s: %w", taskType, rs.ownSign, err)
	}
	return raised, nil
}

// maxAlertedRuns bounds the failed runs of which one call of AlertFailures takes note. The next call continues.
const maxAlertedRuns = roster.InsertRows

func (rs *Runs) alertFailures(ctx context.Context, l *roster.LockTx) (raised []condition.Condition, err error) {
	failed, err := unalertedRuns(ctx, l)
	for len(failed) > 0 && err == nil {
		var group, others []Run
		of := triggerOf(failed[0])
		for _, r := range failed {
			if triggerOf(r) == of {
				group = append(group, r)
			} else {
				others = append(others, r)
			}
		}
		failed = others
		var known bool
		if known, err = rs.alertKnown(ctx, l, of, group); err != nil || known {
			continue
		}
		p := newFailure(group[0], group[len(group)-1], int64(len(group)))
		a := p.Condition()
		err = l.RecordAlert(ctx, a, condition.KindOf(a.Kind).Alert.Gap(0))
		raised = append(raised, a)
	}
	return raised, err
}

// unalertedRuns returns failed runs, the oldest first, and notes that their alerts are raised.
func unalertedRuns(ctx context.Context, l *roster.LockTx) (failed []Run, err error) {
	failed, err = sqldb.Records[Run](ctx, l, fmt.Sprintf(`SELECT {columns} FROM schedule_run WHERE `+unalerted+`
		ORDER BY run_id LIMIT %d`, maxAlertedRuns), l.TaskType, l.OwnSign)
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	var ids []string
	for _, r := range failed {
		ids = append(ids, r.ID)
	}
	_, err = l.Exec(ctx, `UPDATE schedule_run SET alerted_at = {now} WHERE run_id IN (`+sqldb.Marks(len(ids))+`)`, sqldb.Args(ids)...)
	return failed, err
}

// alertKnown reports whether the runs failed after a run of the same trigger or backfill that has raised an alert, and
// whose failure is still a problem.
func (rs *Runs) alertKnown(ctx context.Context, l *roster.LockTx, of failedTrigger, group []Run) (bool, error) {
	if of.Name == "" {
		return false, nil
	}
	first, _, count, err := rs.endingsOf(ctx, l, of, unresolved)
	return count > 0 && !slices.ContainsFunc(group, func(r Run) bool { return r.ID == first }), err
}

func triggerOf(r Run) failedTrigger { return failedTrigger{r.TaskType, r.Trigger, r.Backfill} }
