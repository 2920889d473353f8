package manager

import (
	"context"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// env returns what connects the processor to the roster: the lease, the fence's batch in the contexts of Execute, and
// the stores of failed items and cursors. The executors call its functions.
func (s *server) env() processor.Env {
	return processor.Env{
		TaskType: s.taskType, OwnSign: s.roster.OwnSign(), Logger: s.cfg.Logger, Hooks: s.cfg.Hooks,
		Trusted: s.leaseValid, Bind: s.bind, Lost: center.IsFenced, DataError: s.roster.IsDataError,
		Items: itemStore{s}, Cursors: cursorStore{s}, Alert: s.queueAlert, Alone: s.alone,
	}
}

func (s *server) leaseValid() bool {
	session := s.session.Load()
	return session != nil && session.reg.lease.valid()
}

func (s *server) bind(ctx context.Context, queues []processor.Queue, cursor *string) context.Context {
	b := center.Batch{Server: s.session.Load().uuid, TaskType: s.taskType, Queues: make([]center.QueueEpoch, len(queues)), Cursor: cursor}
	if len(queues) > 0 && queues[0].Run != nil {
		b.Run = queues[0].Run.ID
		ctx = processor.WithRun(ctx, queues[0].Run)
	}
	for i, q := range queues {
		b.Queues[i] = center.QueueEpoch{ID: q.ID, Epoch: q.Epoch}
	}
	return s.roster.Bind(ctx, b)
}

// queueAlert passes an alert to the server's own goroutine. It drops the alert if the channel is full.
func (s *server) queueAlert(a processor.Alert) {
	select {
	case s.alerts <- center.Condition{Kind: a.Kind, QueueID: a.Queue, Subject: a.Subject, Text: a.Text}:
	default:
	}
}
