// Command bench measures Rota next to the alternatives, at scale, and while queues move. It writes one report.
// `make bench` runs it. README.md explains the figures.
//
//	bench [-short] [-out DIR] [all|rows|steady|moves|split|scale|plan|costs|choices|idle]...
//
// It uses the servers of ROTA_TEST_POSTGRES_URL and ROTA_TEST_MARIADB_URL, or starts private servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dutyrota/rota/bench/internal/choices"
	"github.com/dutyrota/rota/bench/internal/costs"
	"github.com/dutyrota/rota/bench/internal/idle"
	"github.com/dutyrota/rota/bench/internal/moves"
	"github.com/dutyrota/rota/bench/internal/plan"
	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/rows"
	"github.com/dutyrota/rota/bench/internal/scale"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/bench/internal/steady"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if moves.IsWorker() {
		exit(moves.Work(ctx))
	}
	if steady.IsWorker() {
		exit(steady.Work(ctx))
	}
	short := flag.Bool("short", false, "run everything once with tiny sizes; the figures mean nothing")
	out := flag.String("out", "results", "`directory` for report.md, report.json, the plot and the profiles")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: rota-bench [-short] [-out DIR] [all|rows|steady|moves|split|scale|plan|costs|choices|idle]...")
		flag.PrintDefaults()
	}
	flag.Parse()
	wanted, err := choose(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "rota-bench:", err)
		os.Exit(2)
	}
	exit(run(ctx, wanted, *short, *out))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rota-bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// part is one of the benchmarks. Each fills a part of the report.
type part struct {
	name string
	run  func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error)
}

var parts = []part{
	{"rows", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return rows.Run(ctx, servers, pick(short, rows.Short, rows.Full))
	}},
	{"steady", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return steady.Run(ctx, servers, pick(short, steady.Short, steady.Full))
	}},
	{"moves", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return moves.Run(ctx, servers, pick(short, moves.Short, moves.Full))
	}},
	{"split", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return moves.RunSplits(ctx, servers, pick(short, moves.ShortSplits, moves.FullSplits))
	}},
	{"scale", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return scale.Run(ctx, servers, pick(short, scale.Short, scale.Full))
	}},
	{"plan", func(ctx context.Context, _ []*stage.Server, short bool) (report.Part, error) {
		return plan.Run(ctx, pick(short, plan.Short, plan.Full))
	}},
	{"costs", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return costs.Run(ctx, servers, pick(short, costs.Short, costs.Full))
	}},
	{"choices", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return choices.Run(ctx, servers, pick(short, choices.Short, choices.Full))
	}},
	{"idle", func(ctx context.Context, servers []*stage.Server, short bool) (report.Part, error) {
		return idle.Run(ctx, servers, pick(short, idle.Short, idle.Full))
	}},
}

func pick[T any](short bool, tiny, full T) T {
	if short {
		return tiny
	}
	return full
}

// choose returns the parts with the names, and all parts if there are no names.
func choose(names []string) ([]part, error) {
	if len(names) == 0 || slices.Contains(names, "all") {
		return parts, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown benchmark %q: want all, rows, steady, moves, split, scale, plan, costs, choices or idle", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// run runs the parts and writes the report. A missed goal is not an error: it depends on the machine.
func run(ctx context.Context, wanted []part, short bool, out string) (err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	servers, err := stage.StartAll(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.CloseAll(servers)) }()
	r := report.Report{Started: time.Now(), Short: short, Machine: report.ThisMachine()}
	for _, s := range servers {
		r.Machine.Databases = append(r.Machine.Databases, s.Version)
	}
	r.Machine.Pace = append(r.Machine.Pace, report.Pace())
	for _, p := range wanted {
		measured, err := p.profiled(ctx, servers, short, out)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.Parts = append(r.Parts, measured)
		r.Machine.Pace = append(r.Machine.Pace, report.Pace())
	}
	r.Took = time.Since(r.Started)
	if err := r.Write(out); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	printGoals(&r, out)
	return nil
}

// profiled runs the part and writes its CPU profile next to the report. The profile helps to explain a missed goal.
func (p part) profiled(ctx context.Context, servers []*stage.Server, short bool, out string) (report.Part, error) {
	f, err := os.Create(filepath.Join(out, p.name+".pprof"))
	if err != nil {
		return report.Part{}, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return report.Part{}, errors.Join(err, f.Close())
	}
	start := time.Now()
	measured, err := p.run(ctx, servers, short)
	stage.Progress("%s took %s", p.name, time.Since(start).Round(time.Second))
	pprof.StopCPUProfile()
	return measured, errors.Join(err, f.Close())
}

func printGoals(r *report.Report, out string) {
	for _, p := range r.Parts {
		for _, g := range p.Goals {
			fmt.Printf("%-12s %s: %s; got %s, want %s\n", strings.ToUpper(g.Outcome), p.Name, g.What, g.Got, g.Want)
		}
	}
	fmt.Printf("goals missed: %d. %s\n", len(r.Missed()), filepath.Join(out, "report.md"))
}
