package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// newRunBackfillCommand makes the command of the verb, which has subcommands, too. Without a task type it shows its
// help, like other commands with subcommands.
func newRunBackfillCommand() *cobra.Command {
	cmd := verbcmd.New("run backfill").Command()
	start := cmd.RunE
	cmd.Args = cli.Arguments("[TASK]")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return start(cmd, args)
	}
	cmd.AddCommand(newBackfillListCommand(), newBackfillShowCommand())
	verbcmd.AddVerbs(cmd, "run backfill")
	return cmd
}

var backfillStates = []string{runs.BackfillRunning, runs.BackfillSuccess, runs.BackfillFailed, runs.BackfillCancelled}

func newBackfillListCommand() *cobra.Command {
	var f runs.BackfillFilter
	var limit int
	state := cli.Choice{Values: backfillStates}
	cmd := cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List backfills, the newest first",
		Long: `List backfills, the newest first.

The state of a backfill:
  RUNNING    slots are left, or runs have not ended
  PAUSED     an operator has paused it: no further slot gets a run
  SUCCESS    all its runs have succeeded
  FAILED     all its runs have ended, and not all have succeeded
  CANCELLED  an operator cancelled it, or its trigger was deleted

SLOTS is the number of slots that it has passed, of all its slots. FAILED counts
failed runs, also runs of task types that run after its own.`,
		Example: `  rota run backfill list
  rota run backfill list reindex --state FAILED -o json`,
	}, cli.Names("run task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		f.TaskType, f.State = taskType, state.Value
		list, err := c.Backfills().List(ctx, f, limit)
		return cli.TableResult(list, backfillRow), err
	})
	cli.AddChoice(cmd, &state, "state", "", "only backfills in this state")
	cli.AddLimit(cmd, &limit, "list at most this many")
	return cmd
}

func backfillRow(b runs.BackfillRecord) cli.Row {
	return cli.Row{
		cli.Text("BACKFILL", b.ID),
		cli.Text("TASK", b.TaskType),
		cli.State("STATE", b.DisplayState()),
		cli.Text("SLOTS", passedText(b)).Right(),
		cli.Figure("OPEN", b.RunsOpen).Drop(4),
		cli.Bad("FAILED", b.RunsFailed+b.DependantsFailed).Drop(2),
		cli.Time("FROM", b.From).Drop(3),
		cli.Time("TO", b.To).Drop(3),
		cli.Relative("STARTED", b.Now, b.CreatedAt).Drop(1),
		cli.Text("TRIGGER", b.Trigger).Drop(5),
		cli.Maybe("BY", b.Actor).Drop(6),
		cli.Long("REASON", b.Message).Drop(7),
	}
}

// passedText returns the number of slots that a backfill has passed and the number of all its slots, as 3/12.
func passedText(b runs.BackfillRecord) string {
	return fmt.Sprintf("%d/%d", b.SlotsMade+b.SlotsKept, b.SlotsTotal)
}

func newBackfillShowCommand() *cobra.Command {
	o := &cli.Output{}
	return cli.Shows(&cobra.Command{
		Use:   "show BACKFILL",
		Short: "Show the progress of a backfill",
		Long: `Show the progress of a backfill: how its runs have ended, and the slots whose
run is open, has failed or was cancelled, with the finished and all queues of
the run. -o json and -o csv have all slots of the range, also those whose run
the trigger has made, with the state of each queue. With --watch it ends when
the backfill has ended.

BACKFILL is the id of a backfill, or a task type, which stands for its newest
backfill.`,
		Example: `  rota run backfill show reindex --watch
  rota run backfill show reindex -o csv > slots.csv`,
	}, o, func(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
		b, err := ops.FindBackfill(ctx, c, args[0])
		if err != nil {
			return cli.Result{}, err
		}
		args[0] = b.ID // a watch of a task type stays with the backfill
		d := backfillDetails{Backfill: b}
		err = d.read(ctx, c, o.IsTable())
		return cli.Result{Records: d, Text: d.text, Final: b.State != runs.BackfillRunning}, err
	}, cli.Names("backfill"))
}

// backfillDetails shows a backfill with its slots and their queues.
type backfillDetails struct {
	Backfill runs.BackfillRecord
	Slots    []runs.BackfillSlot
	Queues   []runs.BackfillQueue
}

// read reads the slots, for a table only those that it shows, and their queues.
func (d *backfillDetails) read(ctx context.Context, c *ops.Client, table bool) (err error) {
	if d.Slots, err = c.Backfills().Slots(ctx, d.Backfill.ID); err != nil {
		return err
	}
	if table {
		d.Slots = slices.DeleteFunc(d.Slots, func(s runs.BackfillSlot) bool {
			return s.State == "" ||
				s.State == runs.Success
		})
	}
	d.Queues, err = c.Backfills().Queues(ctx, d.Slots)
	return err
}

// text describes the backfill and lists the slots that it has read.
func (d backfillDetails) text(sc cli.Screen) string {
	if len(d.Slots) == 0 {
		return d.head(sc)
	}
	finished, all := map[string]int{}, map[string]int{} // queues by the id of the run
	for _, q := range d.Queues {
		if all[q.RunID]++; q.State == runs.QueueDone {
			finished[q.RunID]++
		}
	}
	return d.head(sc) + "\n\n" + cli.Render(sc, d.Slots, func(s runs.BackfillSlot) cli.Row {
		return cli.Row{
			cli.Time("SLOT", s.ScheduledAt),
			cli.State("STATE", s.State),
			cli.Text("QUEUES", fmt.Sprintf("%d/%d", finished[s.RunID], all[s.RunID])).Right(),
			cli.Text("RUN", s.RunID),
			cli.Long("REASON", s.Message),
		}
	})
}

// head returns the lines above the slots, indented like them.
func (d backfillDetails) head(sc cli.Screen) string {
	b := d.Backfill
	line := sc.Paint(wrapped(sc, strings.Join(backfillTimes(b), ", ")), b.DisplayState())
	lines := []string{escape.Text(fmt.Sprintf(" backfill %s of %s$%s", b.ID, b.TaskType, b.OwnSign)), line}
	if b.Message != "" {
		lines = append(lines, wrapped(sc, "reason: "+cli.OneLine(b.Message)))
	}
	return strings.Join(append(lines, wrapped(sc, rangeText(b)), wrapped(sc, slotsText(b))), "\n")
}

// backfillTimes returns the state of a backfill, and the times that matter in it.
func backfillTimes(b runs.BackfillRecord) []string {
	list := []string{b.DisplayState(), "started " + human.Relative(b.Now, b.CreatedAt)}
	if b.Actor != "" {
		list[1] += " by " + b.Actor
	}
	if !b.EndedAt.IsZero() {
		list = append(list, "ended "+human.Relative(b.Now, b.EndedAt))
	}
	return list
}

// rangeText says which slots the backfill has, and how it makes their runs.
func rangeText(b runs.BackfillRecord) string {
	schedule := verbs.ScheduleText(runs.Trigger{Kind: b.Kind, Expression: b.Expression, TimeZone: b.TimeZone})
	list := []string{
		"slots of trigger " + b.Trigger + " (" + schedule + ") from " + cli.TimeText(b.From) + " to " + cli.TimeText(b.To),
		fmt.Sprintf("parallel %d, priority %d", b.Parallel, b.Priority),
	}
	for _, o := range []struct {
		on   bool
		text string
	}{{b.NewestFirst, "newest first"}, {b.RerunFailed, "reruns what failed"}, {!b.Dependants, "without dependants"}} {
		if o.on {
			list = append(list, o.text)
		}
	}
	return strings.Join(list, ", ")
}

// slotsText counts slots and runs.
func slotsText(b runs.BackfillRecord) string {
	line := fmt.Sprintf("%s: %d made, %d kept, %d left; runs: %d open, %d succeeded, %d failed, %d cancelled",
		human.Count(b.SlotsTotal, "slot", "slots"), b.SlotsMade, b.SlotsKept, b.SlotsTotal-b.SlotsMade-b.SlotsKept,
		b.RunsOpen, b.RunsSuccess, b.RunsFailed, b.RunsCancelled)
	if b.DependantsOpen+b.DependantsFailed > 0 {
		line += fmt.Sprintf("; dependants: %d open, %d failed or cancelled", b.DependantsOpen, b.DependantsFailed)
	}
	return line
}

// MarshalJSON implements json.Marshaler.
func (d backfillDetails) MarshalJSON() ([]byte, error) {
	return records.Object{
		records.M("backfill", records.Of(d.Backfill)),
		records.M("slots", records.List(d.Slots)),
		records.M("queues", records.List(d.Queues)),
	}.MarshalJSON()
}

// slotLine is a line of CSV: a queue of a slot. A slot without queues has a line, too.
type slotLine struct {
	ScheduledAt time.Time `json:"scheduled_at"`
	RunID       string    `json:"run_id"`
	RunState    string    `json:"run_state"`
	QueueID     string    `json:"queue_id"`
	QueueState  string    `json:"queue_state"`
}

// CSVRecords implements csvRecorder.
func (d backfillDetails) CSVRecords() any {
	lines, queues := []slotLine{}, d.Queues
	for _, s := range d.Slots {
		line := slotLine{ScheduledAt: s.ScheduledAt, RunID: s.RunID, RunState: s.State}
		if s.RunID == "" || len(queues) == 0 || queues[0].RunID != s.RunID {
			lines = append(lines, line)
			continue
		}
		for len(queues) > 0 && queues[0].RunID == s.RunID {
			line.QueueID, line.QueueState = queues[0].QueueID, queues[0].State
			lines, queues = append(lines, line), queues[1:]
		}
	}
	return lines
}
