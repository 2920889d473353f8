package ops_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// A file and the run that imports it are there together, or not at all.
func Example_submitTx() {
	ctx := context.Background()
	roster, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close()
	c := ops.New(roster)
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	_, err = c.Tasks().Define(ctx, "import", center.Settings{Mode: center.ModeRun, Queues: 1})
	must(err)
	_, err = roster.DB().ExecContext(ctx, `CREATE TABLE files (name TEXT)`)
	must(err)

	upload := func(name string, end func(*sql.Tx) error) {
		tx, err := roster.DB().BeginTx(ctx, nil)
		must(err)
		_, err = tx.ExecContext(ctx, `INSERT INTO files (name) VALUES (?)`, name)
		must(err)
		_, existed, err := c.Runs().SubmitTx(ctx, tx, "import", runs.Submission{Key: name})
		must(err)
		fmt.Println(name, existed)
		must(end(tx))
	}
	upload("orders.csv", (*sql.Tx).Rollback)
	upload("orders.csv", (*sql.Tx).Commit)
	upload("orders.csv", (*sql.Tx).Commit)

	_, err = roster.Engine().Scheduler.Tick(ctx, "import") // the workers do this
	must(err)
	list, err := c.Runs().List(ctx, runs.Filter{TaskType: "import"}, 10)
	must(err)
	for _, r := range list {
		fmt.Println(r.Key, r.State)
	}
	// Output:
	// orders.csv false
	// orders.csv false
	// orders.csv true
	// orders.csv RUNNING
}

// Every night at two o'clock in Berlin, and once after some nights that were missed.
func Example_trigger() {
	ctx := context.Background()
	roster, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close()
	c := ops.New(roster)
	if _, err := c.Tasks().Define(ctx, "reindex", center.Settings{Mode: center.ModeRun, Queues: 64}); err != nil {
		log.Fatal(err)
	}
	t, err := c.Triggers().Define(ctx, runs.Trigger{
		Name: "nightly", Target: "reindex", Kind: runs.TriggerCron, Expression: "0 0 2 * * ?", TimeZone: "Europe/Berlin",
		StartAt: time.Date(2099, 7, 1, 0, 0, 0, 0, time.UTC), Misfire: runs.MisfireOne, Overlap: runs.OverlapSkip,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Status, t.NextFireAt)
	// Output:
	// ACTIVE 2099-07-01 00:00:00 +0000 UTC
}
