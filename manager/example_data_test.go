package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// orders is a dealer whose items are in several data databases.
type orders struct {
	c    *center.Center
	left atomic.Int64
	stop context.CancelFunc // called when nothing is left
}

func (o *orders) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	return center.Column[int64](ctx, o.c.Data(s.Queue.Database).DB(),
		`SELECT id FROM orders WHERE state = 'NEW' ORDER BY id LIMIT ?`, s.Limit)
}

func (o *orders) Execute(ctx context.Context, ids []int64) error {
	err := center.DataOf(ctx).InTx(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'DONE' WHERE id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && o.left.Add(-int64(len(ids))) == 0 {
		o.stop()
	}
	return err
}

// A task type has its items in four databases, apart from the roster. Each queue has one of them.
func ExampleServe_dataDatabases() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"shard0", "shard1", "shard2", "shard3"} {
		d, err := c.FenceIn(name, sqlite.URL("sqlite::memory:"))
		if err != nil {
			log.Fatal(err)
		}
		fill(ctx, d.DB())
	}
	dealer := &orders{c: c, stop: stop}
	dealer.left.Store(4 * 25)
	m, err := manager.New(c, manager.Config{}, manager.Serve("orders", dealer, manager.Settings{
		Queues: 4, Database: "shard{{queue}}", ExecuteNumber: 5,
	}))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("orders left:", dealer.left.Load())
	// Output: orders left: 0
}

// fill makes 25 orders.
func fill(ctx context.Context, db *sql.DB) {
	const rows = `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
		INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25) SELECT i, 'NEW' FROM n`
	if _, err := db.ExecContext(ctx, rows); err != nil {
		log.Fatal(err)
	}
}
