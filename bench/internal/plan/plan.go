// Package plan measures the planner on rosters that are too large for one machine. It simulates the servers in memory and in
// virtual time, with a scheduler that a seed drives.
package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Queues, Servers int
	Heartbeat       time.Duration
	Seed            uint64
	Sizes           []int // the numbers of servers in the plot of how long a plan takes
	Rosters         int   // that even their loads

	instant bool // plans take no virtual time: a run can be repeated exactly
}

// Full is what `make bench` runs, Short what the tests run.
var (
	Full  = Options{Queues: 100_000, Servers: 10_000, Heartbeat: 2 * time.Second, Seed: 1, Sizes: []int{10, 100, 1_000, 10_000}, Rosters: 20}
	Short = Options{Queues: 100, Servers: 10, Heartbeat: 2 * time.Second, Seed: 1, Sizes: []int{10, 20}, Rosters: 3}
)

// Data are the figures of the part.
type Data struct {
	Changes []Result
	Loads   []LoadResult
}

// Result is one change of the roster.
type Result struct {
	What    string
	Took    time.Duration // in virtual time, until every server has read its queues; after a death, since the server counts as dead
	Moves   int
	Minimum int
	Plans   []time.Duration // how long each plan took, in real time
}

// Run runs the benchmark.
func Run(ctx context.Context, o Options) (report.Part, error) {
	stage.Progress("plan: %d queues, %d workers", o.Queues, o.Servers)
	r := newRoster(o)
	many := o.Servers / 100
	if many == 0 {
		many = 2
	}
	results := []Result{r.joins(1), r.joins(many), r.deaths(many)}
	part := condense(results, o)
	each := o.Queues / o.Servers
	sizes := report.Table{Title: "A plan when a worker joins", Columns: []string{"workers", "queues", "takes"}}
	for _, n := range o.Sizes {
		if err := ctx.Err(); err != nil {
			return report.Part{}, err
		}
		sizes.Add(n, n*each, report.MS(1, report.Median(report.Millis(timePlan(n, each)))))
	}
	part.Tables = append(part.Tables, sizes)
	loads := evenLoads(o.Rosters)
	part.Data = Data{results, loads}
	loadTable(&part, loads)
	return part, nil
}

// joins starts servers one after the other, within 100 ms.
func (r *roster) joins(n int) Result {
	return r.change(fmt.Sprintf("%d workers join", n), func() time.Duration {
		start := r.now
		for range n {
			r.join()
			r.pass(idleInterval / time.Duration(n))
		}
		return start
	})
}

// deaths makes servers chosen by chance fall silent. Its time counts since the last of them counts as dead.
func (r *roster) deaths(n int) Result {
	return r.change(fmt.Sprintf("%d workers die", n), func() (since time.Duration) {
		for _, i := range r.chance.Perm(len(r.watched))[:n] {
			r.die(r.watched[i])
			since = max(since, r.watched[i].heartbeatAt+deadHeartbeats*r.o.Heartbeat)
		}
		return since
	})
}

// change calls do, which returns since when the time counts, and lets time pass until the roster has settled.
func (r *roster) change(what string, do func() time.Duration) Result {
	owned, moves := r.rows.Owned(), r.moves
	r.plans, r.fewest = nil, 0
	since := do()
	r.settle()
	if r.fewest == 0 { // no server died
		r.fewest = r.fewestSince(owned)
	}
	return Result{What: what, Took: r.now - since, Moves: r.moves - moves, Minimum: r.fewest, Plans: r.plans}
}

// timePlan returns how long the plan of a join takes.
func timePlan(servers, each int) time.Duration {
	r := newRoster(Options{Queues: servers * each, Servers: servers, Heartbeat: time.Second, Seed: 1})
	r.register()
	_, took := r.timePlan()
	return took
}

func condense(results []Result, o Options) report.Part {
	part := report.Part{Name: "plan", Data: results, About: fmt.Sprintf(`%d queues and %d workers with heartbeats %s apart, simulated in memory. The planner and the
time that it takes are real. A scheduler with the seed %d decides when a server sends a heartbeat, plans, reads and hands over.`, o.Queues, o.Servers, o.Heartbeat, o.Seed)}
	t := report.Table{Title: "Changes", Columns: []string{"change", "converged after", "in heartbeats", "moves", "fewest possible", "plans", "a plan takes, median", "longest"}}
	for _, r := range results {
		took := report.Millis(r.Plans...)
		beats := float64(r.Took) / float64(o.Heartbeat)
		t.Add(r.What, r.Took.Round(time.Millisecond), fmt.Sprintf("%.2f", beats), r.Moves, r.Minimum, len(took),
			report.MS(1, report.Median(took)), report.MS(1, report.Percentile(took, 100)))
		part.Goals = append(part.Goals,
			report.AtMost(r.What+": heartbeats until converged", "%.1f", 3, beats),
			report.Exactly(r.What+": moves / fewest possible", "%.2f", 1, float64(r.Moves)/float64(r.Minimum)),
			report.Below(r.What+": a plan takes, median", "%.0f ms", 100, report.Median(took)))
	}
	part.Tables = []report.Table{t}
	return part
}
