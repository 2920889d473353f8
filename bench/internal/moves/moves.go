// Package moves measures the cost of moving queues. It restarts real worker processes under load, one after the other,
// and then kills some. It also measures the cost of splitting queues under the same load.
package moves

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/manager"
)

// Options are the sizes of the benchmark.
type Options struct {
	Workers   int
	Queues    int
	Item      time.Duration // the time of an item without its UPDATE
	Kills     int
	Calm      time.Duration // how long the workers work undisturbed, before and after
	Heartbeat time.Duration // 0: the default
	Short     time.Duration // the short heartbeat interval with which workers are killed once more
	Witnessed int           // how many workers are killed while the others hold locks in one directory
	Fenced    int           // how many more, whose items are fenced transactions

	witness string // this directory
	fenced  bool
	named   bool // the workers have names and return after a restart
	noHints bool // the workers listen for no hints
	parts   int  // the items are rows of so many parts; 0: each queue always has an item

	splittable bool
}

// `make bench` runs Full, the tests run Short.
var (
	Full  = Options{Workers: 8, Queues: 64, Item: 40 * time.Millisecond, Kills: 2, Calm: 5 * time.Second, Short: 250 * time.Millisecond, Witnessed: 20, Fenced: 10}
	Short = Options{Workers: 2, Queues: 4, Item: 5 * time.Millisecond, Kills: 1, Calm: 200 * time.Millisecond, Heartbeat: 200 * time.Millisecond, Short: 300 * time.Millisecond, Witnessed: 1, Fenced: 1}
)

// settings gives a worker an executor for each queue that it can own.
func (o Options) settings() manager.Settings {
	return manager.Settings{
		Queues: o.Queues, ThreadNumber: o.Queues/max(1, o.Workers-1) + 2, Splittable: o.splittable,
		HeartbeatInterval: o.Heartbeat, JudgeDeadInterval: 5 * o.Heartbeat,
	}
}

// Result has the measurements on one database.
type Result struct {
	Database string
	Planned  []time.Duration // gaps of planned moves
	Polled   []time.Duration // the same without hints; empty if the database has none
	Resumed  []time.Duration // from a kill to the next item of each queue of the killed worker
	Soon     []time.Duration // the same with the short heartbeat interval
	Proved   []time.Duration // the same with the default intervals, and a witness directory
	Fenced   []time.Duration // the same with items in fenced transactions, too
	Named    Named
	Overlaps []string
	Moves    int64 // changes of owner
	Minimum  int64 // the fewest possible changes of owner
	Calm     float64
	Rolling  float64   // items per second
	Worst    float64   // the smallest rate of any second during the restarts
	Rates    []float64 // items per second, one for each bin
	From, To float64   // begin and end of the restarts, in seconds since the beginning of Rates
}

// Named has the measurements of a rolling restart of workers that have names.
type Named struct {
	Away   []time.Duration // from the last item of a queue before the restart of its worker to the first one after it
	Others float64         // items per second of the queues of the other workers during the restarts, relative to the rate before
	Moves  int64           // queues that got a worker of another name
}

// Run runs the benchmark on the servers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		stage.Progress("moves: %s", stage.Name(s.Kind))
		r := &Result{Database: stage.Name(s.Kind)}
		if err := on(ctx, s, o, func(c *fleet) error { return c.play(r) }); err != nil {
			return report.Part{}, fmt.Errorf("moves on %s: %w", r.Database, err)
		}
		if s.Kind == stage.Postgres {
			polling := o
			polling.noHints = true
			if err := on(ctx, s, polling, func(c *fleet) error { return c.playPolls(r) }); err != nil {
				return report.Part{}, fmt.Errorf("moves on %s without hints: %w", r.Database, err)
			}
		}
		short := o
		short.Heartbeat = o.Short
		if err := on(ctx, s, short, func(c *fleet) error { return c.playKills(r, &r.Soon) }); err != nil {
			return report.Part{}, fmt.Errorf("moves on %s with heartbeats %s apart: %w", r.Database, o.Short, err)
		}
		if err := witnessed(o, func(o Options) error {
			err := on(ctx, s, o, func(c *fleet) error { return c.playKills(r, &r.Proved) })
			o.fenced, o.Kills = true, o.Fenced
			return errors.Join(err, on(ctx, s, o, func(c *fleet) error { return c.playKills(r, &r.Fenced) }))
		}); err != nil {
			return report.Part{}, fmt.Errorf("moves on %s with a witness directory: %w", r.Database, err)
		}
		named := o
		named.named = true
		if err := on(ctx, s, named, func(c *fleet) error { return c.playNamed(r) }); err != nil {
			return report.Part{}, fmt.Errorf("moves on %s of workers with names: %w", r.Database, err)
		}
		results = append(results, r)
	}
	return condense(results, o), nil
}

// witnessed calls play with the options for workers that have a witness directory.
func witnessed(o Options, play func(Options) error) error {
	dir, err := os.MkdirTemp("/dev/shm", "rota-bench-witness")
	if err != nil {
		return err
	}
	o.witness, o.Kills = dir, o.Witnessed
	return errors.Join(play(o), os.RemoveAll(dir))
}

// on calls play with the workers of a new database.
func on(ctx context.Context, s *stage.Server, o Options, play func(*fleet) error) error {
	db, err := s.Fresh(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if err := db.Do(ctx, `CREATE TABLE work (queue bigint PRIMARY KEY, items bigint NOT NULL)`); err != nil {
		return err
	}
	for i := range o.Queues {
		if err := db.Do(ctx, fmt.Sprintf(`INSERT INTO work (queue, items) VALUES (%d, 0)`, i)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &fleet{ctx: ctx, db: db, o: o}
	defer c.dismiss()
	return play(c)
}

// begin starts the workers.
func (c *fleet) begin() error {
	for i := range c.o.Workers {
		if _, err := c.startAs(fmt.Sprintf("web-%d", i)); err != nil {
			return err
		}
	}
	return c.settle(c.o.Workers)
}

// playKills kills some workers, and notes in resumed how long their queues waited.
func (c *fleet) playKills(r *Result, resumed *[]time.Duration) error {
	if err := c.begin(); err != nil {
		return err
	}
	from := time.Now()
	if err := c.work(c.o.Calm); err != nil {
		return err
	}
	kills := &Result{Database: r.Database}
	if err := c.killSome(kills); err != nil {
		return err
	}
	end := time.Now()
	if err := c.finish(); err != nil {
		return err
	}
	c.findMoves(kills, from, end)
	*resumed, r.Overlaps = kills.Resumed, append(r.Overlaps, kills.Overlaps...)
	return nil
}

// killSome kills the oldest worker, again and again.
func (c *fleet) killSome(r *Result) error {
	for range c.o.Kills {
		w := c.all[slices.IndexFunc(c.all, (*worker).runs)]
		stage.Progress("moves: %s: kill -9 of worker %d", r.Database, w.cmd.Process.Pid)
		if err := c.replace(r, w, c.kill); err != nil {
			return err
		}
	}
	return c.work(c.o.Calm)
}

// play restarts the workers one after the other and then kills some.
func (c *fleet) play(r *Result) error {
	if err := c.begin(); err != nil {
		return err
	}
	calm := time.Now()
	if err := c.work(c.o.Calm); err != nil {
		return err
	}
	from := time.Now()
	if err := c.restartAll(r); err != nil {
		return err
	}
	to := time.Now()
	if err := c.work(c.o.Calm); err != nil {
		return err
	}
	if err := c.killSome(r); err != nil {
		return err
	}
	end := time.Now()
	if err := c.finish(); err != nil {
		return err
	}
	c.findMoves(r, calm, end)
	c.findRates(r, calm, from, to)
	return nil
}

// restartAll restarts the workers one after the other.
func (c *fleet) restartAll(r *Result) error {
	for _, w := range slices.Clone(c.all) {
		stage.Progress("moves: %s: restart of worker %d", r.Database, w.cmd.Process.Pid)
		if err := c.replace(r, w, c.terminate); err != nil {
			return err
		}
	}
	return c.work(0)
}

// playPolls restarts the workers one after the other, and notes the gaps of the moves in Polled.
func (c *fleet) playPolls(r *Result) error {
	polled := &Result{Database: r.Database}
	if err := c.begin(); err != nil {
		return err
	}
	from := time.Now()
	if err := errors.Join(c.work(c.o.Calm), c.restartAll(polled)); err != nil {
		return err
	}
	end := time.Now()
	if err := c.finish(); err != nil {
		return err
	}
	c.findMoves(polled, from, end)
	r.Moves, r.Minimum = r.Moves+polled.Moves, r.Minimum+polled.Minimum
	r.Polled, r.Overlaps = polled.Planned, append(r.Overlaps, polled.Overlaps...)
	return nil
}

// replace ends a worker, lets the others settle and starts a new worker.
func (c *fleet) replace(r *Result, w *worker, end func(*worker) error) error {
	if err := c.count(r, c.o.Workers-1, func() error { return end(w) }); err != nil {
		return err
	}
	return c.count(r, c.o.Workers, func() error { _, err := c.start(); return err })
}

// count makes a change, waits until this number of workers have settled, and counts the moves.
func (c *fleet) count(r *Result, workers int, change func() error) error {
	held, err := c.held()
	if err != nil {
		return err
	}
	before, err := c.db.Epochs(c.ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(change(), c.settle(workers)); err != nil {
		return err
	}
	after, err := c.db.Epochs(c.ctx)
	if err != nil {
		return err
	}
	now, err := c.held()
	if err != nil {
		return err
	}
	r.Moves, r.Minimum = r.Moves+after-before, r.Minimum+stage.FewestMoves(held, slices.Collect(maps.Keys(now)))
	return nil
}

// finish asks the remaining workers to leave.
func (c *fleet) finish() error {
	var errs []error
	for _, w := range c.all {
		if w.runs() {
			errs = append(errs, c.terminate(w))
		}
	}
	return errors.Join(errs...)
}

// condense returns the tables and goals for the results.
func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "moves", Data: results, About: fmt.Sprintf(`%d worker processes share %d queues; an item is an UPDATE and %s. The workers are
restarted one after the other with SIGTERM; then %d are killed. On PostgreSQL, workers without hints are restarted in the same way. New workers with heartbeats %s apart follow, of which %d are killed, and
workers with the default intervals and a witness directory, of which %d are killed, and %d more whose items are fenced
transactions. At last, workers with names are
restarted one after the other, and get their queues back. A gap is the time in which no worker works a queue that moves.`, o.Workers, o.Queues, o.Item, o.Kills, o.Short, o.Kills, o.Witnessed, o.Fenced)}
	times := report.Table{Title: "Gaps", Columns: []string{
		"database", "planned moves", "p50", "p99", "largest", "after kill -9", "p50", "largest",
		fmt.Sprintf("after kill -9, heartbeats %s apart", o.Short), "p50", "largest", "after kill -9, with a witness directory", "p50", "p99", "largest", "the same, fenced", "p50", "p99", "largest",
	}}
	hints := report.Table{Title: "Gaps of planned moves, with and without hints", Columns: []string{
		"database", "p50 with", "p50 without", "p99 with", "p99 without", "with / without",
	}}
	rates := report.Table{Title: "Rolling restart", Columns: []string{"database", "items/s before", "during", "kept", "worst second", "moves", "fewest possible"}}
	named := report.Table{Title: "Rolling restart of workers with names", Columns: []string{"database", "queues", "nobody works a queue of a worker that is restarted, p50", "largest", "rate of the other queues", "moves"}}
	dead := o.settings().WithDefaults()
	bound := (dead.JudgeDeadInterval + 3*dead.HeartbeatInterval).Seconds()
	soonBound := (8 * o.Short).Seconds()
	for _, r := range results {
		planned, resumed, soon := report.Millis(r.Planned...), report.Millis(r.Resumed...), report.Millis(r.Soon...)
		proved, fenced := report.Millis(r.Proved...), report.Millis(r.Fenced...)
		times.Add(r.Database, len(planned), report.MS(0, report.Median(planned)), report.MS(0, report.Percentile(planned, 99)), report.MS(0, report.Percentile(planned, 100)),
			len(resumed), report.MS(0, report.Median(resumed)), report.MS(0, report.Percentile(resumed, 100)),
			len(soon), report.MS(0, report.Median(soon)), report.MS(0, report.Percentile(soon, 100)),
			len(proved), report.MS(0, report.Median(proved)), report.MS(0, report.Percentile(proved, 99)), report.MS(0, report.Percentile(proved, 100)),
			len(fenced), report.MS(0, report.Median(fenced)), report.MS(0, report.Percentile(fenced, 99)), report.MS(0, report.Percentile(fenced, 100)))
		if len(r.Polled) > 0 {
			polled := report.Millis(r.Polled...)
			with, without := report.Percentile(planned, 99), report.Percentile(polled, 99)
			hints.Add(r.Database, report.MS(0, report.Median(planned)), report.MS(0, report.Median(polled)), report.MS(0, with),
				report.MS(0, without), fmt.Sprintf("%.2f", with/without))
			part.Goals = append(part.Goals, report.AtMost(r.Database+": gap of a planned move with hints, p99", "%.0f ms", 50, with))
		}
		kept := 100 * r.Rolling / r.Calm
		rates.Add(r.Database, fmt.Sprintf("%.0f", r.Calm), fmt.Sprintf("%.0f", r.Rolling), fmt.Sprintf("%.0f %%", kept),
			fmt.Sprintf("%.0f %%", 100*r.Worst/r.Calm), r.Moves, r.Minimum)
		away := report.Millis(r.Named.Away...)
		named.Add(r.Database, len(away), report.MS(0, report.Median(away)), report.MS(0, report.Percentile(away, 100)), fmt.Sprintf("%.0f %%", 100*r.Named.Others), r.Named.Moves)
		part.Goals = append(part.Goals,
			report.Below(r.Database+": gap of a planned move, p99", "%.0f ms", 500, report.Percentile(planned, 99)),
			report.AtLeast(r.Database+": rate kept in a rolling restart", "%.0f %%", 90, kept),
			report.AtMost(r.Database+": from kill -9 to the next item, the slowest queue", "%.1f s", bound, report.Percentile(resumed, 100)/1000),
			report.AtMost(fmt.Sprintf("%s: the same with heartbeats %s apart", r.Database, o.Short), "%.1f s", soonBound, report.Percentile(soon, 100)/1000),
			report.AtMost(r.Database+": the same with a witness directory, p99", "%.0f ms", 500, report.Percentile(proved, 99)),
			report.AtMost(r.Database+": the same with fenced items, p99", "%.0f ms", 500+dead.HeartbeatInterval.Seconds()*1000, report.Percentile(fenced, 99)),
			report.Exactly(r.Database+": moves / fewest possible", "%.2f", 1, float64(r.Moves)/float64(r.Minimum)),
			report.Exactly(r.Database+": moves in a rolling restart of workers with names", "%.0f", 0, float64(r.Named.Moves)),
			report.AtLeast(r.Database+": rate of the queues of the others meanwhile", "%.0f %%", 97, 100*r.Named.Others),
			report.Exactly(r.Database+": items of one queue on two workers at the same time", "%.0f", 0, float64(len(r.Overlaps))))
	}
	part.Tables = []report.Table{times, hints, rates, named}
	part.Plots = []report.Plot{plot(results)}
	return part
}

func plot(results []*Result) report.Plot {
	p := report.Plot{File: "moves.svg", Title: "Rolling restart of all workers, then kill -9", X: "seconds", Y: "items per second"}
	for _, r := range results {
		line := report.Line{Name: fmt.Sprintf("%s (restart from %.0f to %.0f s)", r.Database, r.From, r.To)}
		for i, rate := range r.Rates {
			line.Add(float64(i)*bin.Seconds(), rate)
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
