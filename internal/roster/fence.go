package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Execer is a transaction or a pool.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// FenceTx is a transaction that can be fenced.
type FenceTx interface {
	Execer
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// FenceQueues makes the transaction commit only while the server owns the queues under their epochs (F1). The queues
// must be in the byte order of their ids. It returns ErrFenced if the server has lost one of them.
func (r *Roster) FenceQueues(ctx context.Context, tx FenceTx, taskType, server string, queues []QueueEpoch) error {
	if r.WriteFence {
		return r.FenceByWriting(ctx, tx, taskType, server, queues, ``)
	}
	return r.fenceByReading(ctx, tx, taskType, server, queues)
}

// fenceByReading locks the rows in share mode, so that several batches of one queue run at the same time. A
// transaction that changes the owner waits for them, or skips the row (F3).
func (r *Roster) fenceByReading(ctx context.Context, tx FenceTx, taskType, server string, queues []QueueEpoch) error {
	list := make([]string, len(queues))
	for i, q := range queues {
		list[i] = q.ID
	}
	from, args, err := r.DB.SelectQueues(list, taskType, r.OwnSign)
	if err != nil {
		return err
	}
	type owner struct {
		server string
		epoch  int64
	}
	owners := make(map[string]owner, len(queues)) // by queue id
	err = r.DB.EachOn(ctx, tx, func(rows *sql.Rows) error {
		var id string
		var now owner
		err := rows.Scan(&id, (*sqldb.Text)(&now.server), &now.epoch)
		owners[id] = now
		return err
	}, `SELECT q.queue_id, q.cur_server, q.epoch`+from+` ORDER BY q.queue_id`+r.DB.Share, args...)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if owners[q.ID] != (owner{server, q.Epoch}) {
			return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
		}
	}
	return nil
}

// FenceByWriting does what FenceQueues does, for databases without share locks across their nodes: it updates each
// row, so that the database detects the conflict. Batches of one queue then run one after the other. Writing the time
// ensures that the row changes. set begins the SET clause; args are its parameters.
func (r *Roster) FenceByWriting(ctx context.Context, tx Execer, taskType, server string, queues []QueueEpoch, set string, args ...any) error {
	for _, q := range queues {
		args := append(slices.Clone(args), taskType, r.OwnSign, q.ID, server, q.Epoch)
		n, err := sqldb.Affected(tx.ExecContext(ctx, r.DB.SQL(`UPDATE schedule_queue SET `+set+`gmt_modified = {now}
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`), args...))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
		}
	}
	return nil
}
