package rows

import (
	"context"
	"database/sql"
	"errors"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func ids(ctx context.Context, q querier, query string, args ...any) (list []int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

func (t *task) mark(ctx context.Context, q querier, list []int64) error {
	query, args := t.sql.settle(t.table, list)
	_, err := q.ExecContext(ctx, query, args...)
	return err
}

// byHand is a loop for rows that no other process works: a goroutine for each worker, with queues of its own.
func byHand(ctx context.Context, t *task) error {
	g, ctx := errgroup.WithContext(ctx)
	for worker := range t.workers {
		g.Go(func() error {
			for queue := worker; queue < queues; queue += t.workers {
				if err := t.drain(ctx, queue); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (t *task) drain(ctx context.Context, queue int) error {
	for {
		t.begin()
		list, err := ids(ctx, t.db, t.sql.next, queue, page(t.work))
		if err != nil || len(list) == 0 {
			return err
		}
		t.labour(len(list))
		if err := t.mark(ctx, t.db, list); err != nil {
			return err
		}
		t.settled(len(list))
	}
}

// bySkipLocked is a loop of workers that share all rows: each claims a page, works it and marks it in one transaction.
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
	list, err := ids(ctx, tx, t.sql.claim, page(t.work))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	t.labour(len(list))
	if err := t.mark(ctx, tx, list); err != nil {
		return 0, err
	}
	return len(list), tx.Commit()
}

// deadlock reports whether MySQL has rolled the transaction back because of a deadlock or a lock time-out.
func deadlock(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205)
}
