package rows

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSettings are those of a client.
type riverSettings struct {
	workers        int           // jobs that it executes at once
	cooldown, poll time.Duration // the shortest and the longest pause between fetches; 0: River's default
}

var (
	// riverOfBenchmark is what River's own benchmark uses.
	riverOfBenchmark = riverSettings{workers: 2_000, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}
	// riverOfReadme is what River's README shows. It is meant to be gentle to the database: a fetch in 100 ms.
	riverOfReadme = riverSettings{workers: 100}
)

// riverConns is how many connections a client may have.
const riverConns = 10

// rowJob marks one row.
type rowJob struct {
	ID int64 `json:"id"`
}

// Kind implements river.JobArgs.
func (rowJob) Kind() string { return "row" }

// rowWorker executes the jobs of one client.
type rowWorker struct {
	river.WorkerDefaults[rowJob]
	t    *task
	pool *pgxpool.Pool
}

// Work implements river.Worker.
func (w *rowWorker) Work(ctx context.Context, job *river.Job[rowJob]) error {
	w.t.begin()
	w.t.labour(1)
	if _, err := w.pool.Exec(ctx, `UPDATE work_sharded SET state = 1 WHERE state = 0 AND id = $1`, job.Args.ID); err != nil {
		return err
	}
	w.t.settled(1)
	return nil
}

func migrateRiver(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// byRiver inserts a job for each row, then starts as many clients as there are workers.
func byRiver(settings riverSettings) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		if err := insertJobs(ctx, t); err != nil {
			return fmt.Errorf("insert the jobs: %w", err)
		}
		for range t.workers {
			stop, err := startRiver(ctx, t, settings)
			if err != nil {
				return err
			}
			defer stop()
		}
		select {
		case <-t.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func insertJobs(ctx context.Context, t *task) error {
	if err := t.db.Do(ctx, `TRUNCATE river_job`); err != nil {
		return err
	}
	client, pool, err := newRiver(ctx, t, riverSettings{})
	if err != nil {
		return err
	}
	defer pool.Close()
	params := make([]river.InsertManyParams, t.n)
	for i := range params {
		params[i].Args = rowJob{ID: int64(i + 1)}
	}
	if _, err := client.InsertManyFast(ctx, params); err != nil {
		return err
	}
	return t.db.Do(ctx, `VACUUM ANALYZE river_job`)
}

// startRiver starts a client, and returns what stops it.
func startRiver(ctx context.Context, t *task, settings riverSettings) (stop func(), err error) {
	client, pool, err := newRiver(ctx, t, settings)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return func() {
		_ = client.Stop(context.WithoutCancel(ctx)) // nothing is left to be done, or the run has failed anyway
		pool.Close()
	}, nil
}

// newRiver makes a client, which can only insert if it has no workers.
func newRiver(ctx context.Context, t *task, settings riverSettings) (*river.Client[pgx.Tx], *pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(t.db.URL)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = riverConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	var queues map[string]river.QueueConfig
	if settings.workers > 0 {
		queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: settings.workers}}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &rowWorker{t: t, pool: pool})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: settings.cooldown, FetchPollInterval: settings.poll, Queues: queues, Workers: workers,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return client, pool, nil
}
