package steady

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// peer is a way to settle rows.
type peer struct {
	name    string
	command func(ctx context.Context, o order) error // of a process; nil: nobody settles the rows
	jobs    bool                                     // a job is inserted with each row; PostgreSQL only
}

const (
	alone = "only the inserts"
	hand  = "hand-written loop"
	rota  = "Rota"
	skip  = "SKIP LOCKED loop"
	jobs  = "River, settings of its README"
)

var peers = []peer{{name: alone}, {hand, byHand, false}, {rota, byRota, false}, {skip, bySkipLocked, false}, {jobs, byRiver, true}}

func (p peer) runsOn(kind string) bool { return !p.jobs || kind == stage.Postgres }

// pause is that of the loops after an empty select, which is the default sleep_time_nodata of Rota.
const pause = 500 * time.Millisecond

// loop calls work again and again until ctx is done, and pauses when it finds no row.
func loop(ctx context.Context, o order, work func(context.Context, *sql.DB, dialect) (int, error)) error {
	c, err := center.Open(ctx, anydb.URL(o.URL), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		n, err := work(ctx, c.DB(), dialects[o.Kind])
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case n > 0:
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// byHand is a loop for queues that belong to one process for good. No other process could take over.
func byHand(ctx context.Context, o order) error {
	return loop(ctx, o, func(ctx context.Context, db *sql.DB, d dialect) (found int, err error) {
		for queue := o.Number; queue < queues; queue += o.Processes {
			list, err := center.Column[int64](ctx, db, d.next(), queues, queue, fetched)
			if err != nil {
				return found, err
			}
			for part := range slices.Chunk(list, batch) {
				query, args := d.settle(part)
				if _, err := db.ExecContext(ctx, query, args...); err != nil {
					return found, err
				}
			}
			found += len(list)
		}
		return found, nil
	})
}

// bySkipLocked claims a batch of any rows and settles it in one transaction.
func bySkipLocked(ctx context.Context, o order) error {
	return loop(ctx, o, func(ctx context.Context, db *sql.DB, d dialect) (int, error) {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return 0, err
		}
		defer tx.Rollback() // does nothing after a commit
		list, err := center.Column[int64](ctx, tx, d.claim(), batch)
		if err == nil && len(list) > 0 {
			query, args := d.settle(list)
			if _, err = tx.ExecContext(ctx, query, args...); err == nil {
				err = tx.Commit()
			}
		}
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && (e.Number == 1213 || e.Number == 1205) {
			return 1, nil // a deadlock: again at once
		}
		return len(list), err
	})
}

// dealer is the TaskDealer of the README.
type dealer struct {
	db  *sql.DB
	sql dialect
}

// Select implements processor.TaskDealer.
func (d dealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	return center.Column[int64](ctx, d.db, d.sql.next(), s.Total, s.Queue.Index, s.Limit)
}

// Execute implements processor.TaskDealer.
func (d dealer) Execute(ctx context.Context, list []int64) error {
	query, args := d.sql.settle(list)
	return center.ExecFenced(ctx, d.db, query, args...)
}

func byRota(ctx context.Context, o order) error {
	c, err := center.Open(ctx, anydb.URL(o.URL), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", dealer{c.DB(), dialects[o.Kind]}, manager.Settings{
		Queues: queues, ThreadNumber: 1, FetchNumber: fetched, ExecuteNumber: batch,
	}))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// rowJob settles one row.
type rowJob struct {
	ID int64 `json:"id"`
}

// Kind implements river.JobArgs.
func (rowJob) Kind() string { return "row" }

// rowWorker executes jobs.
type rowWorker struct {
	river.WorkerDefaults[rowJob]
	pool *pgxpool.Pool
}

// Work implements river.Worker.
func (w *rowWorker) Work(ctx context.Context, job *river.Job[rowJob]) error {
	_, err := w.pool.Exec(ctx, `UPDATE orders SET state = 'SETTLED', settled_at = clock_timestamp() WHERE id = $1 AND (state = 'NEW') IS TRUE`,
		job.Args.ID)
	return err
}

// byRiver runs a client with the settings of River's README.
func byRiver(ctx context.Context, o order) error {
	pool, err := pgxpool.New(ctx, o.URL)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, &rowWorker{pool: pool})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

// insertOnly makes River's tables and a client that inserts jobs.
func insertOnly(ctx context.Context, url string) (*river.Client[pgx.Tx], *pgxpool.Pool, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &rowWorker{pool: pool})
	client, failed := river.NewClient(riverpgxv5.New(pool), &river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler)})
	if err = errors.Join(err, failed); err != nil {
		pool.Close()
		return nil, nil, err
	}
	return client, pool, nil
}
