package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newRunShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show how far a run is, queue by queue, and what depends on it",
		Long: `Show how far a run is, queue by queue, what it waits for, and what waits for it.
Queues that have failed or are at work come first.

RUN is a run's id, or the name of a task type: its newest run.`,
		Example: `  rota run show reindex --watch
  rota run show 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c -o json | jq .run.state
  rota run show reindex -o csv             its queues`,
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(runRefs(anyRun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				s, err := askRun(ctx, c, args[0])
				return reply{s, s.text}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	return cmd
}

// shownRun is all that there is to say about a run.
type shownRun struct {
	run    runRecord
	note   string // what it waits for
	queues []runQueue
	graph  runGraph
}

func askRun(ctx context.Context, c *center.Center, name string) (s shownRun, err error) {
	if s.run, err = resolveRun(ctx, c, name); err != nil {
		return s, err
	}
	if s.queues, err = c.RunQueues(ctx, s.run.ID); err != nil {
		return s, err
	}
	if s.graph.Runs, s.graph.Deps, err = c.RunGraph(ctx, s.run.ID); err != nil || s.run.Ended() {
		return s, err
	}
	s.note, err = runNote(ctx, c, s.run)
	return s, err
}

// MarshalJSON implements json.Marshaler.
func (s shownRun) MarshalJSON() ([]byte, error) {
	return pairs{
		{"run", recordsOf(s.run)},
		{"queues", listOf(s.queues)},
		{"graph", pairs{{"runs", listOf(s.graph.Runs)}, {"deps", listOf(s.graph.Deps)}}},
	}.MarshalJSON()
}

// rows are what CSV tells.
func (s shownRun) rows() any { return s.queues }

// text is the run for people: what it is, how far it is, what it depends on, its queues.
func (s shownRun) text(sc screen) string {
	parts := []string{s.head(sc)}
	if len(s.graph.Runs) > 1 {
		parts = append(parts, s.graph.text(sc, s.run.ID))
	}
	if len(s.queues) > 0 {
		parts = append(parts, render(sc, byInterest(s.queues), runQueueFields(s.run.Now)))
	}
	return strings.Join(parts, "\n\n")
}

// head are the lines above the tables, each indented as they are.
func (s shownRun) head(sc screen) string {
	r := s.run
	lines := []string{
		fmt.Sprintf(" run %s of %s$%s", r.ID, r.TaskType, r.OwnSign),
		s.state(sc),
	}
	if r.Message != "" {
		lines = append(lines, wrapped(sc, "because: "+line(r.Message)))
	}
	lines = append(lines, wrapped(sc, s.origin()))
	if r.Params != "" {
		lines = append(lines, wrapped(sc, "params "+line(r.Params)))
	}
	if !r.StartedAt.IsZero() {
		lines = append(lines, "", " "+runBar(r, cmp.Or(sc.width, 100)-2))
	}
	return strings.Join(lines, "\n")
}

// state is the run's state, what it waits for, and since when.
func (s shownRun) state(sc screen) string {
	state := runState(s.run)
	told := wrapped(sc, strings.Join(append([]string{state + noteText(s.note)}, s.times()...), ", "))
	if sc.color {
		told = strings.Replace(told, state, byMeaning(s.run, state), 1)
	}
	return told
}

// times are those that matter in this state.
func (s shownRun) times() (list []string) {
	r := s.run
	add := func(what, when string) { list = append(list, what+" "+when) }
	if r.StartedAt.IsZero() {
		add("due", ago(r.Now, r.ScheduledAt))
	} else {
		add("begun", ago(r.Now, r.StartedAt))
	}
	if r.State == center.RunRunning {
		add("deadline", ago(r.Now, r.DeadlineAt))
	}
	if r.Ended() {
		add("ended", ago(r.Now, r.FinishedAt))
	}
	return list
}

// origin is where a run comes from.
func (s shownRun) origin() string {
	r := s.run
	from := "submitted, key " + r.Key
	if r.Trigger != "" {
		from = "by trigger " + r.Trigger + ", for " + when(r.ScheduledAt)
	}
	return fmt.Sprintf("%s, priority %d", from, r.Priority)
}

// wrapped is a text of several lines that fits the screen.
func wrapped(sc screen, s string) string {
	if sc.width == 0 {
		return " " + s
	}
	return " " + strings.ReplaceAll(text.WrapSoft(s, max(sc.width-2, 20)), "\n", "\n ")
}

type runQueue = center.RunQueue

// byInterest puts first what somebody may have to look after.
func byInterest(queues []runQueue) []runQueue {
	order := []string{center.RunQueueFailed, center.RunQueueRunning, center.RunQueuePending, center.RunQueueCancelled, center.RunQueueDone}
	queues = slices.Clone(queues)
	slices.SortStableFunc(queues, func(a, b runQueue) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	return queues
}

// runQueueFields tell times beside that of the database.
func runQueueFields(now time.Time) []field[runQueue] {
	return []field[runQueue]{
		{title: "QUEUE", text: func(q runQueue) string { return q.QueueID }},
		{title: "STATE", text: func(q runQueue) string { return q.State }, color: byMeaning[runQueue]},
		{title: "SERVER", text: func(q runQueue) string { return orDash(q.Server) }, uuid: true},
		{title: "TRY", text: func(q runQueue) string { return fmt.Sprint(q.Attempt) }, right: true},
		{title: "ITEMS", text: func(q runQueue) string { return number(q.ItemsDone) }, right: true},
		{title: "FAILED", text: func(q runQueue) string { return number(q.ItemsFailed) }, right: true, color: badUnlessZero[runQueue]},
		{title: "EPOCH", text: func(q runQueue) string { return number(q.Epoch) }, right: true, spare: 4},
		{title: "PROGRESS", text: func(q runQueue) string { return ago(now, q.ProgressAt) }, right: true, spare: 2},
		{title: "AGAIN", text: func(q runQueue) string { return ago(now, q.NextAttemptAt) }, right: true, spare: 1},
		{title: "CURSOR", text: func(q runQueue) string { return line(q.Cursor) }, spare: 3, free: true},
		{title: "LAST ERROR", text: func(q runQueue) string { return line(q.LastError) }, free: true},
	}
}
