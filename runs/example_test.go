package runs_test

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

// A graph of runs has a name. While a run waits, an operator lets it wait for one more, and later cancels all of them.
func Example_graph() {
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
	define := func(task string, after ...runs.After) {
		_, err := c.Tasks().Define(ctx, task, center.Settings{Mode: center.ModeRun, Queues: 1, After: after})
		must(err)
	}
	define("extract")
	define("rates")
	define("report", runs.After{Upstream: "extract"})

	_, _, err = c.Runs().Submit(ctx, "extract", runs.Submission{Key: "2026-08-01", Name: "month end"}) // makes the run of report, too
	must(err)
	rates, _, err := c.Runs().Submit(ctx, "rates", runs.Submission{Key: "2026-08-01"})
	must(err)
	do := func(o verbs.Operation) {
		change, err := o.Prepare(ctx, c)
		must(err)
		_, err = change.Do(ctx, "anna")
		must(err)
	}
	report, err := c.Runs().Find(ctx, "report")
	must(err)
	do(verbs.DependRun{Run: report.ID, Upstream: rates})
	do(verbs.CancelRun{Run: "month end", Reach: verbs.Reach{Graph: true}})
	list, _, err := c.Runs().Graph(ctx, rates)
	must(err)
	for _, r := range list {
		fmt.Println(r.TaskType, r.State)
	}
	// Output:
	// extract CANCELLED
	// report CANCELLED
	// rates CANCELLED
}
