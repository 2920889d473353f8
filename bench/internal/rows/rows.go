// Package rows compares how fast N rows of a table are marked done by a hand-written loop, Rota, Rota with InTx, Rota
// with order keys, River, and a loop with FOR UPDATE SKIP LOCKED.
package rows

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Rows    int           // without work; see peer.share
	Worked  int           // per worker, with work
	Work    time.Duration // per row, in half of the cases
	Workers []int
	Rounds  int // repetitions; in each, all peers take turns
}

// `make bench` runs Full, the tests run Short.
var (
	Full  = Options{Rows: 60_000, Worked: 400, Work: time.Millisecond, Workers: []int{1, 2, 4, 8}, Rounds: 5}
	Short = Options{Rows: 400, Worked: 20, Work: time.Millisecond, Workers: []int{1, 8}, Rounds: 1}
)

// Result has the rates of one peer in one case.
type Result struct {
	Database string
	Peer     string
	Workers  int
	Work     time.Duration // per row
	Rates    []float64     // rows per second, one for each repetition
}

// peer is a way to mark rows done.
type peer struct {
	name  string
	kinds []string // databases
	share int      // its turn has Rows/share rows: fewer if it is slow or has many turns
	turns int      // per repetition, without work: more if its ratio is near the goal
	table string   // with the index for this peer
	run   func(ctx context.Context, t *task) error
}

// rows returns the number of rows of a turn.
func (p peer) rows(o Options, workers int, work time.Duration) int {
	if work > 0 {
		return o.Worked * workers
	}
	return o.Rows / p.share
}

func peers() []peer {
	both := []string{stage.Postgres, stage.MariaDB}
	return []peer{
		{hand, both, 2, 4, sharded, byHand},
		{rota, both, 2, 4, sharded, byRota(false)},
		{inTx, both, 1, 2, sharded, byRota(true)},
		{tidy, both, 1, 2, sharded, inOrder},
		{skip, both, 2, 1, claimed, bySkipLocked},
		{jobs, []string{stage.Postgres}, 10, 2, sharded, byRiver(riverOfBenchmark)},
		{gentle, []string{stage.Postgres}, 60, 1, sharded, byRiver(riverOfReadme)},
	}
}

// The names of the peers.
const (
	hand = "hand-written loop"
	rota = "Rota"
	inTx = "Rota, InTx"
	tidy = "Rota, InTx, in order"
	skip = "SKIP LOCKED loop"
	jobs = "River"

	gentle = "River, settings of its README"
)

// Run runs the benchmark on the servers. In each repetition of a case all peers take turns, forwards and backwards, so
// that a machine that becomes slower slows all peers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		found, err := on(ctx, s, o)
		if err != nil {
			return report.Part{}, fmt.Errorf("rows on %s: %w", stage.Name(s.Kind), err)
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
	if err := prepare(ctx, db); err != nil {
		return nil, err
	}
	for _, work := range []time.Duration{0, o.Work} {
		for _, workers := range o.Workers {
			stage.Progress("rows: %s, %s of work, %d workers", stage.Name(s.Kind), work, workers)
			found, err := inTurns(ctx, db, o, workers, work)
			if err != nil {
				return nil, err
			}
			results = append(results, found...)
		}
	}
	return results, nil
}

// inTurns runs all peers in one case.
func inTurns(ctx context.Context, db *stage.Database, o Options, workers int, work time.Duration) (results []*Result, err error) {
	chosen := slices.DeleteFunc(peers(), func(p peer) bool { return !slices.Contains(p.kinds, db.Server.Kind) })
	for _, p := range chosen {
		results = append(results, &Result{Database: stage.Name(db.Server.Kind), Peer: p.name, Workers: workers, Work: work})
	}
	for range o.Rounds {
		took := make([]time.Duration, len(chosen)) // by each peer, in all its turns
		turns := make([]int, len(chosen))
		for _, i := range order(chosen, work) {
			p := chosen[i]
			d, err := p.time(ctx, db, p.rows(o, workers, work), workers, work)
			if err != nil {
				return nil, fmt.Errorf("%s with %d workers: %w", p.name, workers, err)
			}
			took[i] += d
			turns[i]++
		}
		for i, p := range chosen {
			results[i].Rates = append(results[i].Rates, float64(turns[i]*p.rows(o, workers, work))/took[i].Seconds())
		}
	}
	return results, nil
}

// order returns the order of the turns in one repetition, as indexes of the peers. With work each peer has one turn,
// because the work decides the rate.
func order(chosen []peer, work time.Duration) (order []int) {
	for turn := 0; ; turn++ {
		var round []int
		for i, p := range chosen {
			if turn == 0 || work == 0 && turn < p.turns {
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

// time lets a peer mark n rows and returns the time from its first select to the last row.
func (p peer) time(ctx context.Context, db *stage.Database, n, workers int, work time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	t := &task{db: db, sql: dialects[db.Server.Kind], table: p.table, n: n, workers: workers, work: work, done: make(chan struct{})}
	if err := t.fill(ctx); err != nil {
		return 0, err
	}
	if err := p.run(ctx, t); err != nil {
		return 0, err
	}
	took := t.ended.Sub(*t.begun.Load())
	left, err := db.Number(ctx, `SELECT COUNT(*) FROM `+p.table+` WHERE state = 0`)
	if err == nil && left != 0 {
		err = fmt.Errorf("%d of %d rows are not marked", left, n)
	}
	return took, err
}

// condense returns the tables and goals for the results.
func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "rows", About: about(o), Data: results}
	b := board(results)
	for _, database := range b.databases() {
		for _, work := range []time.Duration{0, o.Work} {
			part.Tables = append(part.Tables, b.table(database, work, o))
			part.Goals = append(part.Goals, report.AtLeast(fmt.Sprintf("%s, %s of work: Rota / %s, the worst of all worker counts", database, work, hand),
				"%.2f", 0.9, b.worst(database, work, rota, hand, o)))
		}
		part.Goals = append(part.Goals, report.AtLeast(fmt.Sprintf("%s: %s / %s, the worst of all worker counts", database, tidy, inTx),
			"%.2f", 0.9, b.worst(database, 0, tidy, inTx, o)))
		most := slices.Max(o.Workers)
		part.Goals = append(part.Goals,
			report.AtLeast(fmt.Sprintf("%s: Rota / %s, 1 worker", database, skip), "%.2f", 1, b.ratio(database, 0, 1, rota, skip)),
			report.AtLeast(fmt.Sprintf("%s: Rota / %s, %d workers", database, skip, most), "%.2f", 1.4, b.ratio(database, 0, most, rota, skip)))
		if b.find(database, 0, most, jobs) != nil {
			for _, settings := range []string{jobs, gentle} {
				part.Goals = append(part.Goals, report.AtLeast(fmt.Sprintf("%s: Rota / %s, the worst of all worker counts", database, settings),
					"%.1f", 10, b.worst(database, 0, rota, settings, o)))
			}
		}
	}
	return part
}

func about(o Options) string {
	var turns []string
	for _, p := range peers() {
		turns = append(turns, fmt.Sprintf("%s %d x %d", p.name, p.turns, p.rows(o, 1, 0)))
	}
	return fmt.Sprintf(`Each peer marks rows done. Without work a statement marks %d rows, and a repetition has these turns x rows: %s.
River's jobs are inserted beforehand. With work a statement marks %d rows, and each peer marks %d rows per worker. A rate is in
rows per second, the median of %d repetitions in which all peers take turns, forwards and backwards. The spread is the distance
between the smallest and the largest rate in percent of the median. A ratio is the median of the ratios in each repetition.`, page(0), strings.Join(turns, ", "), page(o.Work), o.Worked, o.Rounds)
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
func (b board) find(database string, work time.Duration, workers int, peer string) *Result {
	i := slices.IndexFunc(b, func(r *Result) bool {
		return r.Database == database && r.Work == work && r.Workers == workers && r.Peer == peer
	})
	if i < 0 {
		return nil
	}
	return b[i]
}

// ratio returns how many times as fast as other the peer one is, or NaN if one of them has no result.
func (b board) ratio(database string, work time.Duration, workers int, one, other string) float64 {
	mine, theirs := b.find(database, work, workers, one), b.find(database, work, workers, other)
	if mine == nil || theirs == nil {
		return math.NaN()
	}
	var ratios []float64
	for i := range min(len(mine.Rates), len(theirs.Rates)) {
		ratios = append(ratios, mine.Rates[i]/theirs.Rates[i])
	}
	return report.Median(ratios)
}

func (b board) worst(database string, work time.Duration, one, other string, o Options) float64 {
	worst := math.Inf(1)
	for _, workers := range o.Workers {
		worst = min(worst, b.ratio(database, work, workers, one, other))
	}
	return worst
}

func (b board) table(database string, work time.Duration, o Options) report.Table {
	t := report.Table{Title: fmt.Sprintf("%s, %s of work", database, work), Columns: []string{"peer"}}
	for _, workers := range o.Workers {
		t.Columns = append(t.Columns, strings.TrimSuffix(fmt.Sprintf("%d workers", workers), map[bool]string{true: "s"}[workers == 1]), "of "+hand)
	}
	for _, p := range peers() {
		row := []any{p.name}
		for _, workers := range o.Workers {
			r := b.find(database, work, workers, p.name)
			if r == nil {
				break
			}
			row = append(row, fmt.Sprintf("%.0f ± %.0f %%", report.Median(r.Rates), report.Spread(r.Rates)),
				fmt.Sprintf("%.2f", b.ratio(database, work, workers, p.name, hand)))
		}
		if len(row) > 1 {
			t.Add(row...)
		}
	}
	return t
}
