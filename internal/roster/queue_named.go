package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// NamedQueue is a queue for adding and removing queues.
type NamedQueue struct {
	ID       string
	index    int
	owner    string
	epoch    int64
	Removing bool
}

// ErrNumbered means that the queues of the task type have numbers, not names.
var ErrNumbered = errors.New("the queues have numbers, so that only their number can change")

// NamedQueues returns the queues in the order of their index. It also returns ErrNumbered if they have numbers.
func (l *LockTx) NamedQueues(ctx context.Context) (queues []NamedQueue, err error) {
	numbered := true
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var q NamedQueue
		err := rows.Scan(&q.ID, &q.index, (*sqldb.Text)(&q.owner), &q.epoch)
		q.Removing = slices.Contains(l.removing, q.ID)
		numbered = numbered && q.ID == fmt.Sprint(len(queues))
		queues = append(queues, q)
		return err
	}, `SELECT queue_id, queue_index, cur_server, epoch FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, l.TaskType, l.OwnSign)
	if err == nil && numbered {
		err = ErrNumbered
	}
	return queues, err
}
