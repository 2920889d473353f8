package center

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// SaveCursor saves the cursor of the batch that ctx carries, unless the fence has done so already in this
// context (F4). It is for dealers that do not write through a fenced transaction; then the cursor may fall
// behind their effects, never run ahead of them. ErrFenced if the queue has changed hands.
func SaveCursor(ctx context.Context) error {
	b, ok := ctx.Value(batchKey{}).(boundBatch)
	switch {
	case !ok:
		return ErrNoBatch
	case b.Cursor == nil || b.saved.Load():
		return nil
	}
	if b.Run != "" {
		err := b.c.db.Transact(ctx, b.c.db.Dealers, func(ctx context.Context, t sqldb.Tx) error { return b.fenceRun(ctx, t.Raw) })
		if err != nil {
			return fmt.Errorf("save the cursor of run %s: %w", b.Run, err)
		}
		return nil
	}
	err := b.c.db.Retry(ctx, func() (bool, error) {
		return true, b.fenceByWriting(ctx, b.c.db.Dealers, `cursor_value = ?, `, *b.Cursor)
	})
	if err != nil {
		return fmt.Errorf("save the cursor of %s$%s: %w", b.TaskType, b.OwnSign, err)
	}
	return nil
}

// SweepCursor reads how far a queue was read in a run. ErrFenced if its sweep is not that of the server and the epoch
// any more.
func (c *Center) SweepCursor(ctx context.Context, runID, server string, q QueueEpoch) (cursor string, err error) {
	err = c.db.Dealers.QueryRowContext(ctx, c.db.SQL(`SELECT cursor_value FROM schedule_run_queue
		WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`), runID, q.ID, server, q.Epoch).Scan(&cursor)
	if sqldb.NoRows(err) {
		err = fmt.Errorf("%w: %w", ErrFenced, ErrRunOver)
	}
	if err != nil {
		return "", fmt.Errorf("read the cursor of queue %s of run %s: %w", q.ID, runID, err)
	}
	return cursor, nil
}
