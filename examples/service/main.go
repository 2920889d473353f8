// Command service is an HTTP service that takes orders, settles them and writes their receipts in the background, and
// exports the receipts of a day when it is told to. It shows Rota in a program that has its own connections, logger,
// metrics, pages and shutdown. Start it as often as you like, each with an ADDRESS of its own.
//
//	DATABASE_URL=postgres://... go run ./examples/service
//	curl -X POST localhost:8080/orders
//	curl -X POST localhost:8080/exports/2026-12-01
//
// bench/riverservice is the same service with River.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

// tables has an index for eight queues.
var tables = `CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'NEW');
	CREATE INDEX IF NOT EXISTS orders_work ON orders (state, (` + schema.Postgres.MineIndex("id", 8) + `), id);
	CREATE TABLE IF NOT EXISTS receipts (order_id bigint PRIMARY KEY, day date DEFAULT now(), exported bool DEFAULT false)`

// orders is a step in the life of an order: a dealer that moves orders from one state to the next.
type orders struct {
	db   *sql.DB
	from string
	do   string // a statement with the ids of the orders
}

// Select returns the next orders of one queue.
func (o orders) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	return center.Column[int64](ctx, o.db, `SELECT id FROM orders WHERE state = $1 AND `+
		schema.Postgres.Mine("id", 2)+` ORDER BY id LIMIT $4`, o.from, s.Total, s.Queue.Index, s.Limit)
}

// Execute does the step in one fenced transaction, so that it takes effect once.
func (o orders) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, o.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, o.do, pq.Array(ids))
		return err
	})
}

func settle(db *sql.DB) orders {
	return orders{db, "NEW", `UPDATE orders SET state = 'SETTLED' WHERE id = ANY($1)`}
}

func receipt(db *sql.DB) orders {
	return orders{db, "SETTLED", `WITH done AS (UPDATE orders SET state = 'DONE' WHERE id = ANY($1) RETURNING id)
		INSERT INTO receipts (order_id) SELECT id FROM done`}
}

// exports is the work of a run, whose key is a day. It executes as orders does, and selects otherwise.
type exports struct{ orders }

func export(db *sql.DB) exports {
	return exports{orders{db: db, do: `UPDATE receipts SET exported = true WHERE order_id = ANY($1)`}}
}

// Select returns the next receipts of the day in one queue. The run ends when no queue has any.
func (e exports) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	return center.Column[int64](ctx, e.db, `SELECT order_id FROM receipts WHERE day = CAST($1 AS date) AND NOT exported AND `+
		schema.Postgres.Mine("order_id", 2)+` ORDER BY order_id LIMIT $4`, s.Queue.Run.Key, s.Total, s.Queue.Index, s.Limit)
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
	db, err := sql.Open("postgres", url) // the service's own pool; the dealers use it, too
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	c, err := center.Open(ctx, postgres.URL(url), center.Options{Logger: log})
	if err != nil {
		return err
	}
	defer c.Close()
	labels := map[string]string{"zone": cmp.Or(os.Getenv("ZONE"), "local")}
	m, mx, err := metrics.NewManager(c, manager.Config{Logger: log, Labels: labels},
		manager.Serve("settle", settle(db), manager.Settings{Queues: 8, ExecuteNumber: 100}),
		manager.Serve("receipt", receipt(db), manager.Settings{Queues: 8, ExecuteNumber: 100}),
		manager.Serve("export", export(db), manager.Settings{Queues: 8, Mode: center.ModeRun}))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(mx)
	pages, err := console.Handler(c, console.Options{}) // people on this host may look
	if err != nil {
		return err
	}

	address, handler := cmp.Or(os.Getenv("ADDRESS"), "localhost:8080"), routes(c, db, m, registry, pages)
	server := &http.Server{Addr: address, Handler: handler, ReadTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.Run(ctx) }) // until the signal; then it drains and hands over
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
		return server.Shutdown(ctx)
	})
	return group.Wait()
}

func routes(c *center.Center, db *sql.DB, m *manager.Manager, g prometheus.Gatherer, pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var id int64
		if err := db.QueryRowContext(r.Context(), `INSERT INTO orders DEFAULT VALUES RETURNING id`).Scan(&id); err != nil {
			http.Error(w, "the order was not taken", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, id)
	})
	mux.HandleFunc("POST /exports/{day}", func(w http.ResponseWriter, r *http.Request) {
		day := r.PathValue("day")
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			http.Error(w, "the day must be like 2026-12-01", http.StatusBadRequest)
			return
		}
		if id, _, err := ops.New(c).Runs().Submit(r.Context(), "export", runs.Submission{Key: day}); err == nil {
			_, _ = fmt.Fprintln(w, id) // the same run for each request of the day
		} else {
			http.Error(w, "the export was not taken", http.StatusInternalServerError)
		}
	})
	mux.Handle("/rota/", http.StripPrefix("/rota", pages))
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := m.Ready(); err != nil {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	return mux
}
