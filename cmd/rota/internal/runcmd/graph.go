package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// graphDetails shows the graph of a run.
type graphDetails struct {
	ops.RunGraph
	of runs.Record
}

func showGraph(ctx context.Context, c *ops.Client, r runs.Record) (cli.Result, error) {
	g, err := ops.ReadRunGraph(ctx, c, r.ID)
	d := graphDetails{g, r}
	return cli.Result{Records: d, Text: d.text, Final: g.Ended()}, err
}

// MarshalJSON implements json.Marshaler.
func (d graphDetails) MarshalJSON() ([]byte, error) { return graphRecord(d.RunGraph).MarshalJSON() }

// CSVRecords implements csvRecorder.
func (d graphDetails) CSVRecords() any { return d.Runs }

func graphRecord(g ops.RunGraph) records.Object {
	return records.Object{records.M("runs", records.List(g.Runs)), records.M("deps", records.List(g.Deps))}
}

func (d graphDetails) text(sc cli.Screen) string {
	head := "the graph of " + runName(d.of)
	if d.of.Name != "" {
		head += ", " + d.of.Name
	}
	return wrapped(sc, head) + "\n" + wrapped(sc, graphLine(d.RunGraph)) + "\n\n" + runTreeText(sc, d.RunGraph, d.of.ID)
}

// graphLine counts the runs of a graph by state.
func graphLine(g ops.RunGraph) string {
	n := map[string]int{}
	for _, r := range g.Runs {
		n[r.DisplayState()]++
	}
	var parts []string
	for _, state := range append(runs.States(), runs.TriggerPaused) {
		if n[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
		}
	}
	return human.Count(len(g.Runs), "run", "runs") + ": " + strings.Join(parts, ", ")
}

// graphWaiter waits for the end of all runs of a graph.
type graphWaiter struct {
	cli.Wait
	c    *ops.Client
	of   runs.Record
	out  io.Writer
	bar  *cli.Progress
	line string // that was last shown

	// graph has all runs that were seen, also those that retention has deleted meanwhile.
	graph ops.RunGraph
}

// run returns nil when all runs have succeeded, and which have not otherwise.
func (w *graphWaiter) run(ctx context.Context) error {
	w.graph.Runs = []runs.Run{w.of.Run}
	w.bar = cli.NewProgress(w.out)
	w.IsTransient, w.Clear = w.c.IsTransient, w.bar.Clear
	name := "the graph of " + runName(w.of)
	switch err := w.Until(ctx, w.look); {
	case errors.Is(err, cli.ErrInterrupted):
		return fmt.Errorf("wait for %s: %w; its runs continue", name, err)
	case errors.Is(err, cli.ErrTimeout):
		return fmt.Errorf("%s has not ended after %s: %s", name, w.Timeout, graphLine(w.graph))
	case err != nil:
		return fmt.Errorf("wait for %s: %w", name, err)
	}
	failed := w.graph.Failed()
	if len(failed) == 0 {
		_, err := fmt.Fprintln(w.out, escape.Text(name+" has ended: "+graphLine(w.graph)))
		return err
	}
	texts := make([]string, len(failed))
	for i, r := range failed {
		if r.State == runs.DependentFailed {
			r.Message = "" // the run that has failed says more
		}
		texts[i] = endError(r).Error()
	}
	return fmt.Errorf("%s: %d of %s did not succeed: %s", name, len(failed),
		human.Count(len(w.graph.Runs), "run", "runs"), strings.Join(texts, "; "))
}

// look reads the graph from all runs that it has seen on: one that is deleted leaves a gap.
func (w *graphWaiter) look(ctx context.Context) (ended bool, err error) {
	var ids []string
	for _, r := range w.graph.Runs {
		ids = append(ids, r.ID)
	}
	g, err := ops.ReadRunGraph(ctx, w.c, ids...)
	if err != nil && !errors.Is(err, runs.ErrUnknownRun) {
		return false, err
	}
	for _, r := range w.graph.Runs {
		switch {
		case slices.ContainsFunc(g.Runs, func(o runs.Run) bool { return o.ID == r.ID }):
		case !r.Ended():
			return false, fmt.Errorf("run %s (%s) was deleted: %w", r.ID, r.TaskType, runs.ErrUnknownRun)
		default:
			g.Runs = append(g.Runs, r)
		}
	}
	if w.graph = g; g.Ended() {
		return true, nil
	}
	line := graphLine(g)
	if line != w.line {
		w.line = line
		w.bar.Clear()
	}
	open := slices.DeleteFunc(slices.Clone(g.Runs), func(r runs.Run) bool { return r.Ended() })
	w.bar.Show(line, int64(len(g.Runs)-len(open)), int64(len(g.Runs)))
	return false, nil
}

func runName(r runs.Record) string { return fmt.Sprintf("run %s (%s)", r.ID, r.TaskType) }
