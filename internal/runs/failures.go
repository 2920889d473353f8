package runs

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	// failedStates are the states of runs that have not done their work although no operator has cancelled them.
	failedStates = `('` + RunFailed + `', '` + RunDependentFailed + `')`
	// unresolved is the condition that a run has failed and that nobody has acknowledged it. A run that was cancelled in a
	// rerun is still the one that failed: the cancellation has not done its work.
	unresolved = `state IN ('` + RunFailed + `', '` + RunDependentFailed + `', '` + RunCancelled + `') AND failed_at IS NOT NULL AND acked_at IS NULL`
	// calledOff is the condition that an operator cancelled a run which had not failed.
	calledOff = `state = '` + RunCancelled + `' AND failed_at IS NULL AND acked_at IS NULL`
)

// Unresolved reports whether the run has failed, and nobody has acknowledged it. A run that was cancelled in a rerun has
// failed before.
func (r Run) Unresolved() bool {
	return r.Ended() && r.State != RunSuccess && r.State != RunSkipped && !r.FailedAt.IsZero() && r.AckedAt.IsZero()
}

// failedTrigger is a trigger whose runs have failed. All submitted runs belong to one failedTrigger without a name. The
// runs of a backfill belong to one of their own.
type failedTrigger struct{ TaskType, Name, Backfill string }

// apart reports whether each run does work of its own, which no other run makes up for: submitted runs have keys, and
// the runs of a backfill have slots (R19).
func (t failedTrigger) apart() bool { return t.Name == "" || t.Backfill != "" }

// failures lists the failed runs of each trigger as one problem: a trigger that fires each minute must not give 1,440
// problems a day. A run counts if no operator has acknowledged it and no later run of its trigger has succeeded. A
// submitted run, and a run of a backfill, counts until an operator acknowledges it or a rerun of it succeeds (R19).
//
// It sends statements for each trigger alone, so that every database reads the newest success once for each trigger. In
// one statement, with a join, a subquery or a window, one database or another read it once for each failed run, and
// 20,000 failed runs took minutes.
func (rs *Runs) failures(ctx context.Context, taskType string) ([]Problem, error) {
	return rs.endings(ctx, taskType, unresolved, ProblemFailed)
}

// endings lists the runs under a condition, those of each trigger as one record of that kind.
func (rs *Runs) endings(ctx context.Context, taskType, condition, kind string) (list []Problem, err error) {
	triggers, err := rs.triggersOf(ctx, taskType, condition)
	if err != nil {
		return nil, err
	}
	for _, t := range triggers {
		first, last, count, err := rs.endingsOf(ctx, rs.db, t, condition)
		if err != nil {
			return nil, err
		}
		if count == 0 {
			continue
		}
		runs, err := sqldb.Records[Run](ctx, rs.db, `SELECT {columns} FROM schedule_run WHERE run_id IN (?, ?) ORDER BY run_id`, first, last)
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 { // otherwise they were deleted meanwhile
			p := newFailure(runs[0], runs[len(runs)-1], count)
			p.Kind = kind
			list = append(list, p)
		}
	}
	return list, nil
}

func newFailure(first, last Run, count int64) Problem {
	if last.State == RunCancelled && !last.FailedAt.IsZero() {
		last.Message = "it had failed at " + instant(last.FailedAt) + "; " + last.Message
	}
	return Problem{
		Kind: ProblemFailed, TaskType: last.TaskType, Trigger: last.Trigger, Backfill: last.Backfill, RunID: last.ID, FirstID: first.ID, Count: count,
		State: last.State, Message: last.Message, Since: first.FinishedAt, Until: last.FinishedAt,
	}
}

// triggersOf lists the triggers that have runs under a condition.
func (rs *Runs) triggersOf(ctx context.Context, taskType, condition string) (list []failedTrigger, err error) {
	w := sqldb.Where{Args: []any{rs.ownSign}}
	w.Equal("task_type", taskType)
	list, err = sqldb.Records[failedTrigger](ctx, rs.db, `SELECT task_type, trigger_name, backfill_id FROM schedule_run WHERE own_sign = ?`+w.Text+` AND `+condition+`
		GROUP BY task_type, trigger_name, backfill_id ORDER BY task_type, trigger_name, backfill_id`, w.Args...)
	return list, err
}

// endingsOf returns the first and the last run of a trigger under a condition since its newest success, and their number.
func (rs *Runs) endingsOf(ctx context.Context, db rowReader, t failedTrigger, condition string) (first, last string, count int64, err error) {
	same, args := t.condition(rs.ownSign)
	var newest sqldb.Instant
	if !t.apart() {
		err = db.QueryRow(ctx, `SELECT MAX(scheduled_at) FROM schedule_run WHERE `+same+` AND state = '`+RunSuccess+`'`, args...).Scan(&newest)
		if err != nil {
			return "", "", 0, err
		}
		same, args = same+` AND backfill_id IS NULL AND scheduled_at >= ?`, append(args, rs.db.Time(since(newest)))
	}
	err = db.QueryRow(ctx, `SELECT MIN(run_id), MAX(run_id), COUNT(*) FROM schedule_run WHERE `+same+` AND `+condition, args...).Scan((*sqldb.Text)(&first), (*sqldb.Text)(&last), &count)
	return first, last, count, err
}

// condition selects the runs of the trigger. A success of a backfill counts for its trigger, too.
func (t failedTrigger) condition(ownSign string) (string, []any) {
	switch {
	case t.Backfill != "":
		return `backfill_id = ? AND task_type = ?`, []any{t.Backfill, t.TaskType}
	case t.Name == "":
		return `task_type = ? AND own_sign = ? AND trigger_name IS NULL`, []any{t.TaskType, ownSign}
	}
	return `task_type = ? AND own_sign = ? AND trigger_name = ?`, []any{t.TaskType, ownSign, t.Name}
}

// since returns the instant of the newest success, or one before all runs if there is none.
func since(newest sqldb.Instant) time.Time {
	if at := time.Time(newest); !at.IsZero() {
		return at
	}
	return time.Unix(0, 0)
}
