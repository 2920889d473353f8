package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// WindowDone records that a queue was found empty in the permit window that began at since: its owner does not work
// it again until the next window begins. It returns ErrFenced if the server does not own the queue under that epoch
// any more.
func (s Server) WindowDone(ctx context.Context, q QueueEpoch, since time.Time) error {
	err := s.roster.DB.Retry(ctx, func() (bool, error) {
		n, err := s.roster.DB.Exec(ctx, `UPDATE schedule_queue SET window_done_at = ?
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`,
			s.roster.DB.Time(since), s.taskType, s.roster.OwnSign, q.ID, s.uuid, q.Epoch)
		if err == nil && n == 0 {
			err = ErrFenced
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("record the permit window of queue %s of %s$%s: %w", q.ID, s.taskType, s.roster.OwnSign, err)
	}
	return nil
}

// FailingQueue says since when the calls of a queue do nothing but fail; zero: they do not.
type FailingQueue struct {
	QueueEpoch
	Since time.Time
}

// SaveFailing records which queues fail (X7). It skips queues that the server does not own any more.
func (s Server) SaveFailing(ctx context.Context, queues []FailingQueue) error {
	for _, q := range queues {
		var since any
		if !q.Since.IsZero() {
			since = s.roster.DB.Time(q.Since)
		}
		err := s.roster.DB.Retry(ctx, func() (bool, error) {
			_, err := s.roster.DB.Exec(ctx, `UPDATE schedule_queue SET failing_since = ?
				WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`,
				since, s.taskType, s.roster.OwnSign, q.ID, s.uuid, q.Epoch)
			return true, err
		})
		if err != nil {
			return fmt.Errorf("record whether queue %s of %s$%s fails: %w", q.ID, s.taskType, s.roster.OwnSign, err)
		}
	}
	return nil
}

// Cursor returns how far the source of a queue was read. It returns ErrFenced if the server does not own the queue
// under that epoch any more.
func (s Server) Cursor(ctx context.Context, q QueueEpoch) (cursor string, err error) {
	err = s.roster.DB.Dealers.QueryRowContext(ctx, s.roster.DB.SQL(`SELECT cursor_value FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`),
		s.taskType, s.roster.OwnSign, q.ID, s.uuid, q.Epoch).Scan(&cursor)
	if sqldb.NoRows(err) {
		err = ErrFenced
	}
	if err != nil {
		return "", fmt.Errorf("read the cursor of queue %s of %s$%s: %w", q.ID, s.taskType, s.roster.OwnSign, err)
	}
	return cursor, nil
}
