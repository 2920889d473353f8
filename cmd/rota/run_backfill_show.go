package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func newBackfillShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
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
		Args:              arguments("BACKFILL"),
		ValidArgsFunction: complete(listBackfills(anyBackfill)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				b, err := ops.FindBackfill(ctx, c, name)
				if err != nil {
					return result{}, err
				}
				name = b.ID // a watch of a task type stays with the backfill
				d := backfillDetails{Backfill: b}
				err = d.read(ctx, c, o.isTable())
				return result{records: d, text: d.text, final: b.State != runs.BackfillRunning}, err
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	return cmd
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
func (d backfillDetails) text(sc screen) string {
	if len(d.Slots) == 0 {
		return d.head(sc)
	}
	finished, all := map[string]int{}, map[string]int{} // queues by the id of the run
	for _, q := range d.Queues {
		if all[q.RunID]++; q.State == runs.QueueDone {
			finished[q.RunID]++
		}
	}
	return d.head(sc) + "\n\n" + render(sc, d.Slots, []column[runs.BackfillSlot]{
		{title: "SLOT", text: func(s runs.BackfillSlot) string { return timeText(s.ScheduledAt) }},
		{title: "STATE", text: func(s runs.BackfillSlot) string { return s.State }, color: byMeaning[runs.BackfillSlot]},
		{title: "QUEUES", text: func(s runs.BackfillSlot) string {
			return fmt.Sprintf("%d/%d", finished[s.RunID],
				all[s.RunID])
		}, right: true},
		{title: "RUN", text: func(s runs.BackfillSlot) string { return s.RunID }},
		{title: "REASON", text: func(s runs.BackfillSlot) string { return oneLine(s.Message) }, truncate: true},
	})
}

// head returns the lines above the slots, indented like them.
func (d backfillDetails) head(sc screen) string {
	b := d.Backfill
	state := b.DisplayState()
	line := wrapped(sc, strings.Join(backfillTimes(b), ", "))
	if sc.color {
		line = strings.Replace(line, state, byMeaning(b, state), 1)
	}
	lines := []string{escape.Text(fmt.Sprintf(" backfill %s of %s$%s", b.ID, b.TaskType, b.OwnSign)), line}
	if b.Message != "" {
		lines = append(lines, wrapped(sc, "reason: "+oneLine(b.Message)))
	}
	return strings.Join(append(lines, wrapped(sc, rangeText(b)), wrapped(sc, slotsText(b))), "\n")
}

// backfillTimes returns the state of a backfill, and the times that matter in it.
func backfillTimes(b runs.BackfillRecord) []string {
	list := []string{b.DisplayState(), "started " + relativeTime(b.Now, b.CreatedAt)}
	if b.Actor != "" {
		list[1] += " by " + b.Actor
	}
	if !b.EndedAt.IsZero() {
		list = append(list, "ended "+relativeTime(b.Now, b.EndedAt))
	}
	return list
}

// rangeText says which slots the backfill has, and how it makes their runs.
func rangeText(b runs.BackfillRecord) string {
	schedule := scheduleText(runs.Trigger{Kind: b.Kind, Expression: b.Expression, TimeZone: b.TimeZone})
	list := []string{
		"slots of trigger " + b.Trigger + " (" + schedule + ") from " + timeText(b.From) + " to " + timeText(b.To),
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
		plural.Of(b.SlotsTotal, "slot", "slots"), b.SlotsMade, b.SlotsKept, b.SlotsTotal-b.SlotsMade-b.SlotsKept,
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

// csvRecords implements csvRecorder.
func (d backfillDetails) csvRecords() any {
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
