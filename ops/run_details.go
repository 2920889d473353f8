package ops

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// RunDetails is a run with its queues, its failed items, its graph and its blocker.
type RunDetails struct {
	Run     runs.Record
	Blocker RunBlocker   // of an open run
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
	if d.Graph.Runs, d.Graph.Deps, err = c.Runs().Graph(ctx, d.Run.ID); err != nil || d.Run.Ended() {
		return d, err
	}
	d.Blocker, err = FindBlocker(ctx, c, d.Run.Run)
	return d, err
}

// RunGraph is a run with all runs that it depends on and that depend on it.
type RunGraph struct {
	Runs []runs.Run
	Deps []runs.Dep
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

// BlockReason is why an open run makes no progress. Its text is for operators and programs.
type BlockReason string

// The reasons, in the order in which FindBlocker checks them.
const (
	NotBlocked           BlockReason = ""
	BlockedByPause       BlockReason = "PAUSE"        // an operator has paused the run
	BlockedByMissingTask BlockReason = "MISSING_TASK" // the task type was deleted
	BlockedByUpstreams   BlockReason = "UPSTREAMS"    // the run is WAITING
	BlockedByNoServer    BlockReason = "NO_SERVER"    // no live server serves the task type
	BlockedByPausedTask  BlockReason = "PAUSED_TASK"  // an operator has paused the task type
	BlockedByTime        BlockReason = "NOT_BEFORE"   // the time has not come before which the run is not opened
	BlockedByRun         BlockReason = "RUN"          // another run of the task type is RUNNING
)

// RunBlocker is what keeps an open run from making progress. The zero value means that nothing does.
type RunBlocker struct {
	Reason BlockReason
	RunID  string    // the other run, if the reason is BlockedByRun
	Until  time.Time // when the run may be opened, if the reason is BlockedByTime
}

// Sentence says for people what keeps a run of the task type from making progress. It is empty if nothing does.
func (b RunBlocker) Sentence(taskType string) string {
	switch b.Reason {
	case BlockedByPause:
		return "an operator has paused it"
	case BlockedByMissingTask:
		return "its task type was deleted"
	case BlockedByUpstreams:
		return "it waits for its upstreams"
	case BlockedByNoServer:
		return "no live server serves " + taskType
	case BlockedByPausedTask:
		return taskType + " is paused"
	case BlockedByTime:
		return "it does not begin before " + b.Until.UTC().Format(time.RFC3339)
	case BlockedByRun:
		return "it waits for the end of run " + b.RunID
	}
	return ""
}

// FindBlocker returns what keeps an open run from making progress.
func FindBlocker(ctx context.Context, c *Client, r runs.Run) (RunBlocker, error) {
	if r.Paused {
		return RunBlocker{Reason: BlockedByPause}, nil
	}
	tasks, err := c.Tasks().List(ctx, r.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return RunBlocker{Reason: BlockedByMissingTask}, nil
	}
	if err != nil {
		return RunBlocker{}, err
	}
	now, err := c.db.Clock(ctx)
	return blockerOf(r, tasks[0], now), err
}

func blockerOf(r runs.Run, t TaskRecord, now time.Time) RunBlocker {
	switch {
	case r.State == runs.Waiting:
		return RunBlocker{Reason: BlockedByUpstreams}
	case !t.Served():
		return RunBlocker{Reason: BlockedByNoServer}
	case t.Paused:
		return RunBlocker{Reason: BlockedByPausedTask}
	case r.State == runs.Ready && r.NotBefore.After(now):
		return RunBlocker{Reason: BlockedByTime, Until: r.NotBefore}
	case r.State == runs.Ready && t.RunID != nil:
		return RunBlocker{Reason: BlockedByRun, RunID: *t.RunID}
	}
	return RunBlocker{}
}
