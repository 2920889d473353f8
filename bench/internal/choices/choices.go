// Package choices measures what docs/choosing.md advises: how many rows a batch has, how many queues there are, and
// which index the select uses.
package choices

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Rows     int // that are marked in a turn of a batch of at least ten rows
	Single   int // in a turn of single rows, which take longer
	Batches  []int
	Queues   []int
	Table    int // rows of the table that a select searches
	Waiting  int // of them are new
	Searches int // selects of a turn
	Rounds   int
}

// `make bench` runs Full, the tests run Short.
var (
	Full = Options{
		Rows: 20_000, Single: 4_000, Batches: []int{1, 10, 100, 500}, Queues: []int{16, 64},
		Table: 500_000, Waiting: 1_000, Searches: 20, Rounds: 3,
	}
	Short = Options{Rows: 200, Single: 50, Batches: []int{1, 10}, Queues: []int{4, 8}, Table: 1_000, Waiting: 10, Searches: 2, Rounds: 1}
)

// Result has the rates of one choice: rows per second, or selects per second.
type Result struct {
	Database string
	Subject  string
	Choice   string
	Rates    []float64 // one for each repetition
}

// choice is one way to configure a worker, or to index a table.
type choice struct {
	subject, name string
	rate          func(context.Context, *stage.Database, Options) (float64, error)
}

// choices returns all choices. The first of each subject is what the others are compared with.
func choices(o Options) (list []choice) {
	for _, batch := range o.Batches {
		list = append(list, choice{"rows of a batch", fmt.Sprint(batch), func(ctx context.Context, db *stage.Database, o Options) (float64, error) {
			n := o.Rows
			if batch == 1 {
				n = o.Single
			}
			return markRate(ctx, db, n, batch, o.Queues[0])
		}})
	}
	for _, queues := range o.Queues {
		list = append(list, choice{"queues of a worker", fmt.Sprint(queues), func(ctx context.Context, db *stage.Database, o Options) (float64, error) {
			return markRate(ctx, db, o.Rows, 100, queues)
		}})
	}
	for _, index := range []string{"none", "(state, id)"} {
		list = append(list, choice{"index of the select", index, func(ctx context.Context, db *stage.Database, o Options) (float64, error) {
			return searchRate(ctx, db, o, index)
		}})
	}
	return list
}

// Run runs the benchmark on the servers. In each repetition all choices take turns.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		found, err := on(ctx, s, o)
		if err != nil {
			return report.Part{}, fmt.Errorf("choices on %s: %w", stage.Name(s.Kind), err)
		}
		results = append(results, found...)
	}
	return condense(results, o), nil
}

func on(ctx context.Context, s *stage.Server, o Options) (results []*Result, err error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	if err := db.Do(ctx, dialects[s.Kind].create); err != nil {
		return nil, err
	}
	list := choices(o)
	for _, c := range list {
		results = append(results, &Result{Database: stage.Name(s.Kind), Subject: c.subject, Choice: c.name})
	}
	for round := range o.Rounds {
		stage.Progress("choices: %s, round %d of %d", stage.Name(s.Kind), round+1, o.Rounds)
		for i, c := range list {
			turn, cancel := context.WithTimeout(ctx, 5*time.Minute)
			rate, err := c.rate(turn, db, o)
			cancel()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", c.subject, c.name, err)
			}
			results[i].Rates = append(results[i].Rates, rate)
		}
	}
	return results, nil
}

// condense returns a table for each database. A ratio is that to the first choice of the same subject.
func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "choices", About: about(o), Data: results}
	var tables []*report.Table
	for _, r := range results {
		i := slices.IndexFunc(tables, func(t *report.Table) bool { return t.Title == r.Database })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &report.Table{Title: r.Database, Columns: []string{"choice", "value", "per second", "of the first"}})
		}
		first := results[slices.IndexFunc(results, func(f *Result) bool { return f.Database == r.Database && f.Subject == r.Subject })]
		var ratios []float64
		for round := range r.Rates {
			ratios = append(ratios, r.Rates[round]/first.Rates[round])
		}
		tables[i].Add(r.Subject, r.Choice, fmt.Sprintf("%.0f ± %.0f %%", report.Median(r.Rates), report.Spread(r.Rates)),
			fmt.Sprintf("%.2f (%.2f to %.2f)", report.Median(ratios), slices.Min(ratios), slices.Max(ratios)))
	}
	for _, t := range tables {
		part.Tables = append(part.Tables, *t)
	}
	return part
}

func about(o Options) string {
	return fmt.Sprintf(`One process with %d threads marks %d rows in fenced transactions (%d with single rows), %d times each; the
choices take turns. The select of the queue is mod(id, queues). Without another choice there are %d queues, and batches of 100.
The selects for the index look for %d new rows among %d.`, threads, o.Rows, o.Single, o.Rounds, o.Queues[0], o.Waiting, o.Table)
}
