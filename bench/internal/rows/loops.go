package rows

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (t *task) settle(ctx context.Context, q querier, list []int64) error {
	query, args := t.sql.settle(t.table, list)
	_, err := q.ExecContext(ctx, query, args...)
	return err
}

// byHand is a loop for rows that no other process works: each worker has queues of its own, and takes a page of each in
// turn.
func byHand(ctx context.Context, t *task) error {
	g, ctx := errgroup.WithContext(ctx)
	for worker := range t.workers {
		g.Go(func() error {
			for {
				found := 0
				for queue := worker; queue < queues; queue += t.workers {
					n, err := t.work(ctx, queue)
					if err != nil {
						return err
					}
					found += n
				}
				if found == 0 {
					return nil
				}
			}
		})
	}
	return g.Wait()
}

// work settles a page of a queue, and returns how many rows that had.
func (t *task) work(ctx context.Context, queue int) (int, error) {
	t.begin()
	list, err := center.Column[int64](ctx, t.db.DB, t.sql.next, queues, queue, fetched)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(list, batch) {
		if err := t.settle(ctx, t.db, part); err != nil {
			return 0, err
		}
		t.settled(len(part))
	}
	return len(list), nil
}

// bySkipLocked is a loop of workers that share all rows: each claims a batch and settles it in one transaction.
func bySkipLocked(ctx context.Context, t *task) error {
	g, ctx := errgroup.WithContext(ctx)
	for range t.workers {
		g.Go(func() error {
			for {
				t.begin()
				n, err := t.claim(ctx)
				switch {
				case deadlock(err):
					continue
				case err != nil:
					return err
				case n > 0:
					t.settled(n)
				case t.count.Load() == int64(t.n): // otherwise other workers hold the last rows, and may give them back
					return nil
				}
			}
		})
	}
	return g.Wait()
}

// claim uses READ COMMITTED: REPEATABLE READ would lock the gaps between the rows on MySQL.
func (t *task) claim(ctx context.Context) (int, error) {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after a commit
	list, err := center.Column[int64](ctx, tx, t.sql.claim, batch)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	if err := t.settle(ctx, tx, list); err != nil {
		return 0, err
	}
	return len(list), tx.Commit()
}

// deadlock reports whether MySQL has rolled the transaction back because of a deadlock or a lock time-out.
func deadlock(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205)
}
