package runs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
)

// The steps of Tick and Finish, for tests in which a worker crashes between two of them.

// FireDue fires the triggers that are due, a step of Tick.
func (s *Scheduler) FireDue(ctx context.Context, taskType string) error {
	return s.fireDue(ctx, taskType)
}

// OpenNext opens the next READY run, a step of Tick.
func (s *Scheduler) OpenNext(ctx context.Context, taskType string) error {
	_, err := s.openNext(ctx, taskType)
	return err
}

// CloseRun ends a run if its queues are finished (R10).
func (s *Scheduler) CloseRun(ctx context.Context, runID string) error {
	return s.closer.closeRun(ctx, runID)
}

// FinishOnly commits the state DONE of a queue: Finish without closing the run.
func (sw *Sweeps) FinishOnly(ctx context.Context, s Sweep) error {
	return sw.update(ctx, s, Progress{}, "finish", QueueDone, `, finished_at = {now}`)
}

// ClaimStaleRead claims a queue of a run that an earlier read has seen RUNNING.
func (sw *Sweeps) ClaimStaleRead(ctx context.Context, taskType, server, run string, q roster.QueueEpoch) (bool, error) {
	_, ok, err := sw.claimOne(ctx, taskType, server, claimCandidate{Run: run, Queue: q.ID}, []roster.QueueEpoch{q})
	return ok, err
}

// FireWhileEdited fires the due triggers while an operator edits their rows, after the firing has read them.
func (s *Scheduler) FireWhileEdited(ctx context.Context, taskType string) error {
	var once error // an error that UnderLock does not retry ends it after one attempt
	err := s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		firings, err := dueTriggers(ctx, l)
		if err != nil {
			return err
		}
		if _, err := l.Exec(ctx, `UPDATE schedule_trigger SET version = version + 1, status = 'PAUSED'`); err != nil {
			return err
		}
		once = advanceTriggers(ctx, l, firings)
		return errors.New("roll back")
	})
	return cmp.Or(once, err)
}

// CleanStaleRead deletes the queues of a run that an earlier read of Clean has seen ended.
func (rs *Runs) CleanStaleRead(ctx context.Context, run string) (deleted int, err error) {
	deleted, _, err = deleteRows(ctx, rs.db, "schedule_run_queue", []string{run})
	return deleted, err
}

// DeleteStaleRead is the last step of Clean, which has read the run a moment ago.
func (rs *Runs) DeleteStaleRead(ctx context.Context, id string) (int, error) {
	return deleteRuns(ctx, rs.db, []string{id})
}

// ExplainList returns the database's plan for List.
func (rs *Runs) ExplainList(ctx context.Context, f Filter, limit int) (plan string, err error) {
	query, args := rs.listQuery(f, limit)
	explain := "EXPLAIN "
	if rs.db.Name == "sqlite" {
		explain = "EXPLAIN QUERY PLAN "
	}
	err = rs.db.Each(ctx, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		cells, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		err = cmp.Or(err, rows.Scan(into...))
		for _, c := range cells {
			plan += c.String + " "
		}
		plan += "\n"
		return err
	}, explain+strings.Replace(query, "{columns}", "*", 1), args...)
	return plan, err
}
