// Command riverservice does with River what examples/service does with orders: it is an HTTP service that takes orders,
// settles them and writes their receipts in the background, with its own pool, logger, metrics and shutdown. It has no
// exports and no pages. A test compares the numbers of lines. Both do the same: an order that was taken is settled and
// gets its receipt once.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"
)

const tables = `CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'NEW');
	CREATE TABLE IF NOT EXISTS receipts (order_id bigint PRIMARY KEY, written_at timestamptz NOT NULL DEFAULT now())`

type settleArgs struct{ ID int64 }

// Kind implements river.JobArgs.
func (settleArgs) Kind() string { return "settle" }

type settle struct {
	river.WorkerDefaults[settleArgs]
	pool *pgxpool.Pool
}

// Work settles an order, inserts the job of its receipt and completes its own job in one transaction.
func (s *settle) Work(ctx context.Context, job *river.Job[settleArgs]) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id = $1`, job.Args.ID); err != nil {
			return err
		}
		if _, err := river.ClientFromContext[pgx.Tx](ctx).InsertTx(ctx, tx, receiptArgs(job.Args), nil); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

type receiptArgs struct{ ID int64 }

// Kind implements river.JobArgs.
func (receiptArgs) Kind() string { return "receipt" }

type receipt struct {
	river.WorkerDefaults[receiptArgs]
	pool *pgxpool.Pool
}

// Work writes a receipt and completes its job in one transaction.
func (r *receipt) Work(ctx context.Context, job *river.Job[receiptArgs]) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `WITH done AS (UPDATE orders SET state = 'DONE' WHERE id = $1 RETURNING id)
			INSERT INTO receipts (order_id) SELECT id FROM done`, job.Args.ID); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(ctx, log, os.Getenv("DATABASE_URL")); err != nil {
		log.Error("service ended", slog.Any("error", err))
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: log})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	jobs := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "job_duration_seconds"}, []string{"kind"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(jobs)
	workers := river.NewWorkers()
	river.AddWorker(workers, &settle{pool: pool})
	river.AddWorker(workers, &receipt{pool: pool})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: log, Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Middleware: []rivertype.Middleware{
			river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
				defer func(began time.Time) { jobs.WithLabelValues(job.Kind).Observe(time.Since(began).Seconds()) }(time.Now())
				return doInner(ctx)
			}),
		},
	})
	if err != nil {
		return err
	}

	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDRESS"), "localhost:8080"), Handler: routes(pool, client, registry), ReadTimeout: 10 * time.Second}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil // so that the group returns how the work has ended
	})
	group.Go(func() error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), client.Stop(ctx))
	})
	return group.Wait()
}

func routes(pool *pgxpool.Pool, client *river.Client[pgx.Tx], registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		ctx, id := r.Context(), int64(0)
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, `INSERT INTO orders DEFAULT VALUES RETURNING id`).Scan(&id); err != nil {
				return err
			}
			_, err := client.InsertTx(ctx, tx, settleArgs{id}, nil)
			return err
		})
		if err != nil {
			http.Error(w, "the order was not taken", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, id)
	})
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := pool.Ping(r.Context()); err != nil {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
