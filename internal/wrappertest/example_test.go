package wrappertest

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/ops"
)

// Execute of a dealer over sqlx: it begins, fences first, writes and commits.
func Example_sqlx() {
	c, batch := open()
	defer c.Close()
	db := sqlx.NewDb(c.DB(), "sqlite")

	execute := func(ctx context.Context, ids []int64) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // after a commit it does nothing
		if err := center.Fence(ctx, tx); err != nil {
			return err
		}
		query, args, err := sqlx.In(`UPDATE orders SET state = 'SETTLED' WHERE id IN (?)`, ids)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind(query), args...); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil { // perhaps the reply was lost, and it has happened
			return errors.Join(err, center.UnknownCommit(ctx))
		}
		return nil
	}
	fmt.Println(execute(batch, []int64{1, 2}))
	loseQueue(c)
	fmt.Println(execute(batch, []int64{3}))
	// Output:
	// <nil>
	// fence settle$BASE: queue 0: fenced: the queue has another owner or epoch by now
}

// Execute of a dealer over bun: the first statement of the transaction is the fence.
func Example_bun() {
	c, batch := open()
	defer c.Close()
	db := bun.NewDB(c.DB(), sqlitedialect.New())

	execute := func(ctx context.Context, ids []int64) error {
		err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := center.Fence(ctx, tx); err != nil {
				return err
			}
			_, err := tx.NewUpdate().Table("orders").Set("state = 'SETTLED'").Where("id IN ?", bun.Tuple(ids)).Exec(ctx)
			return err
		})
		if err != nil { // perhaps the reply to its commit was lost, and it has happened
			return errors.Join(err, center.UnknownCommit(ctx))
		}
		return nil
	}
	fmt.Println(execute(batch, []int64{1, 2}))
	loseQueue(c)
	fmt.Println(execute(batch, []int64{3}))
	// Output:
	// <nil>
	// fence settle$BASE: queue 0: fenced: the queue has another owner or epoch by now
}

// open opens a roster with a table of orders, and returns the context that the manager makes for a call of Execute.
func open() (*center.Center, context.Context) {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 1}); err != nil {
		log.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'NEW')`,
		`INSERT INTO orders (id) VALUES (1), (2), (3)`,
		`UPDATE schedule_queue SET cur_server = 'A', epoch = 7`,
	} {
		if _, err := c.DB().ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}
	return c, c.Bind(ctx, center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
}

// loseQueue gives the queue to another server.
func loseQueue(c *center.Center) {
	if _, err := c.DB().Exec(`UPDATE schedule_queue SET cur_server = 'B', epoch = 8`); err != nil {
		log.Fatal(err)
	}
}
