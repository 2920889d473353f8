package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

func newBackfillShowCommand() *cobra.Command {
	var o output
	var first int
	cmd := &cobra.Command{
		Use:   "show BACKFILL",
		Short: "Show the progress of a backfill as a matrix of queues by slots",
		Long: `Show the progress of a backfill: how its runs have ended, and a matrix with a
row per queue and a column per slot. The row "run" has the runs. All slots of
the range are shown, also those whose run the trigger has made.

The matrix shows as many slots as fit the screen, around the first one that has
not ended, or from --first on; and as many queues, those with failures first. It
says what it leaves out. A pipe, -o json and -o csv have all. With --watch it
ends when the backfill has ended.

` + backfillArgument,
		Example: `  rota run backfill show reindex --watch
  rota run backfill show reindex -o csv > matrix.csv`,
		Args:              arguments("BACKFILL"),
		ValidArgsFunction: complete(listBackfills(anyBackfill)),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("first") {
				return nil
			}
			return atLeastOne("first", first)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return show(cmd, o, func(ctx context.Context, c *center.Center) (result, error) {
				b, err := findBackfill(ctx, c, name)
				if err != nil {
					return result{}, err
				}
				name = b.ID // a watch of a task type stays with the backfill
				d := backfillDetails{Backfill: b, first: first}
				err = d.read(ctx, c, screenOf(cmd.OutOrStdout()), o)
				return result{records: d, text: d.text, final: b.State != center.BackfillRunning}, err
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	cmd.Flags().IntVar(&first, "first", 0, "the first slot to show: 1 is the oldest")
	return cmd
}

// backfillDetails shows a backfill with its slots and their queues.
type backfillDetails struct {
	Backfill center.BackfillRecord
	Slots    []center.BackfillSlot
	Queues   []center.BackfillQueue // of the slots that are shown

	first    int // the flag
	from, to int // the indexes of the slots that are shown
}

// read reads the slots, and the queues of the shown slots.
func (d *backfillDetails) read(ctx context.Context, c *center.Center, s screen, o output) (err error) {
	if d.Slots, err = c.Backfills().Slots(ctx, d.Backfill.ID); err != nil {
		return err
	}
	d.from, d.to = 0, len(d.Slots)
	if o.isTable() {
		d.from, d.to = window(d.Slots, d.first, s.width)
	}
	d.Queues, err = c.Backfills().Queues(ctx, d.Slots[d.from:d.to])
	return err
}

// MarshalJSON implements json.Marshaler.
func (d backfillDetails) MarshalJSON() ([]byte, error) {
	return records.Object{
		records.M("backfill", records.Of(d.Backfill)),
		records.M("slots", records.List(d.Slots)),
		records.M("queues", records.List(d.Queues)),
	}.MarshalJSON()
}

// matrixCell is a line of the matrix as CSV. A slot without queues has a line, too.
type matrixCell struct {
	ScheduledAt time.Time `json:"scheduled_at"`
	RunID       string    `json:"run_id"`
	RunState    string    `json:"run_state"`
	QueueID     string    `json:"queue_id"`
	QueueState  string    `json:"queue_state"`
}

// csvRecords implements csvRecorder.
func (d backfillDetails) csvRecords() any {
	cells, queues := []matrixCell{}, d.Queues
	for _, s := range d.Slots {
		cell := matrixCell{ScheduledAt: s.ScheduledAt, RunID: s.RunID, RunState: s.State}
		if s.RunID == "" || len(queues) == 0 || queues[0].RunID != s.RunID {
			cells = append(cells, cell)
			continue
		}
		for len(queues) > 0 && queues[0].RunID == s.RunID {
			cell.QueueID, cell.QueueState = queues[0].QueueID, queues[0].State
			cells, queues = append(cells, cell), queues[1:]
		}
	}
	return cells
}
