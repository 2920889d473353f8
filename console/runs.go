package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// runsPage is the page of runs.
type runsPage struct {
	Task, State string
	Name        string // of graphs
	Tasks       []ops.TaskRecord
	Problems    []runs.Problem
	Rows        []runs.Record
	Pages       paging
	Calendar    calendar
	Matrix      matrix // of one task type
}

// Submits reports whether people can submit a run of the task type that the list shows.
func (p runsPage) Submits() bool {
	return slices.ContainsFunc(p.Tasks, func(t ops.TaskRecord) bool {
		return t.TaskType == p.Task && t.Mode == center.ModeRun
	})
}

// progress returns how many of the queues of a run have ended, in percent.
func progress(r runs.Record) float64 {
	ended := r.QueuesDone + r.QueuesFailed + r.QueuesCancelled
	return 100 * float64(ended) / max(1, float64(r.Queues()))
}

// took returns how long a run has lasted in seconds, until its end or its reading; 0 before it is opened.
func took(r runs.Record) float64 {
	switch {
	case r.StartedAt.IsZero():
		return 0
	case r.FinishedAt.IsZero():
		return r.Now.Sub(r.StartedAt).Truncate(time.Second).Seconds()
	}
	return r.FinishedAt.Sub(r.StartedAt).Seconds()
}

// nameOfRun returns what people call a run: its slot if a trigger has made it, and its key otherwise.
func nameOfRun(r runs.Run) string {
	if r.Trigger != "" && !r.ScheduledAt.IsZero() &&
		strings.HasSuffix(r.Key, "/"+r.ScheduledAt.UTC().Format(time.RFC3339Nano)) {
		return r.ScheduledAt.UTC().Format("2 Jan 15:04:05")
	}
	return r.Key
}

// showRuns returns the page of runs.
func showRuns(ctx context.Context, v *viewer, query url.Values) content {
	p := runsPage{
		Task: query.Get("task"), State: strings.ToUpper(query.Get("state")), Name: query.Get("name"),
		Pages: pageOf(query), Tasks: v.tasks(ctx),
	}
	p.Problems = loadRows(ctx, v, "problems", func(r runs.Problem) string { return r.TaskType },
		func(ctx context.Context) ([]runs.Problem, error) { return v.client.Runs().Problems(ctx, "") })
	if p.Task != "" {
		p.Problems = slices.DeleteFunc(slices.Clone(p.Problems), func(r runs.Problem) bool { return r.TaskType != p.Task })
	}
	list := v.runsUpTo(ctx, runs.Filter{TaskType: p.Task, State: p.State, Name: p.Name}, p.Pages.limit())
	p.Calendar = v.calendarOf(ctx, p.Task)
	if p.Task != "" {
		p.Matrix = v.matrixOf(ctx, list)
	}
	p.Rows = cutPage(&p.Pages, list, len(list) == p.Pages.limit())
	return content{"Runs", p, list}
}

// runMark returns the state of a run as a mark.
func runMark(state string, paused bool) mark {
	m := mark{"wait", strings.ToLower(strings.ReplaceAll(state, "_", " "))}
	switch {
	case state == runs.Failed || state == runs.DependentFailed:
		m.Kind = "bad"
	case paused:
		m = mark{"off", "paused"}
	case state == runs.Running:
		m.Kind = "run"
	case state == runs.Success || state == runs.QueueDone:
		m.Kind = "ok"
	case state == runs.Cancelled || state == runs.Skipped:
		m.Kind = "off"
	}
	return m
}

// runPage is the page of a run.
type runPage struct {
	runs.Record
	Blocker string
	Sweeps  []runs.Queue // a page of its queues
	Items   []runs.FailedItem
	Graph   []graphRow
	Picture *runGraph // of Graph
	Verbs   []act     // what can be done to all runs of the graph
	Pages   paging

	Bars      []combBar
	Durations durations
}

// Waits reports whether the run may be made to wait for another one.
func (p runPage) Waits() bool { return p.State == runs.Waiting || p.State == runs.Ready }

// graphRow is a run of the graph of dependencies.
type graphRow struct {
	runs.Run
	Here  bool
	After []string // the ids of its upstreams
}

// showRun returns the page of a run.
func showRun(ctx context.Context, v *viewer, query url.Values) content {
	name := query.Get("run")
	d := load(ctx, v, "run\x00"+name, func(ctx context.Context) (ops.RunDetails, error) {
		return ops.ReadRunDetails(ctx, v.client, name)
	})
	switch {
	case v.Err != nil:
		v.Err = fmt.Errorf("show run %q: %w", name, v.Err)
	case v.knows("run") && !v.Actor.may(Look, d.Run.TaskType):
		v.Err = errNotAllowed
	}
	if v.Err != nil || !v.knows("run") {
		return content{Title: "Run " + name}
	}
	p := runPage{
		Record: d.Run, Blocker: d.Blocker, Items: d.FailedItems, Pages: pageOf(query),
	}
	queues := slices.Clone(d.Queues)
	slices.SortStableFunc(queues, func(a, b runs.Queue) int { return runQueueRank(a) - runQueueRank(b) })
	p.Sweeps = cutPage(&p.Pages, queues, false)
	d.Graph.Runs = visible(v, d.Graph.Runs, func(r runs.Run) string { return r.TaskType })
	upstreams := d.Graph.Upstreams()
	for _, r := range d.Graph.Sorted() {
		row := graphRow{Run: r, Here: r.ID == d.Run.ID}
		for _, other := range d.Graph.Runs {
			if upstreams[r.ID][other.ID] != "" {
				row.After = append(row.After, other.TaskType)
			}
		}
		p.Graph = append(p.Graph, row)
	}
	for _, verb := range verbs.ForGraph(d.Graph) {
		p.Verbs = append(p.Verbs, act{Action: pathOf(verb)[1:], Text: verb.Button() + " the graph"})
	}
	p.Picture = graphOf(d.Graph, d.Run.ID)
	p.history(ctx, v, d)
	return content{d.Run.TaskType + ", run " + nameOfRun(d.Run.Run), p, d.Queues}
}

// runQueueRank orders the queues of a run: trouble first, then those that run.
func runQueueRank(q runs.Queue) int {
	return rank([]mark{runMark(q.State, false)})
}

// States returns the states that the list can be limited to.
func (p runsPage) States() []string {
	return runs.States()
}
