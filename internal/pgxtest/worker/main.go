// Command worker is the worker of the README over pgx. docs/worker.md has its size.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

type settle struct{ db *sql.DB }

func (s settle) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	const next = `SELECT id FROM orders WHERE state = 'NEW' AND COALESCE(abs(mod(id, $1)), 0) = $2 ORDER BY id LIMIT $3`
	return center.Column[int64](ctx, s.db, next, sel.Total, sel.Queue.Index, sel.Limit)
}

// Execute passes the slice as it is: pgx makes an array of it.
func (s settle) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, s.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id = ANY($1)`, ids)
		return err
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := pgx.ParseConfig(os.Getenv("ROTA_DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := center.Open(ctx, postgres.Connector(stdlib.GetConnector(*cfg)), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	settings := manager.Settings{Queues: 8, ExecuteNumber: 100}
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", settle{c.DB()}, settings))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
