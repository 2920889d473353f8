// Package idle measures workers whose queues are empty: what they cost the database, and how long a new row waits.
package idle

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Workers int
	Queues  int           // of each worker
	Rest    time.Duration // without rows
	Rows    int           // that arrive one after another
	Every   time.Duration // between two of them, in the mean
}

// `make bench` runs Full, the tests run Short.
var (
	Full  = Options{Workers: 10, Queues: 100, Rest: 30 * time.Second, Rows: 300, Every: 100 * time.Millisecond}
	Short = Options{Workers: 2, Queues: 4, Rest: 2 * time.Second, Rows: 10, Every: 20 * time.Millisecond}
)

// Result is what one way to notice rows costs, and how fast it is.
type Result struct {
	Database string
	Way      string
	Asked    float64 // statements of the dealers a second, at rest
	Server   float64 // all statements a second, at rest, as the server counts them
	CPU      float64 // of the server, at rest: seconds a second
	Waits    []float64
}

// wait returns a percentile of the time from the commit of a row to its Execute, in milliseconds.
func (r *Result) wait(percent int) float64 { return report.Percentile(r.Waits, percent) }

// way is a way to notice rows.
type way struct {
	name   string
	dealer func(*dealer) serving
	hinted bool // each insert is followed by a hint, and the setting hinted says so
}

var ways = []way{
	{"select per queue", plain, false},
	{"Peek", peeking, false},
	{"Peek, hinted", peeking, true},
}

// Run runs the benchmark on the servers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		for _, w := range ways {
			stage.Progress("idle: %s, %s", stage.Name(s.Kind), w.name)
			r, err := measure(ctx, s, w, o)
			if err != nil {
				return report.Part{}, fmt.Errorf("idle, %s on %s: %w", w.name, stage.Name(s.Kind), err)
			}
			results = append(results, r)
		}
	}
	return condense(results, o), nil
}

// measure measures one way in a database of its own.
func measure(ctx context.Context, s *stage.Server, w way, o Options) (*Result, error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	if err := db.Do(ctx, tables[s.Kind]...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	f, err := start(ctx, db, w, o)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	if err := f.settle(ctx); err != nil {
		return nil, err
	}
	r := &Result{Database: stage.Name(s.Kind), Way: w.name}
	before := f.dealer.asked.Load()
	used, err := db.Measure(ctx, func() error { return sleep(ctx, o.Rest) })
	if err != nil {
		return nil, err
	}
	seconds := used.Took.Seconds()
	r.Asked = float64(f.dealer.asked.Load()-before) / seconds
	r.Server, r.CPU = used.Statements/seconds, used.CPU.Seconds()/seconds
	r.Waits, err = f.insert(ctx, o, w.hinted)
	return r, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "idle", Data: results, About: fmt.Sprintf(`%d workers with %d empty queues each, in one process, at the default settings.
After %s without rows, %d rows arrive one after another, every %s in the mean, each in a random queue. The time of a row is from the
reply to its commit to the beginning of its Execute.`, o.Workers, o.Queues, o.Rest, o.Rows, o.Every)}
	t := report.Table{Columns: []string{
		"database", "way", "statements of the dealers per second", "all statements per second", "server CPU", "row noticed: p50", "p99",
	}}
	for _, r := range results {
		t.Add(r.Database, r.Way, fmt.Sprintf("%.0f", r.Asked), fmt.Sprintf("%.0f", r.Server), fmt.Sprintf("%.1f %%", 100*r.CPU),
			fmt.Sprintf("%.0f ms", r.wait(50)), fmt.Sprintf("%.0f ms", r.wait(99)))
	}
	part.Tables = append(part.Tables, t)
	return part
}
