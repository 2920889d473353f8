package center

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// SaveCursor saves the cursor of the batch that ctx carries, unless the fence has saved it already in this context (F4).
// It is for dealers that do not write through a fenced transaction. Their cursor may fall behind their effects, but is never
// ahead of them. SaveCursor returns ErrFenced if the queue has another owner or epoch, and ErrNoBatch if ctx does not come
// from Execute.
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
			return fmt.Errorf("save the cursor of run %s: %w", b.Run, lostSince(ctx, err))
		}
		return nil
	}
	err := b.c.db.Retry(ctx, func() (bool, error) {
		return true, b.fenceByWriting(ctx, b.c.db.Dealers, `cursor_value = ?, `, *b.Cursor)
	})
	if err != nil {
		return fmt.Errorf("save the cursor of %s$%s: %w", b.TaskType, b.OwnSign, lostSince(ctx, err))
	}
	return nil
}
