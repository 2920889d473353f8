package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
)

const backfillHelp = `

BACKFILL is the id of a backfill, or a task type, which stands for its newest
backfill.`

func backfillExample(verb string) string {
	return fmt.Sprintf("  rota run backfill %[1]s reindex\n  rota run backfill %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", verb)
}

// PauseBackfill stops a backfill from making runs.
type PauseBackfill struct {
	Backfill string `arg:"BACKFILL" of:"open backfill" json:"-"`
}

var pauseBackfill = verb[PauseBackfill](Verb{
	Name: "run backfill pause", Right: RightOperate,
	Short: "Pause a backfill: no further slot gets a run",
	Long: `Pause a backfill: no further slot gets a run, until "rota run backfill resume".
The runs that it has made go on; "rota run pause" pauses one of them.` + backfillHelp,
	Example: backfillExample("pause"),
})

// Prepare implements Operation.
func (a PauseBackfill) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, "Pause", "No further slot gets a run. The runs that it has made go on.",
		"paused", "the runs that it has made go on", (*center.Backfills).Pause)
}

// ResumeBackfill ends the pause of a backfill.
type ResumeBackfill struct {
	Backfill string `arg:"BACKFILL" of:"paused backfill" json:"-"`
}

var resumeBackfill = verb[ResumeBackfill](Verb{
	Name: "run backfill resume", Right: RightOperate,
	Short:   "Resume a paused backfill",
	Long:    `Resume a paused backfill with the next slot.` + backfillHelp,
	Example: backfillExample("resume"),
})

// Prepare implements Operation.
func (a ResumeBackfill) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, "Resume", "It goes on with the next slot.", "resumed", "", (*center.Backfills).Resume)
}

// CancelBackfill ends a backfill and its open runs.
type CancelBackfill struct {
	Backfill string `arg:"BACKFILL" of:"open backfill" json:"-"`
}

var cancelBackfill = verb[CancelBackfill](Verb{
	Name: "run backfill cancel", Right: RightOperate,
	Short: "Cancel a backfill and its open runs",
	Long: `Cancel a backfill and its open runs, also the open runs of the task types that
run after its own. A server notices within two seconds; what it has started may
still take effect. Runs that have ended stay as they are. A new backfill of the
range makes the other runs, and with --rerun-failed also reruns the cancelled
runs.` + backfillHelp,
	Example: backfillExample("cancel"),
})

// Prepare implements Operation.
func (a CancelBackfill) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, "Cancel",
		"Its open runs end at once, also those of the task types that run after its own. Runs that have ended stay as they are.",
		"cancelled", "", (*center.Backfills).Cancel)
}

func backfillChange(ctx context.Context, c *center.Center, name, title, says, past, effect string, do func(b *center.Backfills, ctx context.Context, id, actor string) error) (*Change, error) {
	b, err := FindBackfill(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return &Change{
		Title: fmt.Sprintf("%s the backfill of %s", title, b.TaskType), TaskTypes: []string{b.TaskType}, Says: []string{says},
		Objects: []Object{{
			ID: b.ID, Name: fmt.Sprintf("backfill %s (%s)", b.ID, b.TaskType), Past: past, Effect: effect,
			do: done(func(ctx context.Context, actor string) error { return do(c.Backfills(), ctx, b.ID, actor) }),
		}},
	}, nil
}

// FindBackfill returns the backfill with an id, or the newest one of the task type with that name. It returns
// center.ErrUnknownBackfill if there is neither.
func FindBackfill(ctx context.Context, c *center.Center, name string) (center.BackfillRecord, error) {
	if name == "" {
		return center.BackfillRecord{}, missing("the backfill")
	}
	b, err := c.Backfills().Get(ctx, name)
	if !errors.Is(err, center.ErrUnknownBackfill) {
		return b, err
	}
	list, listErr := c.Backfills().List(ctx, center.BackfillFilter{TaskType: name}, 1)
	if listErr != nil || len(list) == 0 {
		return b, errors.Join(listErr, err)
	}
	return list[0], nil
}
