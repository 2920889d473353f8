package runs

import (
	"context"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// readRun returns the run with that id. It returns ErrUnknownRun if it does not exist.
func (c core) readRun(ctx context.Context, runID string) (Run, error) {
	r, found, err := sqldb.Record[Run](ctx, c.db, `SELECT {columns} FROM schedule_run WHERE run_id = ? AND own_sign = ?`, runID, c.ownSign)
	if err == nil && !found {
		err = ErrUnknownRun
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run %s: %w", runID, err)
	}
	return r, nil
}

// lockRun locks the row of a run by writing it, and reports whether the run is in one of the states.
func lockRun(ctx context.Context, t sqldb.Tx, runID string, states ...string) (bool, error) {
	n, err := t.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ? AND state IN (`+sqldb.Marks(len(states))+`)`, append([]any{runID}, sqldb.Args(states)...)...)
	return n > 0, err
}

// lockRunning share-locks the row of a run and reports whether the run is RUNNING: it stays so until the transaction ends.
// Without this lock a server could claim a PENDING queue of a run that was rerun and is not opened yet.
func lockRunning(ctx context.Context, t sqldb.Tx, runID string) (bool, error) {
	var state string
	err := t.QueryRow(ctx, `SELECT q.state FROM schedule_run q WHERE q.run_id = ?`+t.Dialect.Share, runID).Scan(&state)
	if sqldb.NoRows(err) {
		return false, nil
	}
	return state == RunRunning, err
}

// moveRun changes the state of a run whose row is locked. If the run fails or is skipped, moveRun also records an event.
// If it fails, moveRun notes that no alert has been raised (R19): a later success may end the problem before a server
// looks for problems.
func moveRun(ctx context.Context, t sqldb.Tx, runID, from, to, message string) error {
	set, fails := ``, to == RunFailed || to == RunDependentFailed
	switch {
	case fails:
		set = `, finished_at = {now}, failed_at = {now}, alerted_at = NULL`
	case (Run{State: to}).Ended():
		set = `, finished_at = {now}`
	}
	n, err := t.Exec(ctx, `UPDATE schedule_run SET state = ?, message = ?`+set+` WHERE run_id = ? AND state = ?`, to, sqldb.Clean(message), runID, from)
	if err == nil && n == 0 {
		err = sqldb.ErrRaced
	}
	if err != nil || !fails && to != RunSkipped {
		return err
	}
	r := Run{ID: runID, State: to, Message: message}
	if err := t.QueryRow(ctx, `SELECT task_type, own_sign FROM schedule_run WHERE run_id = ?`, runID).Scan(&r.TaskType, &r.OwnSign); err != nil {
		return err
	}
	return roster.RecordEvents(ctx, t, r.TaskType, r.OwnSign, r.endEvent())
}

// endEvent is the event of a run that has ended without its work.
func (r Run) endEvent() roster.Event {
	return roster.Event{Kind: roster.EventRun, Reason: strings.TrimSuffix("run "+r.ID+" is "+r.State+": "+r.Message, ": ")}
}

// wrongState returns err, or else ErrRunState with the present state of the run.
func wrongState(ctx context.Context, t sqldb.Tx, runID string, err error) error {
	if err != nil {
		return err
	}
	var state string
	if err := t.QueryRow(ctx, `SELECT state FROM schedule_run WHERE run_id = ?`, runID).Scan(&state); err != nil {
		return err
	}
	return fmt.Errorf("%w: it is %s", ErrRunState, state)
}

// taskRun is the id of a run and its task type, which names the lock row.
type taskRun struct{ ID, TaskType string }
