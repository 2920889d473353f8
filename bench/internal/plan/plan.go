// Package plan steps the planner through rosters that are too large for one machine: in memory, in time that is made
// up, by a scheduler with a seed.
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
	Sizes           []int // servers, with as many queues each, for the plot of how long a plan takes

	instant bool // plans take no made-up time: everything can be repeated exactly
}

// Full is what `make bench` runs, Short what the tests do.
var (
	Full  = Options{Queues: 100_000, Servers: 10_000, Heartbeat: 2 * time.Second, Seed: 1, Sizes: []int{10, 100, 1_000, 10_000}}
	Short = Options{Queues: 100, Servers: 10, Heartbeat: 2 * time.Second, Seed: 1, Sizes: []int{10, 20}}
)

// Result is one change of the roster.
type Result struct {
	What    string
	Took    time.Duration // in made-up time, until all had what they were to have; of a death, since it may be judged
	Moves   int
	Minimum int
	Plans   []time.Duration // how long each planning took, in real time
}

// Run runs the benchmark.
func Run(ctx context.Context, o Options) (report.Part, error) {
	stage.Progress("plan: %d queues, %d servers", o.Queues, o.Servers)
	r := newRoster(o)
	many := o.Servers / 100
	if many == 0 {
		many = 2
	}
	results := []Result{r.joins(1), r.joins(many), r.deaths(many)}
	part := condense(results, o)
	line := report.Line{Name: fmt.Sprintf("%d queues for each server", o.Queues/o.Servers)}
	for _, n := range o.Sizes {
		if err := ctx.Err(); err != nil {
			return report.Part{}, err
		}
		line.Add(float64(n), timePlan(n, o.Queues/o.Servers).Seconds()*1000)
	}
	part.Plots = []report.Plot{{File: "plan.svg", Title: "A plan when a server joins", X: "servers", Y: "milliseconds", LogX: true, LogY: true, Lines: []report.Line{line}}}
	return part, nil
}

// joins starts servers, one after the other within a moment.
func (r *roster) joins(n int) Result {
	return r.change(fmt.Sprintf("%d servers join", n), func() time.Duration {
		start := r.now
		for range n {
			r.join()
			r.pass(idleInterval / time.Duration(n))
		}
		return start
	})
}

// deaths makes servers fall silent, which any may be. It counts from when the last of them may be judged.
func (r *roster) deaths(n int) Result {
	return r.change(fmt.Sprintf("%d servers die", n), func() (since time.Duration) {
		for _, i := range r.chance.Perm(len(r.ring))[:n] {
			r.die(r.ring[i])
			since = max(since, r.ring[i].beaten+deadBeats*r.o.Heartbeat)
		}
		return since
	})
}

// change makes something happen, which returns since when it counts, and lets time pass until it is done with.
func (r *roster) change(what string, do func() time.Duration) Result {
	held, moves := r.held(), r.moves
	r.plans, r.fewest = nil, 0
	since := do()
	r.settle()
	if r.fewest == 0 { // nobody died
		r.fewest = r.fewestSince(held)
	}
	return Result{What: what, Took: r.now - since, Moves: r.moves - moves, Minimum: r.fewest, Plans: r.plans}
}

// held is the number of queues of each server.
func (r *roster) held() map[string]int {
	held := map[string]int{}
	for _, q := range r.queues {
		held[q.Owner]++
	}
	return held
}

// timePlan is how long the plan of a join takes.
func timePlan(servers, each int) time.Duration {
	r := newRoster(Options{Queues: servers * each, Servers: servers, Heartbeat: time.Second, Seed: 1})
	r.register()
	_, took := r.deal()
	return took
}

func condense(results []Result, o Options) report.Part {
	part := report.Part{Name: "plan", Data: results, About: fmt.Sprintf(`%d queues and %d servers with heartbeats %s apart, in memory: only the planner
is real, and the time that it takes; who beats, plans, looks and hands over when, a scheduler with the seed %d decides.`, o.Queues, o.Servers, o.Heartbeat, o.Seed)}
	t := report.Table{Title: "Changes", Columns: []string{"change", "converged after", "in heartbeats", "moves", "fewest possible", "plannings", "a plan takes, median", "longest"}}
	for _, r := range results {
		var took []float64
		for _, d := range r.Plans {
			took = append(took, float64(d)/1e6)
		}
		beats := float64(r.Took) / float64(o.Heartbeat)
		t.Add(r.What, r.Took.Round(time.Millisecond), fmt.Sprintf("%.2f", beats), r.Moves, r.Minimum, len(took),
			fmt.Sprintf("%.1f ms", report.Median(took)), fmt.Sprintf("%.1f ms", report.Percentile(took, 100)))
		part.Goals = append(part.Goals,
			report.AtMost(r.What+": heartbeats until converged", "%.1f", 3, beats),
			report.Exactly(r.What+": moves / fewest possible", "%.2f", 1, float64(r.Moves)/float64(r.Minimum)),
			report.Below(r.What+": a plan takes, median", "%.0f ms", 100, report.Median(took)))
	}
	part.Tables = []report.Table{t}
	return part
}
