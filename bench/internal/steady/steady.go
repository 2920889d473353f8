// Package steady compares workers in several processes while rows arrive at a steady rate, and with a backlog.
package steady

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Processes int
	Rate      int           // rows that arrive a second
	Every     time.Duration // between two transactions that insert rows
	For       time.Duration // how long rows arrive
	Backlog   int           // rows that arrive in one transaction
	Rounds    int           // repetitions; in each, all peers take turns
}

// `make bench` runs Full, the tests run Short.
var (
	Full = Options{
		Processes: 4, Rate: 2_000, Every: 10 * time.Millisecond, For: 15 * time.Second, Backlog: 100_000, Rounds: 3,
	}
	Short = Options{
		Processes: 2, Rate: 200, Every: 20 * time.Millisecond, For: time.Second, Backlog: 500, Rounds: 1,
	}
)

// Result has the figures of one peer on one database, one for each repetition.
type Result struct {
	Database string
	Peer     string
	Server   []float64 // steady: processor time of the database with that of the inserts, in microseconds per row
	Client   []float64 // steady: of the processes, likewise
	Half     []float64 // steady: from the commit of a row to its UPDATE, in milliseconds, the median of the rows
	Most     []float64 // steady: likewise, the 99th percentile
	Rates    []float64 // backlog: rows a second
	Backlog  []float64 // backlog: processor time of the database, in microseconds per row
}

// Run runs the benchmark on the servers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		chosen := slices.DeleteFunc(slices.Clone(peers), func(p peer) bool { return !p.runsOn(s.Kind) })
		first := len(results)
		for _, p := range chosen {
			results = append(results, &Result{Database: stage.Name(s.Kind), Peer: p.name})
		}
		for round := range o.Rounds {
			for i, p := range chosen {
				stage.Progress("steady: %s, %s, round %d", stage.Name(s.Kind), p.name, round+1)
				if err := p.turn(ctx, s, o, results[first+i]); err != nil {
					return report.Part{}, fmt.Errorf("%s on %s: %w", p.name, stage.Name(s.Kind), err)
				}
			}
		}
	}
	return condense(results, o), nil
}

// turn lets a peer settle the rows that arrive, and then a backlog, in a database of its own.
func (p peer) turn(ctx context.Context, s *stage.Server, o Options, r *Result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	t, err := newTable(ctx, s, p)
	if err != nil {
		return err
	}
	defer t.close(ctx)
	f, err := start(ctx, t, p, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if p.command != nil { // the processes have opened their connections, and have their queues
		if err := errors.Join(t.arrive(ctx, o, time.Second), t.settled(ctx), t.analyze(ctx)); err != nil {
			return err
		}
	}
	first, server, client := t.last, s.CPU(), f.cpu()
	if err := t.arrive(ctx, o, o.For); err != nil {
		return err
	}
	if p.command == nil {
		r.Server = append(r.Server, perRow(s.CPU()-server, t.last-first))
		return nil
	}
	if err := t.settled(ctx); err != nil {
		return err
	}
	r.Server = append(r.Server, perRow(s.CPU()-server, t.last-first))
	r.Client = append(r.Client, perRow(f.cpu()-client, t.last-first))
	waits, err := t.waits(ctx, first)
	if err != nil {
		return err
	}
	r.Half, r.Most = append(r.Half, report.Percentile(waits, 50)), append(r.Most, report.Percentile(waits, 99))
	if err := t.pile(ctx, o.Backlog); err != nil {
		return err
	}
	server = s.CPU()
	if err := t.settled(ctx); err != nil {
		return err
	}
	took, err := t.took(ctx, o.Backlog)
	r.Rates = append(r.Rates, float64(o.Backlog)/took.Seconds())
	r.Backlog = append(r.Backlog, perRow(s.CPU()-server, int64(o.Backlog)))
	return err
}

func perRow(d time.Duration, rows int64) float64 { return float64(d.Microseconds()) / float64(rows) }

func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "steady", Data: results, About: fmt.Sprintf(`%d processes with one executor each settle rows of the README's
table, in %d queues, with pages of %d rows and batches of %d, at the default settings. First %d rows arrive a second for %s, in a
transaction every %s; then %d rows arrive at once. The statistics of
the table are made while no row waits, as most of the time. The times of a row are the database's own: from the begin of the transaction that
inserts it to the UPDATE that settles it. The processor time of the database in the steady state includes the inserts, which cost as
much as the first line says; of the backlog it does not. Each figure is the median of %d repetitions, in which all peers take turns.`,
		o.Processes, queues, fetched, batch, o.Rate, o.For, o.Every, o.Backlog, o.Rounds)}
	t := report.Table{Columns: []string{
		"database", "peer", "steady: database us/row", "processes us/row", "row settled after: p50", "p99",
		"backlog: rows/s", "database us/row",
	}}
	of := func(format string, list []float64) string {
		if len(list) == 0 {
			return "-"
		}
		return fmt.Sprintf(format, report.Median(list))
	}
	for _, r := range results {
		t.Add(r.Database, r.Peer, of("%.1f", r.Server), of("%.1f", r.Client), of("%.0f ms", r.Half), of("%.0f ms", r.Most),
			of("%.0f", r.Rates), of("%.1f", r.Backlog))
	}
	part.Tables = append(part.Tables, t)
	for _, r := range results {
		if r.Peer != rota {
			continue
		}
		byHand := find(results, r.Database, hand)
		part.Goals = append(part.Goals,
			report.AtMost(fmt.Sprintf("%s: processor time of the database for a backlog, %s / %s", r.Database, rota, hand),
				"%.2f", 1.25, ratio(r.Backlog, byHand.Backlog)))
	}
	return part
}

func find(results []*Result, database, peer string) *Result {
	for _, r := range results {
		if r.Database == database && r.Peer == peer {
			return r
		}
	}
	return &Result{}
}

// ratio returns the median of the ratios in each repetition, or NaN without one.
func ratio(one, other []float64) float64 {
	var list []float64
	for i := range min(len(one), len(other)) {
		list = append(list, one[i]/other[i])
	}
	if len(list) == 0 {
		return math.NaN()
	}
	return report.Median(list)
}
