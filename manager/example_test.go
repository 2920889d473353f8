package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// settle settles orders. Each order belongs to one queue, by its id: Mine is the condition.
type settle struct{ db *sql.DB }

// Select returns the next orders of one queue.
func (s settle) Select(ctx context.Context, sel processor.Selection) (ids []int64, err error) {
	rows, err := s.db.QueryContext(ctx,
		`SELECT id FROM orders WHERE state = 'NEW' AND `+schema.SQLite.Mine("id", 1)+` ORDER BY id LIMIT ?`,
		sel.Total, sel.Queue.Index, sel.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Execute settles them in one transaction, which commits nothing if another worker owns the queue by now.
func (s settle) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, s.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id IN (`+list(ids)+`)`)
		return err
	})
}

// Peek returns the queues that have orders. It is optional: one statement instead of a select for each idle queue.
func (s settle) Peek(ctx context.Context, idle []processor.Selection) ([]string, error) {
	return center.Column[string](ctx, s.db,
		`SELECT DISTINCT CAST(abs(mod(id, $1)) AS text) FROM orders WHERE state = 'NEW'`, idle[0].Total)
}

// list writes numbers as SQL does: "1, 2, 3".
func list(ids []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
}

// A whole program. Start it as often as you like, on as many hosts as you like: the processes share
// the queues.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	m, err := manager.New(c, manager.Config{},
		manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 8, ExecuteNumber: 100}))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil { // until the signal; then it ends what it has begun
		log.Fatal(err)
	}
}

// The same in a test: a database in memory, and an end.
func ExampleManager_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.DB().ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
		INSERT INTO orders VALUES (1, 'NEW'), (2, 'NEW'), (3, 'NEW')`); err != nil {
		log.Fatal(err)
	}
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 2}))
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	for left := 3; left > 0; {
		if err := c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM orders WHERE state = 'NEW'`).Scan(&left); err != nil {
			log.Fatal(err)
		}
	}
	cancel()
	fmt.Println("all settled, left with", <-done)
	// Output: all settled, left with <nil>
}
