package verbs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// A report runs after the orders are settled. An operator cancels the run and then lets it go on.
func Example() {
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
	_, err = c.Tasks().Define(ctx, "settle", center.Settings{Mode: center.ModeRun, Queues: 1})
	must(err)
	_, err = c.Tasks().Define(ctx, "report", center.Settings{Mode: center.ModeRun, Queues: 1, After: []runs.After{{Upstream: "settle"}}})
	must(err)

	id, _, err := c.Runs().Submit(ctx, "settle", runs.Submission{Key: "2026-08-01"})
	must(err)
	show := func() {
		list, _, err := c.Runs().Graph(ctx, id)
		must(err)
		for _, r := range list {
			fmt.Println(r.TaskType, r.Key, r.State)
		}
	}
	show()
	do := func(o verbs.Operation) {
		change, err := o.Prepare(ctx, c)
		must(err)
		_, err = change.Do(ctx, "anna")
		must(err)
	}
	do(verbs.CancelRun{Run: id})
	show()
	do(verbs.RerunRun{Run: id})
	show()
	// Output:
	// settle 2026-08-01 READY
	// report 2026-08-01 WAITING
	// settle 2026-08-01 CANCELLED
	// report 2026-08-01 DEPENDENT_FAILED
	// settle 2026-08-01 READY
	// report 2026-08-01 WAITING
}
