package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/dutyrota/rota/center"
)

// B joins while A owns five queues: two are asked of A, which lives, and nothing else moves.
func ExamplePlan() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	queues := []center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "A"}, {ID: "2", Cur: "A"}, {ID: "3", Cur: "A"}, {ID: "4", Cur: "A"}}
	servers := []center.PlanServer{
		{UUID: "A", RegisterTime: start, Eligible: true},
		{UUID: "B", RegisterTime: start.Add(time.Hour), Eligible: true},
	}
	for _, c := range center.Plan(queues, servers, 0) {
		fmt.Printf("queue %s: owner %s, requested by %s\n", c.QueueID, c.Cur, c.Req)
	}
	// Output:
	// queue 1: owner A, requested by B
	// queue 3: owner A, requested by B
}

// A dealer writes in a transaction that commits only while its server owns the batch's queues. Here
// another server takes the queue between the first and the second batch.
func ExampleInTx() {
	ctx := context.Background()
	c, err := center.Open(ctx, "sqlite::memory:", center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Define(ctx, "settle", center.Settings{Queues: 1}); err != nil {
		log.Fatal(err)
	}
	run := func(statement string) {
		if _, err := c.DB().ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}
	run(`UPDATE schedule_queue SET cur_server = 'A', epoch = 7`)

	// The manager makes this context for each Execute; a test may make it too.
	batch := c.Bind(ctx, center.Batch{Server: "A", TaskType: "settle", Queues: []center.Held{{ID: "0", Epoch: 7}}})
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
