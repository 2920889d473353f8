package runs

import (
	"cmp"
	"context"
	"errors"

	"github.com/dutyrota/rota/internal/roster"
)

// The parts of a tick and of Finish, for tests in which a worker dies between two of them.

// FireDue fires the triggers that are due.
func (s *Scheduler) FireDue(ctx context.Context, taskType string) error {
	return s.fireDue(ctx, taskType)
}

// OpenNext opens a run.
func (s *Scheduler) OpenNext(ctx context.Context, taskType string) error {
	_, err := s.openNext(ctx, taskType)
	return err
}

// CloseRun ends a run if its queues are finished.
func (s *Scheduler) CloseRun(ctx context.Context, runID string) error {
	return s.closer.closeRun(ctx, runID)
}

// FinishQueueOnly commits that a queue is DONE, and does not close the run.
func (sw *Sweeps) FinishQueueOnly(ctx context.Context, s Sweep) error {
	return sw.update(ctx, s, Progress{}, "finish", RunQueueDone, `, finished_at = {now}`)
}

// ClaimAsReadBefore claims a queue of a run that was RUNNING when the server read it.
func (sw *Sweeps) ClaimAsReadBefore(ctx context.Context, taskType, server, run string, q roster.QueueEpoch) (bool, error) {
	_, ok, err := sw.claimOne(ctx, taskType, server, claimCandidate{run: run, queue: q.ID}, []roster.QueueEpoch{q})
	return ok, err
}

// FireEdited fires the due triggers of a task type. Between the read and the write an operator edits the triggers by hand.
func (s *Scheduler) FireEdited(ctx context.Context, taskType string) error {
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
