package runs

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// update writes the row of a sweep, and its failed items, in a transaction of the dealers' pool that fences the queue.
// If the reply of an earlier try was lost, it recognises by the row's state that this try was committed.
func (sw *Sweeps) update(ctx context.Context, s Sweep, p Progress, what, state, set string, args ...any) error {
	tried := false
	err := sw.db.Transact(ctx, sw.db.Dealers, func(ctx context.Context, t sqldb.Tx) error {
		if err := sw.fence(ctx, t, s); err != nil {
			return err
		}
		n, err := writeSweep(ctx, t, s, p, state, set, args...)
		if err == nil && n == 0 && tried {
			n, err = sweepWasSaved(ctx, t, s, state)
		}
		switch {
		case err == nil && n == 0:
			err = ErrRunOver
		case err == nil:
			err = saveItems(ctx, t, s, p)
		}
		tried = true
		return err
	})
	if err != nil {
		return fmt.Errorf("%s queue %s of run %s: %w", what, s.QueueID, s.RunID, err)
	}
	return nil
}

// fence fences the queue of a sweep (R8): its owner cannot change until the transaction ends.
func (sw *Sweeps) fence(ctx context.Context, t sqldb.Tx, s Sweep) error {
	return sw.roster.Server(s.TaskType, s.Server).Fence(ctx, t.Raw, []roster.QueueEpoch{{ID: s.QueueID, Epoch: s.Epoch}})
}

func writeSweep(ctx context.Context, t sqldb.Tx, s Sweep, p Progress, state, set string, args ...any) (int, error) {
	all := []any{p.ItemsDone, p.ItemsFailed}
	progress := `items_done <> ? OR items_failed <> ?`
	if p.Cursor != nil {
		progress, set = progress+` OR cursor_value <> ?`, `, cursor_value = ?`+set
		all, args = append(all, *p.Cursor), append([]any{*p.Cursor}, args...)
	}
	if p.Waits != nil {
		set, args = set+`, last_error = ?`, append(args, sqldb.Clean(*p.Waits))
	}
	all = append(append(all, state, p.ItemsDone, p.ItemsFailed), args...)
	// MySQL evaluates SET from left to right (L6): recoveries comes before the columns that it is compared with.
	return t.Exec(ctx, `UPDATE schedule_run_queue SET recoveries = CASE WHEN `+progress+` THEN 0 ELSE recoveries END,
		progress_at = {now}, state = ?, items_done = ?, items_failed = ?`+set+`
		WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`,
		append(all, s.RunID, s.QueueID, s.Server, s.Epoch)...)
}

func sweepWasSaved(ctx context.Context, t sqldb.Tx, s Sweep, state string) (n int, err error) {
	err = t.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = ? AND queue_id = ? AND state = ? AND server = ? AND epoch = ?`,
		s.RunID, s.QueueID, state, s.Server, s.Epoch).Scan(&n)
	return n, err
}
