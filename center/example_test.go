package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/ops"
)

// A dealer writes in a transaction that commits only while its server owns the batch's queues. Here
// another server takes the queue between the first and the second batch.
func ExampleInTx() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Tasks().Define(ctx, "settle", center.Settings{Queues: 1}); err != nil {
		log.Fatal(err)
	}
	run := func(statement string) {
		if _, err := c.DB().ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}
	run(`UPDATE schedule_queue SET cur_server = 'A', epoch = 7`)

	// The manager makes this context for each Execute; a test may make it too.
	batch := c.Bind(ctx, center.Batch{Server: "A", TaskType: "settle", Queues: []center.QueueEpoch{{ID: "0", Epoch: 7}}})
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

// A report runs after the orders are settled. An operator cancels the run and then lets it go on.
func Example_submit() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	_, err = c.Tasks().Define(ctx, "settle", center.Settings{Mode: center.ModeRun, Queues: 1})
	must(err)
	_, err = c.Tasks().Define(ctx, "report", center.Settings{Mode: center.ModeRun, Queues: 1, After: []center.After{{Upstream: "settle"}}})
	must(err)

	id, _, err := c.Runs().Submit(ctx, "settle", center.Submission{Key: "2026-08-01"})
	must(err)
	show := func() {
		runs, _, err := c.Runs().Graph(ctx, id)
		must(err)
		for _, r := range runs {
			fmt.Println(r.TaskType, r.Key, r.State)
		}
	}
	show()
	do := func(o ops.Operation) {
		change, err := o.Prepare(ctx, c)
		must(err)
		_, err = change.Do(ctx, "anna")
		must(err)
	}
	do(ops.CancelRun{Run: id})
	show()
	do(ops.RerunRun{Run: id})
	show()
	// Output:
	// settle 2026-08-01 READY
	// report 2026-08-01 WAITING
	// settle 2026-08-01 CANCELLED
	// report 2026-08-01 DEPENDENT_FAILED
	// settle 2026-08-01 READY
	// report 2026-08-01 WAITING
}

// Every night at two o'clock in Berlin, and once after some nights that were missed.
func Example_trigger() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Tasks().Define(ctx, "reindex", center.Settings{Mode: center.ModeRun, Queues: 64}); err != nil {
		log.Fatal(err)
	}
	t, err := c.Triggers().Define(ctx, center.Trigger{
		Name: "nightly", Target: "reindex", Kind: center.TriggerCron, Expression: "0 0 2 * * ?", TimeZone: "Europe/Berlin",
		StartAt: time.Date(2099, 7, 1, 0, 0, 0, 0, time.UTC), Misfire: center.MisfireOne, Overlap: center.OverlapSkip,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Status, t.NextFireAt)
	// Output:
	// ACTIVE 2099-07-01 00:00:00 +0000 UTC
}
