package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// overview is the first page: what is wrong, and all task types.
type overview struct {
	diagnosis
	Headline string
	Tasks    []taskRow
	Trouble  int // task types with trouble
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

// Bad reports whether a queue of the task type stands still, or its calls or runs fail.
func (t taskRow) Bad() bool { return len(t.Marks) > 0 && t.Marks[0].Kind == "bad" }

// Part returns the share of a number of queues in percent.
func (t taskRow) Part(n int64) float64 { return 100 * float64(n) / max(1, float64(t.QueueTotal)) }

// Lost is the number of queues without a live owner.
func (t taskRow) Lost() int64 { return t.Overdue + t.Orphan + t.Unassigned }

// showOverview returns the first page.
func showOverview(ctx context.Context, v *viewer, _ url.Values) content {
	tasks := v.tasks(ctx)
	v.allServers(ctx) // for the samples
	o := overview{Tasks: make([]taskRow, len(tasks))}
	latest := v.latestRuns(ctx, runs.Filter{})
	for i, t := range tasks {
		o.Tasks[i] = taskRow{
			t, v.samples.ofTask(t.TaskType), marksOf(t), backlogOfTask(t, v.readAt("tasks")),
			newestRun(latest, t.TaskType),
		}
		if o.Tasks[i].Bad() {
			o.Trouble++
		}
	}
	slices.SortStableFunc(o.Tasks, func(a, b taskRow) int {
		return cmp.Or(cmp.Compare(rank(a.Marks), rank(b.Marks)), cmp.Compare(a.TaskType, b.TaskType))
	})
	o.diagnosis = v.diagnose(ctx)
	o.Headline = v.headline(o)
	return content{"Overview", o, tasks}
}

// newestRun returns the newest run of a task type, or nil.
func newestRun(list []runs.Record, taskType string) *runs.Record {
	i := slices.IndexFunc(list, func(r runs.Record) bool { return r.TaskType == taskType })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// headline says what is wrong in one sentence, for readers who stop there. What is not known is never said to be right,
// and what was right at the last answer of a database that is away is said in the past tense.
func (v *viewer) headline(o overview) string {
	since := v.failing()
	switch known := v.knows("tasks", "findings"); {
	case known && !since.IsZero():
		return "Not known since " + since.UTC().Format("15:04:05") + ". Before: " + verdict(o)
	case known:
		return verdict(o)
	case o.Trouble > 0:
		return human.Count(o.Trouble, "task type", "task types") + " with trouble"
	case !since.IsZero():
		return "Not known"
	}
	return "Checking"
}

// verdict is the headline for what was read.
func verdict(o overview) string {
	problems, notes := 0, 0
	for _, f := range o.Bad {
		if f.Bad() {
			problems++
		} else {
			notes++
		}
	}
	switch {
	case len(o.Tasks) == 0:
		return "No task type has been registered"
	case problems > 0:
		return human.Count(problems, "problem", "problems")
	case notes > 0:
		return "Nothing is wrong, " + human.Count(notes, "note", "notes")
	}
	return "Nothing is wrong"
}

// marksOf returns the condition of a task type, the worst first.
func marksOf(t ops.TaskRecord) (marks []mark) {
	add := func(kind string, n int64, text string) {
		if n > 0 {
			marks = append(marks, mark{kind, fmt.Sprintf("%s %s", number(n), text)})
		}
	}
	if !t.Served() && !t.Paused && t.QueueTotal > 0 {
		marks = append(marks, mark{"bad", "no live worker"})
	}
	add("bad", t.Overdue, "overdue")
	add("bad", t.Orphan, "orphan")
	add("bad", t.FailingServers, "failing")
	add("bad", t.FailedRuns, "failed "+word(t.FailedRuns, "run", "runs"))
	if t.Served() {
		add("warn", t.Unassigned, "unassigned")
	}
	add("warn", t.RunProblems-t.FailedRuns, "late "+word(t.RunProblems-t.FailedRuns, "run", "runs"))
	if t.Paused {
		marks = append(marks, mark{"off", "paused"})
	}
	if t.RequestedTotal != nil {
		marks = append(marks, mark{"busy", fmt.Sprintf("changes to %d queues", *t.RequestedTotal)})
	}
	add("busy", t.Moving, "moving")
	if t.RunID != nil {
		marks = append(marks, mark{"run", "run"})
	}
	if len(marks) == 0 {
		marks = []mark{{"ok", strings.ToLower(t.DisplayState())}}
	}
	return marks
}

func word(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// rank orders rows by their worst mark: trouble first.
func rank(marks []mark) int {
	return slices.Index([]string{"bad", "warn", "off", "busy", "run", "wait", "ok"}, marks[0].Kind)
}

// LostFrom returns where the bar of the queues without a live owner begins, in percent.
func (t taskRow) LostFrom() float64 { return t.Part(t.QueueTotal - t.Lost()) }
