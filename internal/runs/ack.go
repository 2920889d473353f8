package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ErrNoProblem means that there is nothing to acknowledge.
var ErrNoProblem = errors.New("there is nothing to acknowledge")

// Ack acknowledges that a run is FAILED, DEPENDENT_FAILED or CANCELLED: from now on this is no problem (R19). Ack also
// acknowledges the earlier failures of the same trigger or backfill, and the dependants that failed because of this
// run. Other submitted runs stay as they are. A rerun undoes it. Ack returns ErrRunState if the run is in any other state, and ErrNoProblem if it is acknowledged
// already.
func (rs *Runs) Ack(ctx context.Context, runID, actor string) error {
	return rs.ack(ctx, runID, actor, false)
}

// ack is Ack, and with all it also acknowledges the earlier submitted runs.
func (rs *Runs) ack(ctx context.Context, runID, actor string, all bool) error {
	err := rs.operate(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		failed, err := lockRun(ctx, l.Tx, runID, RunFailed, RunDependentFailed, RunCancelled)
		if err != nil || !failed {
			return wrongState(ctx, l.Tx, runID, err)
		}
		n, err := ackEarlier(ctx, l, runID, actor, all)
		if err != nil {
			return err
		}
		more, err := ackDependants(ctx, l.Tx, runID, actor)
		if err != nil {
			return err
		}
		if n+more == 0 {
			return ErrNoProblem
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "acknowledged: " + runID})
	})
	if err != nil {
		return fmt.Errorf("acknowledge run %s: %w", runID, err)
	}
	return nil
}

// ackEarlier acknowledges a failed run and the earlier failures of its trigger or backfill, and returns their number.
// The earlier failures of submitted runs are other work, so that they count only with all. It reads the run first:
// MySQL reads no table that the same statement updates.
func ackEarlier(ctx context.Context, l *roster.LockTx, runID, actor string, all bool) (int, error) {
	var trigger, backfill sqldb.Text
	if err := l.QueryRow(ctx, `SELECT trigger_name, backfill_id FROM schedule_run WHERE run_id = ?`, runID).Scan(&trigger, &backfill); err != nil {
		return 0, err
	}
	same, args := `backfill_id IS NULL AND trigger_name IS NULL`, []any{sqldb.Clean(actor), l.TaskType, l.OwnSign, runID}
	switch {
	case backfill != "":
		same, args = `backfill_id = ?`, append(args, string(backfill))
	case trigger != "":
		same, args = `backfill_id IS NULL AND trigger_name = ?`, append(args, string(trigger))
	case !all:
		same, args = `run_id = ?`, append(args, runID)
	}
	return l.Exec(ctx, ackRuns+`task_type = ? AND own_sign = ? AND run_id <= ? AND `+same, args...)
}

// ackRuns begins a statement that acknowledges the failed and cancelled runs under a condition.
const ackRuns = `UPDATE schedule_run SET acked_at = {now}, acked_by = ?, version = version + 1
	WHERE state IN ('` + RunFailed + `', '` + RunDependentFailed + `', '` + RunCancelled + `') AND acked_at IS NULL AND `

// ackDependants acknowledges the direct and indirect dependants of a run that failed because of it.
func ackDependants(ctx context.Context, t sqldb.Tx, runID, actor string) (acked int, err error) {
	dependants, err := allDependants(ctx, t, runID)
	if err != nil {
		return 0, err
	}
	for _, id := range dependants {
		n, err := t.Exec(ctx, ackRuns+`run_id = ? AND state = '`+RunDependentFailed+`'`, sqldb.Clean(actor), id)
		if err != nil {
			return acked, err
		}
		acked += n
	}
	return acked, nil
}

// AckTask acknowledges all problems of a task type that can be acknowledged: its failed and cancelled runs, and the missed
// and skipped slots of its triggers. It returns the problems. It returns ErrNoProblem if there are none, and ErrUnknownTask if the task type
// has no lock row.
func (rs *Runs) AckTask(ctx context.Context, taskType, actor string) (acked []Problem, err error) {
	list, err := rs.Problems(ctx, taskType)
	if err != nil {
		return nil, err
	}
	cancelled, err := rs.Cancelled(ctx, taskType)
	if err != nil {
		return nil, err
	}
	list = append(list, cancelled...)
	list = slices.DeleteFunc(list, func(p Problem) bool { return !p.acknowledgeable() })
	for _, p := range list {
		if p.RunID != "" {
			err = rs.ack(ctx, p.RunID, actor, true)
		} else {
			err = rs.ackSlots(ctx, p, actor)
		}
		if err != nil && !errors.Is(err, ErrNoProblem) && !errors.Is(err, ErrRunState) { // another operator has acknowledged it already
			return acked, err
		}
		acked = append(acked, p)
	}
	if len(acked) == 0 {
		return nil, fmt.Errorf("acknowledge the problems of %s$%s: %w", taskType, rs.ownSign, ErrNoProblem)
	}
	return acked, nil
}

// acknowledgeable reports whether the problem is about the past, so that an operator can end it without a change.
func (p Problem) acknowledgeable() bool {
	return p.Kind == ProblemFailed || p.Kind == NoteCancelled || p.Kind == ProblemMissed || p.Kind == ProblemSkipped
}

// ackSlots acknowledges the missed or skipped slots of a trigger that the caller has seen.
func (rs *Runs) ackSlots(ctx context.Context, p Problem, actor string) error {
	slots := "missed"
	if p.Kind == ProblemSkipped {
		slots = "skipped"
	}
	err := rs.roster.UnderLock(ctx, p.TaskType, func(ctx context.Context, l *roster.LockTx) (err error) {
		var n int
		if p.Kind == ProblemSkipped {
			n, err = forgetSkipped(ctx, l, p.Trigger)
		} else {
			n, err = l.Exec(ctx, `UPDATE schedule_trigger SET missed_at = NULL, version = version + 1 WHERE own_sign = ? AND name = ? AND missed_at <= ?`,
				l.OwnSign, p.Trigger, l.Dialect.Time(p.Since))
		}
		if err != nil || n == 0 {
			return err
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: slots + " slots acknowledged: " + p.Trigger})
	})
	if err != nil {
		return fmt.Errorf("acknowledge the %s slots of trigger %s: %w", slots, p.Trigger, err)
	}
	return nil
}
