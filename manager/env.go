package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

func processorSettings(s Settings) processor.Settings {
	return processor.Settings{
		ThreadNumber: s.ThreadNumber, FetchNumber: s.FetchNumber, ExecuteNumber: s.ExecuteNumber,
		SleepTimeNoData: s.SleepTimeNoData, SleepTimeInterval: s.SleepTimeInterval,
		Runs: s.Mode == center.ModeRun, NotSleep: s.ProcessorType == center.ProcessorNotSleep, RatePerSecond: s.RatePerSecond, BatchTimeout: s.BatchTimeout,
		Retry: s.ItemRetry, RetryMax: s.ItemRetryMax, ItemMaxAttempts: s.ItemMaxAttempts, Parameter: s.TaskParameter,
	}
}

// env is what the processor sees of the roster: whether it may go on, how the fence's batch gets into the
// contexts of Execute, and where failed items and cursors are kept. Its functions are called from the
// executors.
func (s *server) env() processor.Env {
	return processor.Env{
		TaskType: s.task.name, OwnSign: s.c.OwnSign(), Log: s.m.cfg.Logger, Hooks: s.m.cfg.Hooks,
		Trusted: func() bool {
			l := s.cur.Load()
			return l != nil && l.lease.valid()
		},
		Bind: s.bind, Lost: center.IsFenced, Items: itemStore{s}, Cursors: cursorStore{s},
		Alert: func(a processor.Alert) { s.pass(center.Alert{Kind: a.Kind, QueueID: a.Queue, Text: a.Text}) },
	}
}

func (s *server) bind(ctx context.Context, queues []processor.Queue, cursor *string) context.Context {
	b := center.Batch{Server: s.cur.Load().uuid, TaskType: s.task.name, Queues: make([]center.Held, len(queues)), Cursor: cursor}
	if len(queues) > 0 && queues[0].Run != nil {
		b.Run = queues[0].Run.ID
	}
	for i, q := range queues {
		b.Queues[i] = center.Held{ID: q.ID, Epoch: q.Epoch}
	}
	return s.c.Bind(ctx, b)
}

// pass hands an alert to the server's own goroutine. If too many wait, those that are there say enough.
func (s *server) pass(a center.Alert) {
	select {
	case s.alerts <- a:
	default:
	}
}

// itemStore keeps the processor's failed items in schedule_failed_item.
type itemStore struct{ s *server }

// Load implements processor.ItemStore.
func (i itemStore) Load(ctx context.Context, q processor.Queue) ([]processor.FailedItem, error) {
	ctx, cancel := i.s.bounded(ctx)
	defer cancel()
	rows, err := i.s.c.FailedItems(ctx, i.s.task.name, q.ID, 0)
	items := make([]processor.FailedItem, len(rows))
	for n, r := range rows {
		items[n] = processor.FailedItem{Key: r.Key, Attempts: r.Attempts, Dead: r.State == center.ItemDead, LastError: r.LastError, RetryIn: r.RetryIn}
	}
	return items, err
}

// Save implements processor.ItemStore.
func (i itemStore) Save(ctx context.Context, q processor.Queue, items []processor.FailedItem) error {
	ctx, cancel := i.s.bounded(ctx)
	defer cancel()
	rows := make([]center.FailedItem, len(items))
	for n, item := range items {
		rows[n] = center.FailedItem{
			Key: item.Key, QueueID: q.ID, State: center.ItemRetry, Attempts: item.Attempts, LastError: item.LastError, RetryIn: item.RetryIn,
		}
		if item.Dead {
			rows[n].State = center.ItemDead
		}
	}
	return i.s.c.SaveFailedItems(ctx, i.s.task.name, rows)
}

// Delete implements processor.ItemStore.
func (i itemStore) Delete(ctx context.Context, _ processor.Queue, keys []string) error {
	ctx, cancel := i.s.bounded(ctx)
	defer cancel()
	return i.s.c.ForgetFailedItems(ctx, i.s.task.name, keys)
}

// cursorStore keeps the processor's cursors in the queues' rows, and those of sweeps in the rows of the run.
type cursorStore struct{ s *server }

// Load implements processor.CursorStore.
func (c cursorStore) Load(ctx context.Context, q processor.Queue) (string, error) {
	ctx, cancel := c.s.bounded(ctx)
	defer cancel()
	held := center.Held{ID: q.ID, Epoch: q.Epoch}
	if q.Run != nil {
		return c.s.c.SweepCursor(ctx, q.Run.ID, c.s.cur.Load().uuid, held)
	}
	return c.s.c.Cursor(ctx, c.s.task.name, c.s.cur.Load().uuid, held)
}

// Save implements processor.CursorStore. The cursor is the one that ctx carries.
func (c cursorStore) Save(ctx context.Context, _ processor.Queue, _ string) error {
	ctx, cancel := c.s.bounded(ctx)
	defer cancel()
	return center.SaveCursor(ctx)
}

// bounded bounds what an executor does with the database: a database that does not answer must not keep a queue
// from being drained for longer than a dealer may.
func (s *server) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 5*time.Second)
}
