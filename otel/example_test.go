package rotaotel_test

import (
	"bytes"
	"context"
	"database/sql"
	"log"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	rotaotel "github.com/dutyrota/rota/otel"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// order is a row with the trace context of the request that inserted it.
type order struct {
	ID          int64
	TraceParent string
}

type settle struct{ db *sql.DB }

func (s settle) Select(ctx context.Context, sel processor.Selection) (orders []order, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, trace_parent FROM orders WHERE state = 'NEW' ORDER BY id LIMIT ?`, sel.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.ID, &o.TraceParent); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

func (s settle) Execute(ctx context.Context, orders []order) error {
	return center.InTx(ctx, s.db, func(tx *sql.Tx) error {
		for _, o := range orders {
			if _, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id = ?`, o.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// TraceParent makes settle a processor.Traced.
func (settle) TraceParent(o order) string { return o.TraceParent }

// One request inserts two orders and traces the first. Another request submits a run that settles both. The exporter
// writes JSON, and the example prints a part of it.
func Example() {
	var written bytes.Buffer
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(&written)) // without the option, to the standard output
	if err != nil {
		log.Fatal(err)
	}
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	tracing := rotaotel.New(provider)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{OnRunEnd: func(r runs.Run) {
		tracing.RunEnded(r)
		stop()
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	m, err := manager.New(c, manager.Config{Hooks: []processor.Hooks{tracing.Hooks()}, Observers: []manager.Observer{tracing}},
		manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 1, Mode: center.ModeRun, ExecuteNumber: 100}))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	<-joined(m)

	request, span := provider.Tracer("shop").Start(ctx, "POST /orders")
	if _, err := c.DB().ExecContext(request, `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, trace_parent TEXT)`); err != nil {
		log.Fatal(err)
	}
	if _, err := c.DB().ExecContext(request, `INSERT INTO orders (state, trace_parent) VALUES ('NEW', ?), ('NEW', '')`,
		rotaotel.TraceParent(request)); err != nil {
		log.Fatal(err)
	}
	span.End()
	request, span = provider.Tracer("shop").Start(ctx, "POST /runs")
	if _, _, err := ops.New(c).Runs().Submit(request, "settle", runs.Submission{
		Key: "2026-11-21", TraceParent: rotaotel.TraceParent(request),
	}); err != nil {
		log.Fatal(err)
	}
	span.End()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	printSpans(&written)
	// Output:
	// POST /orders
	// POST /runs
	// rota execute settle, linked to POST /runs, linked to POST /orders, rota.items 2, rota.outcome done
	// rota plan settle, rota.moves 1
	// rota run settle, child of POST /runs, rota.run_state SUCCESS, rota.items 2
	// rota select settle, rota.items 0
	// rota select settle, rota.items 2
}
