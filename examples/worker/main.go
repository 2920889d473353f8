// Command worker settles orders. It is the worker of the README.
//
//	ROTA_DATABASE=postgres://... go run ./examples/worker
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

type settle struct{ db *sql.DB }

// Select returns the next orders of one queue. It claims nothing.
func (s settle) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	return center.Column[int64](ctx, s.db, `SELECT id FROM orders WHERE state = 'NEW' AND `+
		schema.Postgres.Mine("id", 1)+` ORDER BY id LIMIT $3`, sel.Total, sel.Queue.Index, sel.Limit)
}

// Execute settles them. The statement changes nothing if another worker owns the queue by now.
func (s settle) Execute(ctx context.Context, ids []int64) error {
	return center.ExecFenced(ctx, s.db, `UPDATE orders SET state = 'SETTLED' WHERE id = ANY($1)`, pq.Array(ids))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	settings := manager.Settings{Queues: 8, ExecuteNumber: 100}
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", settle{c.DB()}, settings))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil { // until the signal; then it ends what it has begun
		log.Fatal(err)
	}
}
