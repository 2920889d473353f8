package rostercmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/ops/verbs"
)

func newTaskListCommand() *cobra.Command {
	var judged doctor.Judgement // at the last look of a watch
	return cli.Lists(&cobra.Command{
		Use:   "list",
		Short: "List the task types and their state",
		Long: `List the task types and their state.

The state of a task type is what it does:
  SERVING   live workers serve it
  RUNNING   live workers serve it, and one of its runs is RUNNING
  IDLE      it has mode RUN, and no run is RUNNING
  UNSERVED  no live worker serves it
  DRAINING  every worker drains, since the number of queues changes
  PAUSED    an operator has paused it

PROBLEMS and NOTES name what is wrong with it by kind, as "rota doctor" finds
it: the command runs the same checks. "x2" counts findings of one kind. If the
checks fail or take longer than 10 s, both are "unknown", and a line below says
why. The line also names findings of no task type. A watch checks every 20 s.

BACKLOG is the number of items that are left, and how long they need at their
present rate, as the owners of the queues last counted them. With a plus sign it
is the sum of the queues that have been counted; others have not been yet.

OVERDUE counts the queues whose owner is overdue or gone, NO OWNER the queues
without an owner. RETRY and DEAD count failed items.`,
		Example: `  rota task list
  rota task list --watch
  rota task list -o json | jq '.[] | select(.problems != [])'`,
	}, nil, func(ctx context.Context, c *ops.Client, _ string) (cli.Result, error) {
		tasks, err := c.Tasks().List(ctx, "")
		if err != nil {
			return cli.Result{}, err
		}
		judged = doctor.Judge(ctx, c, "", judged, doctor.JudgeEvery)
		return TasksResult(c.OwnSign(), judged, tasks), nil
	})
}

// TasksResult is task types of an environment with what is wrong with them.
func TasksResult(ownSign string, j doctor.Judgement, tasks []ops.TaskRecord) cli.Result {
	now := time.Now()
	r := cli.TableResult(j.Tasks(tasks, now), TaskRow)
	table, below := r.Text, ""
	switch outside := j.Outside(); {
	case !j.Known(now):
		below = j.Verdict(now)
	case outside != "":
		below = "Of no task type: " + outside + " (" + ops.CommandLines(ownSign, "rota doctor") + ")"
	}
	r.Text = func(s cli.Screen) string {
		if below == "" {
			return table(s)
		}
		return table(s) + "\n" + s.Wrap(cli.OneLine(below))
	}
	return r
}

// TaskRow is a task type.
func TaskRow(t doctor.JudgedTask) cli.Row {
	return cli.Row{
		cli.Text("TASK", t.TaskType),
		cli.State("STATE", t.DisplayState()),
		cli.Text("QUEUES", queueTotal(t.TaskRecord)).Right(),
		cli.Figure("HELD", t.Owned).Drop(2),
		cli.Figure("MOVING", t.Moving).Drop(1),
		cli.Figure("OVERDUE", t.Overdue+t.Orphan).Drop(1),
		cli.Figure("NO OWNER", t.Unassigned).Drop(1),
		cli.Figure("WORKERS", t.Servers),
		cli.Text("BACKLOG", taskBacklogText(t.TaskRecord)).Right().Drop(4),
		cli.Figure("IN FLIGHT", t.InFlight).Drop(3),
		cli.Figure("RETRY", t.RetryItems).Drop(1),
		cli.Figure("DEAD", t.DeadItems).Drop(1),
		cli.Findings("PROBLEMS", t.Problems, condition.Problem),
		cli.Findings("NOTES", t.Notes, condition.Note).Drop(3),
	}
}

// queueTotal shows a change of the number of queues as 4>6.
func queueTotal(t ops.TaskRecord) string {
	if t.RequestedTotal != nil {
		return fmt.Sprintf("%d>%d", t.QueueTotal, *t.RequestedTotal)
	}
	return fmt.Sprint(t.QueueTotal)
}

func newTaskShowCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := cli.Shows(&cobra.Command{
		Use:   "show TASK",
		Short: "Show the settings and the state of a task type",
		Example: `  rota task show settle
  rota task show settle -o json | jq .execute_number
  rota task show settle -o yaml > settle.yaml    a file for rota task apply -f`,
	}, o, showTask, cli.Names("task"))
	o.Format.Values = append(slices.Clip(o.Format.Values), cli.FormatYAML)
	return cmd
}

func showTask(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
	taskType := args[0]
	tasks, err := c.Tasks().List(ctx, taskType)
	if err != nil {
		return cli.Result{}, err
	}
	s, err := c.Tasks().Settings(ctx, taskType)
	if err != nil {
		return cli.Result{}, err
	}
	judged := doctor.Judge(ctx, c, taskType, doctor.Judgement{}, 0)
	list := TasksResult(c.OwnSign(), judged, tasks)
	record := records.Of(judged.Tasks(tasks, time.Now())[0])
	for _, r := range s.Records() {
		record = record.With(r.Column, r.Value)
	}
	return cli.Result{
		Records: record, YAML: func() ([]byte, error) { return config.Format(taskType, s) },
		Text: func(sc cli.Screen) string {
			return list.Text(sc) + "\n\n" + cli.Render(sc, settingLines(s, tasks[0]), settingRow)
		},
	}, nil
}

// settingLine is a setting in the table; JSON has all settings in one object.
type settingLine struct{ name, value, defaultValue string }

func settingRow(s settingLine) cli.Row {
	return cli.Row{
		cli.Text("SETTING", s.name),
		cli.Long("VALUE", s.value),
		cli.Text("DEFAULT", s.defaultValue),
	}
}

func settingLines(s center.Settings, task ops.TaskRecord) []settingLine {
	lines := []settingLine{{name: "queues", value: s.QueuesText()}}
	defaults := center.Settings{}.Records()
	for i, r := range s.Records() {
		text := cli.OneLine(r.Text)
		if r.Name == "max_in_flight" {
			text += grantedText(s, task)
		}
		lines = append(lines, settingLine{r.Name, text, defaults[i].Text})
	}
	return lines
}

// grantedText says how many calls may be in flight until a new max_in_flight is in force.
func grantedText(s center.Settings, task ops.TaskRecord) string {
	switch {
	case s.MaxInFlight == 0 || task.Servers == 0:
		return ""
	case task.GrantedCalls == nil:
		return " (not in force: a worker has no limit yet)"
	case *task.GrantedCalls > int64(s.MaxInFlight):
		return " (now " + fmt.Sprint(*task.GrantedCalls) + ", until calls have ended)"
	}
	return ""
}

// newTaskApplyCommand makes the command of the verb, which reads the settings from a file.
func newTaskApplyCommand() *cobra.Command {
	v := verbcmd.New("task apply")
	cmd := v.Command()
	c := cmd.Flags().Lookup("config")
	c.Usage = "same as --file"
	cmd.Flags().VarP(c.Value, "file", "f", "configuration file")
	v.Before = func() error {
		file, err := config.Load(cli.ConfigPath(cmd), cmd.Flags())
		if err != nil {
			return err
		}
		a := v.Call.Operation().(verbs.ApplyTasks)
		a.Tasks = cli.SettingsOf(file.Tasks)
		v.Call = v.Call.Verb.CallOf(a)
		return nil
	}
	return cmd
}

// backlogOld is the age in seconds from which a count is shown with its age. An owner counts about every 10 s, or less
// often if a count takes long.
const backlogOld = 300

// queueBacklogText returns what a queue has left, such as "1200 DRAINING 40s".
func queueBacklogText(q ops.QueueRecord) string {
	trend := ""
	if q.BacklogTrend != nil && *q.BacklogTrend != ops.BacklogEmpty {
		trend = *q.BacklogTrend
	}
	return backlogText(q.BacklogItems, "", trend, q.BacklogAge, q.BacklogETA())
}

// taskBacklogText returns what all queues of a task type have left, such as "1200+" if not all of them were counted.
func taskBacklogText(t ops.TaskRecord) string {
	more := ""
	if t.BacklogPartial() {
		more = "+"
	}
	return backlogText(t.BacklogItems, more, "", t.BacklogAge, t.BacklogETA())
}

// backlogText returns the number of items, their trend, and how long they need at their present rate, or how old the
// figure is if it is old.
func backlogText(items *int64, more, trend string, age, eta *float64) string {
	if items == nil {
		return "-"
	}
	words := []string{fmt.Sprint(*items) + more}
	if trend != "" {
		words = append(words, trend)
	}
	switch {
	case age != nil && *age > backlogOld:
		words = append(words, "("+human.Age(*age)+" ago)")
	case eta != nil && *items > 0:
		words = append(words, human.Age(*eta)+" left")
	}
	return strings.Join(words, " ")
}
