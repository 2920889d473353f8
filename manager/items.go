package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// itemPart makes the processor select soon when failed items have changed, or the division of all items (X6).
func itemPart(b *base) part {
	var items, partition int64 // the versions that the processor knows
	return part{
		registered: func(r roster.Registration) { items, partition = r.ItemVersion, r.PartitionVersion },
		follow: func(r heartbeatReply) {
			if r.Items.Version != items || r.PartitionVersion != partition {
				items, partition = r.Items.Version, r.PartitionVersion
				b.proc.Reload()
			}
		},
	}
}

// storeTimeout limits each call of a store, so that a database that does not answer cannot delay the drain of a queue
// for longer than a dealer may.
const storeTimeout = 5 * time.Second

// itemStore keeps the processor's failed items in schedule_failed_item.
type itemStore struct{ s *server }

// Any implements engine.ItemStore.
func (i itemStore) Any(ctx context.Context, q processor.Queue) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return failures.Of(i.s.roster.Roster()).Any(ctx, i.s.taskType, q.ID)
}

// Started implements engine.ItemStore.
func (i itemStore) Started(ctx context.Context, q processor.Queue) ([]engine.FailedItem, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, err := failures.Of(i.s.roster.Roster()).Started(ctx, i.s.taskType, q.ID)
	return failedItems(rows), err
}

// Find implements engine.ItemStore.
func (i itemStore) Find(ctx context.Context, q processor.Queue, keys []string) ([]engine.FailedItem, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, err := failures.Of(i.s.roster.Roster()).OfPage(ctx, i.s.taskType, q.ID, keys)
	return failedItems(rows), err
}

func failedItems(rows []failures.Item) []engine.FailedItem {
	items := make([]engine.FailedItem, len(rows))
	for n, r := range rows {
		items[n] = engine.FailedItem{
			Key: r.Key, OrderKey: r.OrderKey, Queue: r.QueueID, Attempts: r.Attempts, LastError: r.LastError, RetryIn: r.RetryIn,
			Dead: r.State == ops.ItemDead, Started: r.State == ops.ItemStarted,
		}
	}
	return items
}

// Save implements engine.ItemStore.
func (i itemStore) Save(ctx context.Context, q processor.Queue, items []engine.FailedItem) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows := make([]failures.Item, len(items))
	for n, item := range items {
		rows[n] = failures.Item{
			Key: item.Key, OrderKey: item.OrderKey, QueueID: q.ID, Partition: q.Partition, State: ops.ItemRetry,
			Attempts: item.Attempts, LastError: item.LastError, RetryIn: item.RetryIn,
		}
		switch {
		case item.Dead:
			rows[n].State = ops.ItemDead
		case item.Started:
			rows[n].State = ops.ItemStarted
		}
	}
	return failures.Of(i.s.roster.Roster()).Save(ctx, i.s.taskType, rows)
}

// Delete implements engine.ItemStore.
func (i itemStore) Delete(ctx context.Context, _ processor.Queue, keys []string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return failures.Of(i.s.roster.Roster()).Forget(ctx, i.s.taskType, keys)
}

// cursorStore keeps the processor's cursors in the rows of the queues, and the cursors of sweeps in the rows of the
// run.
type cursorStore struct{ s *server }

// Load implements engine.CursorStore.
func (c cursorStore) Load(ctx context.Context, q processor.Queue) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	uuid, queue := c.s.session.Load().uuid, center.QueueEpoch{ID: q.ID, Epoch: q.Epoch}
	if q.Database != "" {
		return c.s.roster.Data(q.Database).Cursor(ctx, c.s.taskType, uuid, queue)
	}
	if q.Run != nil {
		return c.s.roster.Engine().Sweeps.Cursor(ctx, q.Run.ID, uuid, queue)
	}
	return c.s.roster.Roster().Server(c.s.taskType, uuid).Fence().Cursor(ctx, queue)
}

// Save implements engine.CursorStore. The cursor is the one that ctx carries.
func (c cursorStore) Save(ctx context.Context, _ processor.Queue, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return center.SaveCursor(ctx)
}
