package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Define makes the rows of a task type and of its roster in this own_sign unless they are there,
// and returns the settings that are in force: those of the row, whoever made it. It takes the
// queues from BASE when another own_sign meets the task type for the first time. Safe when
// several processes do it at once.
func (c *Center) Define(ctx context.Context, taskType string, s Settings) (Settings, error) {
	if err := validName("task type", taskType, 100); err != nil {
		return Settings{}, err
	}
	if err := s.Validate(); err != nil {
		return Settings{}, fmt.Errorf("task %s: %w", taskType, err)
	}
	if err := c.insertLockRow(ctx, taskType); err != nil {
		return Settings{}, fmt.Errorf("define %s$%s: %w", taskType, c.ownSign, err)
	}
	err := c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		if err := l.insertTaskType(ctx, s.WithDefaults()); err != nil {
			return err
		}
		return l.insertRoster(ctx, s)
	})
	if errors.Is(err, ErrUnknownCommit) {
		err = nil // reading the row below tells
	}
	if err != nil {
		return Settings{}, fmt.Errorf("define %w", err)
	}
	row, err := c.Settings(ctx, taskType)
	if err != nil {
		return Settings{}, err
	}
	return row, nil
}

// insertLockRow is a transaction of its own: two that insert the row inside larger ones would
// wait for each other. It looks first, so that a worker's start leaves no error in the server's log.
func (c *Center) insertLockRow(ctx context.Context, taskType string) error {
	return c.db.Retry(ctx, func() (bool, error) {
		var n int
		err := c.db.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`,
			taskType, c.ownSign).Scan(&n)
		if err != nil || n > 0 {
			return true, err
		}
		_, err = c.db.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`, taskType, c.ownSign)
		if c.db.Class(err) == sqldb.Duplicate {
			err = nil
		}
		return true, err // doing it twice is doing it once
	})
}

// millis is a duration that is stored as whole milliseconds.
type millis time.Duration

// Scan implements sql.Scanner.
func (m *millis) Scan(src any) error {
	var n sql.NullInt64
	if err := n.Scan(src); err != nil {
		return err
	}
	*m = millis(time.Duration(n.Int64) * time.Millisecond)
	return nil
}

// insertTaskType needs no right to change the row of another: it looks, and inserts if there is
// none. Another own_sign, which has another lock row, may do the same meanwhile.
func (l *locked) insertTaskType(ctx context.Context, s Settings) error {
	var n int
	if err := l.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_task_type WHERE task_type = ?`, l.taskType).Scan(&n); err != nil || n > 0 {
		return err
	}
	names, args := []string{"task_type"}, []any{l.taskType}
	for _, row := range columns() {
		names, args = append(names, row.Column), append(args, row.argument(s))
	}
	_, err := l.Exec(ctx, `INSERT INTO schedule_task_type (`+strings.Join(names, ", ")+`, gmt_created, gmt_modified)
		VALUES (`+sqldb.Marks(len(args))+`, {now}, {now})`, args...)
	if l.Dialect.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced
	}
	if err != nil {
		return fmt.Errorf("insert the task type: %w", err)
	}
	if len(s.After) == 0 {
		return nil
	}
	return l.defineAfter(ctx, l.taskType, s.After)
}

// insertRoster makes the queues of a roster that has none yet, and its trigger.
func (l *locked) insertRoster(ctx context.Context, s Settings) error {
	if l.queueTotal > 0 {
		return nil
	}
	if err := l.insertQueues(ctx, s.queueRows()); err != nil {
		return err
	}
	return l.defineTrigger(ctx, s)
}

func (l *locked) insertQueues(ctx context.Context, queues []queueRow) error {
	base, err := l.queuesOfBase(ctx)
	if err != nil {
		return err
	}
	if len(base) > 0 {
		queues = base
	}
	if err := l.insertQueueRows(ctx, queues, l.windowsBefore()); err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, len(queues), l.taskType, l.ownSign)
	if err != nil {
		return fmt.Errorf("set the number of queues: %w", err)
	}
	return nil
}

// queueRow is a queue that is not there yet.
type queueRow struct {
	id        string
	index     int
	parameter string
}

// numberedQueues are the queues with the numbers from first on, below total.
func numberedQueues(first, total int) (queues []queueRow) {
	for i := first; i < total; i++ {
		queues = append(queues, queueRow{id: fmt.Sprint(i), index: i})
	}
	return queues
}

// queuesOfBase returns the queues to clone. How far BASE has read its sources is its own affair: cursors are
// not cloned.
func (l *locked) queuesOfBase(ctx context.Context) (queues []queueRow, err error) {
	if l.ownSign == DefaultOwnSign {
		return nil, nil
	}
	base := reader{q: l.Raw, d: l.Dialect, taskType: l.taskType, ownSign: DefaultOwnSign}
	removing, err := base.removing(ctx)
	if err != nil {
		return nil, err
	}
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var q queueRow
		err := rows.Scan(&q.id, &q.index, &q.parameter)
		if !slices.Contains(removing, q.id) {
			queues = append(queues, q)
		}
		return err
	}, `SELECT queue_id, queue_index, queue_parameter FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, l.taskType, DefaultOwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", DefaultOwnSign, err)
	}
	return queues, nil
}

// windowsBefore says of a new queue that it is done in all permit windows that began before now: what they would
// have done is not made up for.
func (l *locked) windowsBefore() any { return l.Dialect.Time(l.now.Add(-time.Microsecond)) }

// insertQueueRows inserts queues that count as done in the permit windows up to windowDone. It starts epochs above every one that was ever used in this roster (H6).
func (l *locked) insertQueueRows(ctx context.Context, queues []queueRow, windowDone any) error {
	for part := range slices.Chunk(queues, eventRows) {
		args := make([]any, 0, 7*len(part))
		for _, q := range part {
			args = append(args, l.taskType, l.ownSign, q.id, q.index, q.parameter, l.epochHigh+1, windowDone)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, {now}, {now}), ", len(part)), ", ")
		_, err := l.Exec(ctx, `INSERT INTO schedule_queue
			(task_type, own_sign, queue_id, queue_index, queue_parameter, epoch, window_done_at, gmt_created, gmt_modified) VALUES `+values, args...)
		if err != nil {
			return fmt.Errorf("insert the queues: %w", err)
		}
	}
	return nil
}

// Settings returns the settings in force: a zero in the row is the default, as it is in code.
// ErrUnknownTask when the task type has no row.
func (c *Center) Settings(ctx context.Context, taskType string) (Settings, error) {
	var s Settings
	var names []string
	var into []any
	for _, row := range columns() {
		names, into = append(names, row.Column), append(into, row.target(&s))
	}
	err := c.db.QueryRow(ctx, `SELECT `+strings.Join(names, ", ")+` FROM schedule_task_type WHERE task_type = ?`, taskType).Scan(into...)
	if sqldb.NoRows(err) {
		return Settings{}, fmt.Errorf("%s: %w", taskType, ErrUnknownTask)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of %s: %w", taskType, err)
	}
	if err := c.readQueueSettings(ctx, taskType, &s); err != nil {
		return Settings{}, fmt.Errorf("read the queues of %s: %w", taskType, err)
	}
	if err := c.readSchedule(ctx, taskType, &s); err != nil {
		return Settings{}, fmt.Errorf("read what begins the runs of %s: %w", taskType, err)
	}
	return s.WithDefaults(), nil
}

// readQueueSettings tells numbered queues, "0" to n-1, from named ones.
func (c *Center) readQueueSettings(ctx context.Context, taskType string, s *Settings) error {
	roster := reader{q: c.db.Store, d: c.db.Dialect, taskType: taskType, ownSign: c.ownSign}
	removing, err := roster.removing(ctx)
	if err != nil {
		return err
	}
	numbered := true
	err = c.db.Each(ctx, func(rows *sql.Rows) error {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		if slices.Contains(removing, id) {
			numbered = false
			return nil
		}
		numbered = numbered && id == fmt.Sprint(len(s.QueueNames))
		s.QueueNames = append(s.QueueNames, id)
		return nil
	}, `SELECT queue_id FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, taskType, c.ownSign)
	if numbered {
		s.Queues, s.QueueNames = len(s.QueueNames), nil
	}
	return err
}
