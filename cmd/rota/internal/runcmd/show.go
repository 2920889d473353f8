package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// RunItemRow is an item that failed in a run.
func RunItemRow(i runs.FailedItem) cli.Row {
	return cli.Row{
		cli.Text("QUEUE", i.QueueID),
		cli.Text("ITEM", cli.OneLine(i.Key)),
		cli.Figure("ATTEMPT", i.Attempt),
		cli.Time("FAILED", i.FailedAt).Drop(1),
		cli.Long("LAST ERROR", i.LastError),
	}
}

func newRunShowCommand() *cobra.Command {
	var graph bool
	cmd := cli.Shows(&cobra.Command{
		Use:   "show RUN",
		Short: "Show the progress of a run, its queues and its dependencies",
		Long: `Show the progress of a run, its queues, its upstreams and its dependants. Failed
and running queues come first. Below are the first ten items that failed. With
--watch it ends when the run has ended.

With --graph it shows all runs that dependencies connect with RUN, and nothing
else of RUN.

` + runHelp,
		Example: `  rota run show reindex --watch
  rota run show 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c -o json | jq .run.state
  rota run show reindex -o csv             its queues
  rota run show reindex --graph --watch`,
	}, new(cli.Output), func(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
		if graph {
			r, err := c.Runs().Find(ctx, args[0])
			if err != nil {
				return cli.Result{}, err
			}
			args[0] = r.ID
			return showGraph(ctx, c, r)
		}
		details, err := ops.ReadRunDetails(ctx, c, args[0])
		if err == nil {
			args[0] = details.Run.ID // a watch of a task type stays with the run
		}
		d := runDetails{details}
		return cli.Result{Records: d, Text: d.text, Final: details.Run.Ended()}, err
	}, cli.Names("run"))
	addGraph(cmd, &graph)
	return cmd
}

// runDetails shows the details of a run.
type runDetails struct{ ops.RunDetails }

// MarshalJSON implements json.Marshaler.
func (d runDetails) MarshalJSON() ([]byte, error) {
	return records.Object{
		records.M("run", records.Of(d.Run)),
		records.M("queues", records.List(d.Queues)),
		records.M("failed_items", records.List(d.FailedItems)),
		records.M("graph", graphRecord(d.Graph)),
	}.MarshalJSON()
}

// CSVRecords implements csvRecorder.
func (d runDetails) CSVRecords() any { return d.Queues }

// DetailsText describes a run, its graph, its queues and the first items that failed.
func DetailsText(sc cli.Screen, d ops.RunDetails) string { return runDetails{d}.text(sc) }

// text describes the run, its graph and its queues.
func (d runDetails) text(sc cli.Screen) string {
	parts := []string{d.head(sc)}
	if len(d.Graph.Runs) > 1 {
		parts = append(parts, runTreeText(sc, d.Graph, d.Run.ID))
	}
	if len(d.Queues) > 0 {
		parts = append(parts, cli.Render(sc, urgentFirst(d.Queues), runQueueRow(d.Run.Now)))
	}
	if len(d.FailedItems) > 0 {
		parts = append(parts, cli.Render(sc, d.FailedItems, RunItemRow)+d.moreItems(sc))
	}
	return strings.Join(parts, "\n\n")
}

// moreItems returns the line below the failed items that says how many more there are.
func (d runDetails) moreItems(sc cli.Screen) string {
	more := d.Run.ItemsFailed - int64(len(d.FailedItems))
	if more <= 0 {
		return ""
	}
	return "\n" + wrapped(sc, fmt.Sprintf("and %d more failed: %s", more,
		ops.CommandLines(d.Run.OwnSign, "rota item list --run "+d.Run.ID)))
}

// head returns the lines above the tables, indented like them.
func (d runDetails) head(sc cli.Screen) string {
	r := d.Run
	lines := []string{
		escape.Text(fmt.Sprintf(" run %s of %s$%s", r.ID, r.TaskType, r.OwnSign)),
		d.stateLine(sc),
	}
	if r.Message != "" {
		lines = append(lines, wrapped(sc, "reason: "+cli.OneLine(r.Message)))
	}
	if !r.AckedAt.IsZero() {
		lines = append(lines, wrapped(sc, "acknowledged by "+r.AckedBy+" "+human.Relative(r.Now, r.AckedAt)))
	}
	lines = append(lines, wrapped(sc, originText(r)))
	if r.Params != "" {
		lines = append(lines, wrapped(sc, "params "+cli.OneLine(r.Params)))
	}
	if !r.StartedAt.IsZero() {
		lines = append(lines, "", wrapped(sc, progressText(r)+left(r)))
	}
	return strings.Join(lines, "\n")
}

// stateLine returns the run's state, its blocker and its times.
func (d runDetails) stateLine(sc cli.Screen) string {
	state := d.Run.DisplayState()
	parts := append([]string{state + blockerSuffix(d.Run, d.Blocker)}, runTimes(d.Run)...)
	return sc.Paint(wrapped(sc, strings.Join(parts, ", ")), state)
}

// runTimes returns the times that matter in the run's state.
func runTimes(r runs.Record) (list []string) {
	add := func(what string, t time.Time) { list = append(list, what+" "+human.Relative(r.Now, t)) }
	if r.StartedAt.IsZero() {
		add("due", r.ScheduledAt)
	} else {
		add("started", r.StartedAt)
	}
	switch {
	case r.State == runs.Running:
		add("deadline", r.DeadlineAt)
	case !r.Ended() && !r.DeadlineAt.IsZero():
		add("must start", r.DeadlineAt)
	}
	if r.Ended() {
		add("ended", r.FinishedAt)
	}
	return list
}

// originText says what made the run.
func originText(r runs.Record) string {
	origin := "submitted, key " + r.Key
	if r.Name != "" {
		origin += ", in graph " + r.Name
	}
	if r.Trigger != "" {
		origin = "by trigger " + r.Trigger + ", for " + cli.TimeText(r.ScheduledAt)
	}
	if r.Backfill != "" {
		origin += ", in backfill " + r.Backfill
	}
	return fmt.Sprintf("%s, priority %d", origin, r.Priority)
}

// wrapped escapes a text, indents it and wraps it to the screen.
func wrapped(sc cli.Screen, s string) string {
	sc.Width = max(sc.Width-2, 0)
	return " " + strings.ReplaceAll(sc.Wrap(s), "\n", "\n ")
}

var urgency = []string{runs.QueueFailed, runs.QueueRunning, runs.QueuePending, runs.QueueCancelled, runs.QueueDone}

// urgentFirst sorts the queues by urgency and keeps the order of equal ones.
func urgentFirst(queues []runs.Queue) []runs.Queue {
	return slices.SortedStableFunc(slices.Values(queues), func(a, b runs.Queue) int {
		return cmp.Compare(slices.Index(urgency, a.State), slices.Index(urgency, b.State))
	})
}

// runQueueRow shows times relative to now, the database's time.
func runQueueRow(now time.Time) func(runs.Queue) cli.Row {
	return func(q runs.Queue) cli.Row {
		return cli.Row{
			cli.Text("QUEUE", q.QueueID),
			cli.State("STATE", q.State),
			cli.UUID("WORKER", q.Server),
			cli.Figure("ATTEMPT", q.Attempt),
			cli.Text("ITEMS", itemsText(q.ItemsDone, q.ItemsAtLeast)).Right(),
			cli.Bad("FAILED", q.ItemsFailed),
			cli.Figure("EPOCH", q.Epoch).Drop(4),
			cli.Relative("PROGRESS", now, q.ProgressAt).Drop(2),
			cli.Relative("RETRY", now, q.NextAttemptAt).Drop(1),
			cli.Long("CURSOR", q.Cursor).Drop(3),
			cli.Long("LAST ERROR", q.LastError),
		}
	}
}

// runNode is a line of the tree.
type runNode struct {
	runs.Run
	branch string // is drawn in front of the task type
	after  string // the upstreams
}

func runNodeRow(n runNode) cli.Row {
	return cli.Row{
		cli.Text("  TASK", n.branch+n.TaskType),
		cli.State("STATE", n.DisplayState()),
		cli.Text("RUN", n.ID).Drop(2),
		cli.Long("AFTER", cli.OrDash(n.after)).Drop(1),
		cli.Long("REASON", n.Message),
	}
}

// runTreeText renders the graph as a tree. Each run appears once, below the last of
// its upstreams. focus is the id of the run that is marked.
func runTreeText(sc cli.Screen, g ops.RunGraph, focus string) string {
	return cli.Render(sc, newRunTree(g, focus).lines(), runNodeRow)
}

// runTree is a graph in which each run has one parent.
type runTree struct {
	children map[string][]runs.Run // by the parent's id; "" for runs without upstreams
	after    map[string]string     // the names of the upstreams, by run id
	focus    string
	nodes    []runNode
}

func newRunTree(g ops.RunGraph, focus string) *runTree {
	t := &runTree{children: map[string][]runs.Run{}, after: map[string]string{}, focus: focus}
	rules := g.Upstreams()
	var placed []runs.Run
	for _, r := range g.Sorted() {
		parent := ""
		var names []string
		for _, u := range placed {
			if rule := rules[r.ID][u.ID]; rule != "" {
				parent, names = u.ID, append(names, u.TaskType+ruleText(rule))
			}
		}
		placed = append(placed, r)
		t.children[parent] = append(t.children[parent], r)
		t.after[r.ID] = strings.Join(names, ", ")
	}
	return t
}

// ruleText leaves out the rule SUCCESS, which is the usual one.
func ruleText(rule string) string {
	if rule == runs.RuleSuccess {
		return ""
	}
	return " (" + rule + ")"
}

func (t *runTree) lines() []runNode {
	for _, r := range t.children[""] {
		t.add(r, "", "")
	}
	return t.nodes
}

// add appends a run and its descendants. branch is drawn in front of the run,
// indent in front of its children's branches.
func (t *runTree) add(r runs.Run, branch, indent string) {
	mark := "  "
	if r.ID == t.focus {
		mark = "> "
	}
	t.nodes = append(t.nodes, runNode{r, mark + branch, t.after[r.ID]})
	children := t.children[r.ID]
	for i, child := range children {
		if i < len(children)-1 {
			t.add(child, indent+"├─ ", indent+"│  ")
		} else {
			t.add(child, indent+"└─ ", indent+"   ")
		}
	}
}
