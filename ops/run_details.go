package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/runs"
)

// RunDetails is a run with its queues, its failed items, its graph and its blocker.
type RunDetails struct {
	Run     runs.Record
	Blocker string       // why it makes no progress, if it is open
	Queues  []runs.Queue // in natural order; none before the run is opened
	Graph   RunGraph

	FailedItems []runs.FailedItem // the first ten
}

// shownItems is the number of failed items in RunDetails.
const shownItems = 10

// ReadRunDetails reads the details of the run with the given name, as Runs.Find takes it. The parts are read one after
// another: a run that ends meanwhile can differ from its queues.
func ReadRunDetails(ctx context.Context, c *Client, name string) (d RunDetails, err error) {
	if d.Run, err = c.Runs().Find(ctx, name); err != nil {
		return d, err
	}
	if d.Queues, err = c.Runs().Queues(ctx, d.Run.ID); err != nil {
		return d, err
	}
	if d.FailedItems, err = c.Runs().FailedItems(ctx, runs.FailedItemFilter{RunID: d.Run.ID}, shownItems); err != nil {
		return d, err
	}
	d.Graph, err = ReadRunGraph(ctx, c, d.Run.ID)
	if errors.Is(err, runs.ErrGraphTooLarge) {
		err = nil // a part of it is enough here
	}
	if err != nil || d.Run.Ended() {
		return d, err
	}
	d.Blocker, err = FindBlocker(ctx, c, d.Run)
	return d, err
}

// RunGraph is a run with all runs that dependencies connect with it (R22).
type RunGraph struct {
	Runs []runs.Run
	Deps []runs.Dep
}

// ReadRunGraph reads the graph of runs with the given ids. It leaves out runs that retention has deleted, and returns
// runs.ErrUnknownRun if none of them is left, and runs.ErrGraphTooLarge with a part of a graph of more than 1,000 runs.
func ReadRunGraph(ctx context.Context, c *Client, runIDs ...string) (g RunGraph, err error) {
	g.Runs, g.Deps, err = c.Runs().Graph(ctx, runIDs...)
	return g, err
}

// Ended reports whether all runs have ended.
func (g RunGraph) Ended() bool {
	return !slices.ContainsFunc(g.Runs, func(r runs.Run) bool { return !r.Ended() })
}

// Failed returns the runs that have ended and not succeeded, each after its upstreams.
func (g RunGraph) Failed() []runs.Run {
	return slices.DeleteFunc(g.Sorted(), func(r runs.Run) bool { return !r.Ended() || r.State == runs.Success })
}

// RunUpstreams holds the rules of the dependencies, by the id of the run and the id of its upstream.
type RunUpstreams map[string]map[string]string

// Upstreams returns the dependencies of the graph by run.
func (g RunGraph) Upstreams() RunUpstreams {
	rules := RunUpstreams{}
	for _, d := range g.Deps {
		if rules[d.Run] == nil {
			rules[d.Run] = map[string]string{}
		}
		rules[d.Run][d.Upstream] = d.Rule
	}
	return rules
}

// Sorted returns the runs, each after its upstreams. Only rows that were edited by hand can contain a cycle: its runs
// keep their order.
func (g RunGraph) Sorted() []runs.Run {
	rules := g.Upstreams()
	return upstreamsFirst(g.Runs, func(r, o runs.Run) bool { return rules[r.ID][o.ID] != "" })
}

// upstreamsFirst sorts a list so that each element comes after the elements that it runs after. It breaks a cycle at
// the first element that is left. Elements that do not depend on each other keep their order as far as possible.
func upstreamsFirst[T any](list []T, runsAfter func(e, other T) bool) (order []T) {
	rest := slices.Clone(list)
	for len(rest) > 0 {
		next := max(0, slices.IndexFunc(rest, func(e T) bool {
			return !slices.ContainsFunc(rest, func(other T) bool { return runsAfter(e, other) })
		}))
		order = append(order, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return order
}

// FindBlocker returns, in words, what keeps an open run from making progress; nothing if it makes progress.
func FindBlocker(ctx context.Context, c *Client, r runs.Record) (string, error) {
	if r.Paused {
		return "an operator has paused it", nil
	}
	tasks, err := c.Tasks().List(ctx, r.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return "its task type was deleted", nil
	}
	if err != nil {
		return "", err
	}
	now, err := c.db.Clock(ctx)
	if err != nil {
		return "", err
	}
	if blocker := blockerOf(r.Run, tasks[0], now); blocker != "" || r.QueuesRunning > 0 {
		return blocker, nil
	}
	servers, err := c.Servers().List(ctx, ServerFilter{TaskType: r.TaskType})
	return lastErrors(servers), err
}

// lastErrors says which errors live servers report, because one of them may be why none of these servers works on a
// run. For example, a server that began before the mode became RUN neither opens runs nor sweeps their queues.
func lastErrors(servers []ServerRecord) string {
	var list []string
	for _, s := range servers {
		if !s.Overdue && s.LastError != "" {
			list = append(list, ServerName(s.UUID)+": "+s.LastError)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "no worker works on it; the last errors are of " + human.First(list, 3)
}

func blockerOf(r runs.Run, t TaskRecord, now time.Time) string {
	switch {
	case r.State == runs.Waiting:
		return "it waits for its upstreams"
	case !t.Served():
		return "no live worker serves " + r.TaskType
	case t.Paused:
		return r.TaskType + " is paused"
	case t.RequestedTotal != nil:
		return fmt.Sprintf("all workers of %s drain, until it has %s", r.TaskType,
			human.Count(int(*t.RequestedTotal), "queue", "queues"))
	case r.State == runs.Ready && r.NotBefore.After(now):
		return "it does not begin before " + r.NotBefore.UTC().Format(time.RFC3339)
	case r.State == runs.Ready && t.RunID != nil:
		return "it waits for the end of run " + *t.RunID
	case r.State == runs.Ready && len(t.Resizing) > 0:
		return fmt.Sprintf("it waits until %s split or merged", human.Count(len(t.Resizing), "queue is", "queues are"))
	}
	return ""
}

// FindBackfill returns the backfill with an id, or the newest one of the task type with that name. It returns
// runs.ErrUnknownBackfill if there is neither.
func FindBackfill(ctx context.Context, c *Client, name string) (runs.BackfillRecord, error) {
	b, err := c.Backfills().Get(ctx, name)
	if !errors.Is(err, runs.ErrUnknownBackfill) || name == "" { // an empty name would stand for all task types
		return b, err
	}
	list, listErr := c.Backfills().List(ctx, runs.BackfillFilter{TaskType: name}, 1)
	if listErr != nil || len(list) == 0 {
		return b, errors.Join(listErr, err)
	}
	return list[0], nil
}
