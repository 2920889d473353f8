package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// overview is the first page: what is wrong, and all task types.
type overview struct {
	diagnosis
	Tasks []taskRow
}

// Trouble says how many task types have problems; empty if that is not known.
func (o overview) Trouble() string {
	n := 0
	for _, t := range o.Tasks {
		n += count(t.Bad())
	}
	switch {
	case !o.Known():
		return ""
	case n == 0:
		return "none with problems"
	}
	return fmt.Sprint(n, " with problems")
}

// taskRow is a task type in the list.
type taskRow struct {
	ops.TaskRecord
	Spark   spark
	Marks   []mark
	Backlog backlog
	Last    *runs.Record // its newest run; nil if none is among the newest of all task types
}

// mark is a word with a sign and, where it has a meaning, a colour.
type mark struct {
	Kind string // bad, warn, busy, run, ok, off or wait
	Text string
}

// Bad reports whether the task type has problems.
func (t taskRow) Bad() bool { return len(t.Marks) > 0 && t.Marks[0].Kind == "bad" }

// Part returns the share of a number of queues in percent.
func (t taskRow) Part(n int64) float64 { return 100 * float64(n) / max(1, float64(t.QueueTotal)) }

// showOverview returns the first page.
func showOverview(ctx context.Context, v *viewer, _ url.Values) content {
	tasks := v.tasks(ctx)
	v.allServers(ctx) // for the samples
	latest := v.latestRuns(ctx, runs.Filter{})
	o := overview{v.diagnose(ctx), make([]taskRow, len(tasks))}
	for i, t := range tasks {
		o.Tasks[i] = taskRow{
			t, v.samples.ofTask(t.TaskType), marksOf(t, o.Judgement), backlogOfTask(t, v.readAt("tasks")),
			newestRun(latest, t.TaskType),
		}
	}
	slices.SortStableFunc(o.Tasks, func(a, b taskRow) int {
		return cmp.Or(cmp.Compare(rank(a.Marks), rank(b.Marks)), cmp.Compare(a.TaskType, b.TaskType))
	})
	return content{"Overview", o, o.Judgement.Tasks(tasks, time.Now())}
}

// newestRun returns the newest run of a task type, or nil.
func newestRun(list []runs.Record, taskType string) *runs.Record {
	i := slices.IndexFunc(list, func(r runs.Record) bool { return r.TaskType == taskType })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// marksOf returns what is wrong with a task type, the worst first, and what it does. What is wrong with it is not known
// while its judgement does not hold.
func marksOf(t ops.TaskRecord, j doctor.Judgement) (marks []mark) {
	known := j.Known(time.Now())
	if !known {
		j, marks = doctor.Judgement{}, []mark{{"wait", "not checked"}}
	}
	for _, tally := range j.Of(t.TaskType).Tallies() {
		marks = append(marks, mark{markOfStatus[tally.Status], tally.String()})
	}
	state := strings.ToLower(t.DisplayState())
	if t.Paused && !slices.Contains(marks, mark{"warn", condition.Paused.Name}) {
		marks = append(marks, mark{"off", state})
	}
	if t.RequestedTotal != nil {
		marks = append(marks, mark{"busy", fmt.Sprintf("changes to %d queues", *t.RequestedTotal)})
	}
	if t.Moving > 0 {
		marks = append(marks, mark{"busy", number(t.Moving) + " moving"})
	}
	if t.RunID != nil {
		marks = append(marks, mark{"run", "run"})
	}
	switch {
	case len(marks) == 0:
		marks = []mark{{"ok", state}}
	case len(marks) == 1 && !known:
		marks = append(marks, mark{"wait", state})
	}
	return marks
}

// markOfStatus has the colours of findings.
var markOfStatus = map[string]string{condition.Problem: "bad", condition.Note: "warn"}

// rank orders rows by their worst mark: trouble first.
func rank(marks []mark) int {
	return slices.Index([]string{"bad", "warn", "off", "busy", "run", "wait", "ok"}, marks[0].Kind)
}

// LostFrom returns where the bar of the queues without a live owner begins, in percent.
func (t taskRow) LostFrom() float64 { return t.Part(t.QueueTotal - t.Lost()) }
