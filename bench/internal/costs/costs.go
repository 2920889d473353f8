// Package costs counts what single steps of a roster cost: statements, commits, rows and bytes, and how long they hold
// the lock row. docs/scale.md computes large rosters from these figures.
package costs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// Options are the sizes of the benchmark.
type Options struct {
	Sizes []Size
	Beats int           // heartbeats and polls, of which the mean counts
	Rest  time.Duration // of a worker without items; it audits the roster every 30 s
}

// Size is the size of a roster.
type Size struct{ Queues, Servers int }

// Full is what `make bench` runs, Short what the tests run.
var (
	Full  = Options{Sizes: []Size{{100, 10}, {1_000, 100}, {10_000, 1_000}, {100_000, 10_000}}, Beats: 50, Rest: 30 * time.Second}
	Short = Options{Sizes: []Size{{20, 4}}, Beats: 2, Rest: 3 * time.Second}
)

// Cost is what a step costs.
type Cost struct {
	Database string
	Size
	Step       string
	Statements float64 // without BEGIN and COMMIT
	Commits    float64
	Rows       float64 // that the statements return
	Sent       float64 // bytes to the server; SQLite has none
	Received   float64
	Held       time.Duration // the lock row, in the longest transaction of the step; 0: the step does not take it
	Allocated  float64       // bytes, in the process
	Failed     string        // the error, if the step did not succeed
}

// place is where the rosters are made: a server, or the files of SQLite.
type place struct {
	name   string
	server *stage.Server // nil: SQLite
}

// Run runs the benchmark on the servers and on SQLite, and on TiDB if the environment names its server.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	places := []place{{name: "SQLite"}}
	for _, s := range servers {
		places = append(places, place{stage.Name(s.Kind), s})
	}
	if os.Getenv(testdb.Variable(testdb.TiDB)) != "" {
		s, err := stage.Start(ctx, testdb.TiDB)
		if err != nil {
			return report.Part{}, err
		}
		places = append(places, place{"TiDB", s})
	}
	var all []Cost
	for _, p := range places {
		for _, size := range append([]Size{{Queues: workerQueues, Servers: 1}}, o.Sizes...) {
			stage.Progress("costs: %s: %d queues, %d workers", p.name, size.Queues, size.Servers)
			play := (*steps).play
			if size.Servers == 1 {
				play = (*steps).work
			}
			costs, err := p.measure(ctx, size, func(r *steps) error { return play(r, o) })
			if err != nil {
				return report.Part{}, fmt.Errorf("costs of %d queues and %d workers on %s: %w", size.Queues, size.Servers, p.name, err)
			}
			all = append(all, costs...)
		}
	}
	return condense(all), nil
}

// measure plays steps in a roster of its own.
func (p place) measure(ctx context.Context, size Size, play func(*steps) error) (costs []Cost, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &steps{ctx: ctx, size: size}
	url, drop, err := p.create(ctx, &r.counter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	r.c, err = center.Open(ctx, r.in(anydb.URL(url)), center.Options{Schema: center.SchemaCreate, OnLock: r.locked})
	if err != nil {
		return nil, err
	}
	defer r.c.Close()
	if err := play(r); err != nil {
		return nil, err
	}
	for i := range r.costs {
		r.costs[i].Database, r.costs[i].Size = p.name, size
	}
	return r.costs, nil
}

// create creates a database, and returns a URL whose bytes are counted.
func (p place) create(ctx context.Context, n *counter) (url string, drop func(context.Context) error, err error) {
	if p.server == nil {
		dir, err := os.MkdirTemp("", "rota-bench-")
		return "sqlite:" + filepath.Join(dir, "rota.db"), func(context.Context) error { return os.RemoveAll(dir) }, err
	}
	url, drop, err = p.server.Create(ctx)
	if err != nil {
		return "", nil, err
	}
	through, err := n.relay(ctx, url)
	return through, drop, err
}

func condense(costs []Cost) report.Part {
	part := report.Part{Name: "costs", Data: costs, About: `One step at a time in a roster in which nothing else happens. Servers are rows, and one process makes all steps.
Its connections count the statements (without BEGIN and COMMIT) and the rows that they return, and a relay between it and the server
counts the bytes.`}
	var t report.Table
	for i, c := range costs {
		if i == 0 || c.Size != costs[i-1].Size || c.Database != costs[i-1].Database {
			t = report.Table{
				Title:   fmt.Sprintf("%s: %d queues, %d workers", c.Database, c.Queues, c.Servers),
				Columns: []string{"step", "statements", "commits", "rows returned", "bytes sent", "bytes received", "lock row held", "bytes allocated"},
			}
		}
		if c.Failed != "" {
			t.Note += fmt.Sprintf("%s failed: %s. ", c.Step, c.Failed)
		}
		t.Add(c.Step, f1(c.Statements), f1(c.Commits), f1(c.Rows), bytes(c.Sent), bytes(c.Received), c.Held.Round(100*time.Microsecond), bytes(c.Allocated))
		if i+1 == len(costs) || c.Size != costs[i+1].Size || c.Database != costs[i+1].Database {
			part.Tables = append(part.Tables, t)
		}
	}
	return part
}

func f1(f float64) string { return fmt.Sprintf("%.1f", f) }

// bytes returns a text for a number of bytes.
func bytes(n float64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%.0f", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.0f k", n/1000)
	}
	return fmt.Sprintf("%.0f M", n/1_000_000)
}
