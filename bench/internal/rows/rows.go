// Package rows compares what it costs to settle the rows of the README's table: by a hand-written loop, Rota with its
// worker, without a fence, with InTx and with order keys, the sql dealer of rota worker, River, and a loop with FOR UPDATE SKIP LOCKED.
package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Rows    int // see peer.share
	Workers []int
	Rounds  int // repetitions; in each, all peers take turns
}

// `make bench` runs Full, the tests run Short.
var (
	Full  = Options{Rows: 60_000, Workers: []int{1, 4}, Rounds: 5}
	Short = Options{Rows: 400, Workers: []int{1, 4}, Rounds: 1}
)

// Result has the figures of one peer in one case, one for each repetition.
type Result struct {
	Database string
	Peer     string
	Workers  int
	Rates    []float64 // rows per second
	Server   []float64 // processor time of the database, in microseconds per row; 0 if unknown
	Client   []float64 // of the peer, likewise
}

// peer is a way to settle rows.
type peer struct {
	name  string
	kinds []string // databases
	share int      // its turn has Rows/share rows: fewer if it is slow or has many turns
	turns int      // per repetition: more if its ratio is near the goal
	table string   // with the index for this peer
	run   func(ctx context.Context, t *task) error
}

func peers() []peer {
	all, one := []string{stage.Postgres, stage.MySQL, stage.MariaDB}, []string{stage.Postgres}
	return []peer{
		{hand, all, 1, 2, divided, byHand},
		{rota, all, 1, 2, divided, byRota(together)},
		{open, all, 1, 2, divided, byRota(unfenced)},
		{inTx, all, 1, 1, divided, byRota(inSeveral)},
		{tidy, all, 1, 1, divided, inOrder},
		{yaml, all, 1, 1, divided, bySQL},
		{skip, all, 1, 1, claimed, bySkipLocked},
		{idle, one, 10, 1, divided, byRiver(riverIdle)},
		{jobs, one, 10, 1, divided, byRiver(riverOfBenchmark)},
		{gentle, one, 60, 1, divided, byRiver(riverOfReadme)},
	}
}

// The names of the peers.
const (
	hand = "hand-written loop"
	rota = "Rota"
	open = "Rota, without a fence"
	inTx = "Rota, InTx"
	tidy = "Rota, in order"
	yaml = "Rota, sql dealer"
	skip = "SKIP LOCKED loop"
	idle = "River, idle jobs"
	jobs = "River"

	gentle = "River, settings of its README"
)

// Run runs the benchmark on the servers, and on a MySQL of its own. In each repetition of a case all peers take turns,
// forwards and backwards, so that a machine that becomes slower slows all peers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (part report.Part, err error) {
	dir, err := os.MkdirTemp("", "rota-bench-")
	if err != nil {
		return part, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := buildProgram(ctx, dir)
	if err != nil {
		return part, err
	}
	mysql, err := stage.Start(ctx, stage.MySQL)
	if err != nil {
		return part, err
	}
	defer func() { err = errors.Join(err, mysql.Close()) }()
	var results []*Result
	for _, s := range append(slices.Clip(servers), mysql) {
		found, err := on(ctx, s, program, o)
		if err != nil {
			return part, fmt.Errorf("rows on %s: %w", stage.Name(s.Kind), err)
		}
		results = append(results, found...)
	}
	return condense(results, o), nil
}

func on(ctx context.Context, s *stage.Server, program string, o Options) (results []*Result, err error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	if err := prepare(ctx, db); err != nil {
		return nil, err
	}
	for _, workers := range o.Workers {
		stage.Progress("rows: %s, %d workers", stage.Name(s.Kind), workers)
		found, err := inTurns(ctx, db, program, o, workers)
		if err != nil {
			return nil, err
		}
		results = append(results, found...)
	}
	return results, nil
}

// inTurns runs all peers in one case.
func inTurns(ctx context.Context, db *stage.Database, program string, o Options, workers int) (results []*Result, err error) {
	chosen := slices.DeleteFunc(peers(), func(p peer) bool { return !slices.Contains(p.kinds, db.Server.Kind) })
	for _, p := range chosen {
		results = append(results, &Result{Database: stage.Name(db.Server.Kind), Peer: p.name, Workers: workers})
	}
	for range o.Rounds {
		sums := make([]cost, len(chosen)) // of each peer, in all its turns
		for _, i := range order(chosen) {
			p := chosen[i]
			c, err := p.turn(ctx, db, program, o.Rows/p.share, workers)
			if err != nil {
				return nil, fmt.Errorf("%s with %d workers: %w", p.name, workers, err)
			}
			sums[i].add(c)
		}
		for i, c := range sums {
			r := results[i]
			r.Rates = append(r.Rates, float64(c.rows)/c.took.Seconds())
			r.Server, r.Client = append(r.Server, c.perRow(c.server)), append(r.Client, c.perRow(c.client))
		}
	}
	return results, nil
}

// order returns the order of the turns in one repetition, as indexes of the peers.
func order(chosen []peer) (order []int) {
	for turn := 0; ; turn++ {
		var round []int
		for i, p := range chosen {
			if turn < p.turns {
				round = append(round, i)
			}
		}
		if len(round) == 0 {
			return order
		}
		if turn%2 == 1 {
			slices.Reverse(round)
		}
		order = append(order, round...)
	}
}

// cost is what some rows have cost.
type cost struct {
	rows           int
	took           time.Duration // from the first select to the last row
	server, client time.Duration // processor time
}

func (c *cost) add(o cost) {
	c.rows, c.took, c.server, c.client = c.rows+o.rows, c.took+o.took, c.server+o.server, c.client+o.client
}

func (c *cost) perRow(d time.Duration) float64 { return float64(d.Microseconds()) / float64(c.rows) }

// turn lets a peer settle n rows.
func (p peer) turn(ctx context.Context, db *stage.Database, program string, n, workers int) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	t := &task{db: db, sql: dialects[db.Server.Kind], program: program, table: p.table, n: n, workers: workers, done: make(chan struct{})}
	if err := t.fill(ctx); err != nil {
		return cost{}, err
	}
	server, client := db.Server.CPU(), ownCPU()
	if err := p.run(ctx, t); err != nil {
		return cost{}, err
	}
	c := cost{rows: n, took: t.ended.Sub(*t.begun.Load()), server: db.Server.CPU() - server, client: ownCPU() - client}
	if t.client > 0 {
		c.client = t.client
	}
	left, err := db.Number(ctx, `SELECT COUNT(*) FROM `+p.table+` WHERE state = 'NEW'`)
	if err == nil && left != 0 && p.name != idle {
		err = fmt.Errorf("%d of %d rows are not settled", left, n)
	}
	return c, err
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// condense returns the tables and goals for the results.
func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "rows", About: about(o), Data: results}
	b := board(results)
	most := slices.Max(o.Workers)
	for _, database := range b.databases() {
		part.Tables = append(part.Tables, b.table(database, o))
		goal := func(least float64, one, other string) {
			part.Goals = append(part.Goals, report.AtLeast(fmt.Sprintf("%s: %s / %s, the worst of all worker counts", database, one, other),
				"%.2f", least, b.worst(database, one, other, o)))
		}
		goal(0.9, open, hand)
		goal(0.9, tidy, rota)
		for _, fenced := range []string{rota, yaml} {
			part.Goals = append(part.Goals, report.AtMost(fmt.Sprintf("%s: processor time of the database, %s / %s, the worst of all worker counts",
				database, fenced, hand), "%.2f", 1.25, b.dearest(database, fenced, hand, o)))
		}
		part.Goals = append(part.Goals, report.AtLeast(fmt.Sprintf("%s: %s / %s, %d workers", database, rota, skip, most),
			"%.2f", 1, b.ratio(database, most, rota, skip)))
	}
	return part
}

func about(o Options) string {
	var turns []string
	for _, p := range peers() {
		turns = append(turns, fmt.Sprintf("%s %d x %d", p.name, p.turns, o.Rows/p.share))
	}
	return fmt.Sprintf(`Each peer settles rows of the README's table, in %d queues, with pages of %d rows and batches of %d. A repetition has
these turns x rows: %s. River's jobs are inserted beforehand. A rate is in rows per second, the processor time of the database
and of the peer in microseconds per row; each is the median of %d repetitions in which all peers take turns, forwards and
backwards. The spread is the distance between the smallest and the largest rate in percent of the median. A ratio is the median
of the ratios in each repetition.`, queues, fetched, batch, strings.Join(turns, ", "), o.Rounds)
}

// board finds results.
type board []*Result

func (b board) databases() (names []string) {
	for _, r := range b {
		if !slices.Contains(names, r.Database) {
			names = append(names, r.Database)
		}
	}
	return names
}

// find returns a result, or nil if there is none.
func (b board) find(database string, workers int, peer string) *Result {
	i := slices.IndexFunc(b, func(r *Result) bool { return r.Database == database && r.Workers == workers && r.Peer == peer })
	if i < 0 {
		return nil
	}
	return b[i]
}

// of returns how many times as large the figure of one peer is as that of another; NaN if one of them has none.
func (b board) of(database string, workers int, one, other string, figure func(*Result) []float64) float64 {
	mine, theirs := b.find(database, workers, one), b.find(database, workers, other)
	if mine == nil || theirs == nil {
		return math.NaN()
	}
	var ratios []float64
	for i, f := range figure(mine) {
		ratios = append(ratios, f/figure(theirs)[i])
	}
	return report.Median(ratios)
}

func (b board) ratio(database string, workers int, one, other string) float64 {
	return b.of(database, workers, one, other, func(r *Result) []float64 { return r.Rates })
}

func (b board) worst(database, one, other string, o Options) float64 {
	worst := math.Inf(1)
	for _, workers := range o.Workers {
		worst = min(worst, b.ratio(database, workers, one, other))
	}
	return worst
}

// dearest returns how many times the processor time of the database one peer costs, with the worst number of workers.
func (b board) dearest(database, one, other string, o Options) (most float64) {
	for _, workers := range o.Workers {
		most = max(most, b.of(database, workers, one, other, func(r *Result) []float64 { return r.Server }))
	}
	return most
}

func (b board) table(database string, o Options) report.Table {
	t := report.Table{Title: database, Columns: []string{"peer"}}
	for _, workers := range o.Workers {
		t.Columns = append(t.Columns, strings.TrimSuffix(fmt.Sprintf("%d workers", workers), map[bool]string{true: "s"}[workers == 1]),
			"of "+hand, "database us/row", "peer us/row")
	}
	for _, p := range peers() {
		row := []any{p.name}
		for _, workers := range o.Workers {
			r := b.find(database, workers, p.name)
			if r == nil {
				break
			}
			row = append(row, fmt.Sprintf("%.0f ± %.0f %%", report.Median(r.Rates), report.Spread(r.Rates)),
				fmt.Sprintf("%.2f", b.ratio(database, workers, p.name, hand)),
				fmt.Sprintf("%.1f", report.Median(r.Server)), fmt.Sprintf("%.1f", report.Median(r.Client)))
		}
		if len(row) > 1 {
			t.Add(row...)
		}
	}
	return t
}
