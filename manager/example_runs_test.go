package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// reindex is a dealer of a run. An empty select ends the sweep of the queue.
type reindex struct{ db *sql.DB }

// Select returns the next products of one queue.
func (reindex) Select(context.Context, processor.Selection) ([]int64, error) { return nil, nil }

// Execute indexes them.
func (reindex) Execute(context.Context, []int64) error { return nil }

// report is a job without items.
func report(context.Context, processor.Selection) error { return nil }

// A run every night, and another one after it.
func ExampleServe_runs() {
	c, err := center.Open(context.Background(), sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	db := c.DB()
	_, err = manager.New(c, manager.Config{},
		manager.Serve("reindex", reindex{db}, manager.Settings{
			Queues: 64, Mode: center.ModeRun,
			Cron: "0 0 2 * * ?", TimeZone: "Europe/Berlin",
		}),
		manager.Serve("report", processor.Each(report), manager.Settings{
			Queues: 1, Mode: center.ModeRun,
			After: []runs.After{{Upstream: "reindex"}},
		}), // each run of reindex makes a run of report, which waits for it
	)
	fmt.Println(err)
	// Output: <nil>
}
