package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// NamedQueue is a queue for adding and removing queues.
type NamedQueue struct {
	ID       string
	Index    int
	Owner    string
	Epoch    int64
	Removing bool `db:"-"`
}

// ErrNumbered means that the queues of the task type have numbers, not names.
var ErrNumbered = errors.New("the queues have numbers, so that only their number can change")

// NamedQueues returns the queues in the order of their index. It also returns ErrNumbered if they have numbers.
func (l *LockTx) NamedQueues(ctx context.Context) (queues []NamedQueue, err error) {
	queues, err = sqldb.Records[NamedQueue](ctx, l, `SELECT queue_id, queue_index, cur_server, epoch FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, l.TaskType, l.OwnSign)
	numbered := true
	for i := range queues {
		q := &queues[i]
		q.Removing = slices.Contains(l.removing, q.ID)
		numbered = numbered && q.ID == fmt.Sprint(i)
	}
	if err == nil && numbered {
		err = ErrNumbered
	}
	return queues, err
}
