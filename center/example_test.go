package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"strconv"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/ops"
)

// A dealer writes in a transaction that commits only while its server owns the batch's queue. Here
// another server takes the queue between the first and the second batch.
func ExampleInTx() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 1}); err != nil {
		log.Fatal(err)
	}
	run := func(statement string) {
		if _, err := c.DB().ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}
	run(`UPDATE schedule_queue SET cur_server = 'A', epoch = 7`)

	// The manager makes this context for each Execute; a test may make it too.
	batch := c.Bind(ctx, center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
	write := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(batch, `UPDATE schedule_task_type SET task_parameter = 'written'`)
		return err
	}
	fmt.Println(center.InTx(batch, c.DB(), write))
	run(`UPDATE schedule_queue SET cur_server = 'B', epoch = 8`)
	fmt.Println(center.InTx(batch, c.DB(), write))
	// Output:
	// <nil>
	// fence settle$BASE: queue 0: fenced: the queue has another owner or epoch by now
}

// A program that inserts orders tells the workers of settle, so that they do not wait for their next look. Only
// PostgreSQL passes that on.
func ExampleCenter_Wake() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	id := int64(4711)
	// ... insert the order, and commit
	if err := c.Wake(ctx, "settle", strconv.FormatInt(id, 10)); err != nil { // after the commit
		log.Print(err) // the workers find the order by their next look
	}
	fmt.Println("told, where the database can:", c.Notifies())
	// Output: told, where the database can: false
}
