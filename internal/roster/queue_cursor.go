package roster

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Cursor reads how far the source of a queue was read. ErrFenced if the server does not own the queue under
// that epoch any more.
func (r *Roster) Cursor(ctx context.Context, taskType, server string, q QueueEpoch) (cursor string, err error) {
	err = r.DB.Dealers.QueryRowContext(ctx, r.DB.SQL(`SELECT cursor_value FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`),
		taskType, r.OwnSign, q.ID, server, q.Epoch).Scan(&cursor)
	if sqldb.NoRows(err) {
		err = ErrFenced
	}
	if err != nil {
		return "", fmt.Errorf("read the cursor of queue %s of %s$%s: %w", q.ID, taskType, r.OwnSign, err)
	}
	return cursor, nil
}
