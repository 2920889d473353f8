package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Fence makes the transaction commit only while the server owns the queues under their epochs (F1). The queues
// must be in the byte order of their ids. It returns ErrFenced if the server has lost one of them.
func (s Server) Fence(ctx context.Context, tx FenceTx, queues []QueueEpoch) error {
	if s.roster.WriteFence {
		return s.FenceByWriting(ctx, tx, queues, ``)
	}
	return s.fenceByReading(ctx, tx, queues)
}

// fenceByReading locks the rows in share mode, so that several batches of one queue run at the same time. A
// transaction that changes the owner waits for them, or skips the row (F3).
func (s Server) fenceByReading(ctx context.Context, tx sqldb.Queryer, queues []QueueEpoch) error {
	limit, limits := idleLimit(s.roster)
	return s.compareOwners(ctx, tx, queues, limit, s.roster.DB.Share, limits)
}

// CheckOwner returns ErrFenced if the server does not own the queues under their epochs at the moment. It locks nothing,
// and reads over the roster's own connections.
func (s Server) CheckOwner(ctx context.Context, queues []QueueEpoch) error {
	return s.compareOwners(ctx, s.roster.DB.Store, queues, ``, ``, nil)
}

// compareOwners returns ErrFenced if the server does not own the queues under their epochs. and is another condition for
// the rows, with its parameters, and lock ends the SELECT.
func (s Server) compareOwners(ctx context.Context, q sqldb.Queryer, queues []QueueEpoch, and, lock string, params []any) error {
	list := make([]string, len(queues))
	for i, q := range queues {
		list[i] = q.ID
	}
	from, args, err := s.roster.DB.SelectQueues(list, s.taskType, s.roster.OwnSign)
	if err != nil {
		return err
	}
	type owner struct {
		server string
		epoch  int64
	}
	owners := make(map[string]owner, len(queues)) // by queue id
	err = s.roster.DB.EachOn(ctx, q, func(rows *sql.Rows) error {
		var id string
		var now owner
		err := rows.Scan(&id, (*sqldb.Text)(&now.server), &now.epoch)
		owners[id] = now
		return err
	}, `SELECT q.queue_id, q.cur_server, q.epoch`+from+and+` ORDER BY q.queue_id`+lock, append(args, params...)...)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if owners[q.ID] != (owner{s.uuid, q.Epoch}) {
			return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
		}
	}
	return nil
}

// FenceByWriting does what Fence does, for databases without share locks across their nodes: it updates each
// row, so that the database detects the conflict. Batches of one queue then run one after the other. Writing the time
// ensures that the row changes. set begins the SET clause; args are its parameters.
func (s Server) FenceByWriting(ctx context.Context, tx Execer, queues []QueueEpoch, set string, args ...any) error {
	limit, limits := idleLimit(s.roster)
	for _, q := range queues {
		args := append(append(slices.Clone(args), s.taskType, s.roster.OwnSign, q.ID, s.uuid, q.Epoch), limits...)
		n, err := sqldb.Affected(tx.ExecContext(ctx, s.roster.DB.SQL(`UPDATE schedule_queue SET `+set+`gmt_modified = {now}
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`+limit), args...))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
		}
	}
	return nil
}

// idleLimit returns a condition of the fencing statement and its parameters. The condition is always true, and it
// limits how long the transaction may be idle (F6). It is empty where nothing has to be limited.
func idleLimit(r *Roster) (condition string, args []any) {
	if r.IdleTxTimeout <= 0 || r.DB.IdleLimit == "" {
		return "", nil
	}
	ms := strconv.FormatInt(max(r.IdleTxTimeout.Milliseconds(), 1), 10) + "ms"
	return r.DB.IdleLimit, slices.Repeat([]any{ms}, strings.Count(r.DB.IdleLimit, "?"))
}
