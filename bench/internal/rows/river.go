package rows

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSettings are the settings of a client.
type riverSettings struct {
	workers        int           // jobs in parallel
	cooldown, poll time.Duration // the shortest and the longest pause between fetches; 0 for River's default
	idle           bool          // its jobs do nothing
}

var (
	// riverOfBenchmark has the settings of River's own benchmark.
	riverOfBenchmark = riverSettings{workers: 2_000, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}
	// riverIdle has them too, and jobs that do nothing.
	riverIdle = riverSettings{workers: 2_000, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond, idle: true}
	// riverOfReadme has the settings of River's README. One fetch per 100 ms keeps the load of the database low.
	riverOfReadme = riverSettings{workers: 100}
)

// riverConns is the number of connections of a client.
const riverConns = 10

// rowJob settles one row, or does nothing.
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
	idle bool // the job does nothing
}

// Work implements river.Worker.
func (w *rowWorker) Work(ctx context.Context, job *river.Job[rowJob]) error {
	w.t.begin()
	if !w.idle {
		_, err := w.pool.Exec(ctx, `UPDATE orders SET state = 'SETTLED', settled_by = 'me' WHERE id = $1 AND (state = 'NEW') IS TRUE`, job.Args.ID)
		if err != nil {
			return err
		}
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

// startRiver starts a client and returns a function that stops it.
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
		_ = client.Stop(context.WithoutCancel(ctx)) // no job is left, or the run has failed
		pool.Close()
	}, nil
}

// newRiver makes a client. Without workers it can only insert.
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
	river.AddWorker(workers, &rowWorker{t: t, pool: pool, idle: settings.idle})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: settings.cooldown, FetchPollInterval: settings.poll, Queues: queues, Workers: workers,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return client, pool, nil
}
