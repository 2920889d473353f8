package center

import (
	"context"

	"github.com/dutyrota/rota/internal/runs"
)

// Backfills starts, lists and controls backfills: runs for the slots of a trigger in a range of time (R20).
type Backfills struct{ backfills *runs.Backfills }

// Backfills returns the bundle of backfills.
func (c *Center) Backfills() *Backfills { return &Backfills{c.runs.Backfills} }

// The states of a backfill.
const (
	BackfillRunning   = runs.BackfillRunning   // slots are left, or runs that it made have not ended
	BackfillSuccess   = runs.BackfillSuccess   // all its runs have succeeded
	BackfillFailed    = runs.BackfillFailed    // all its runs have ended, and not all have succeeded
	BackfillCancelled = runs.BackfillCancelled // an operator cancelled it, or its trigger or task type was deleted
)

// What a backfill does with a slot.
const (
	SlotMake  = runs.SlotMake  // the slot has no run: it gets one
	SlotRerun = runs.SlotRerun // its run is reopened
	SlotKeep  = runs.SlotKeep  // its run is left alone
)

// Preview returns the backfill that Start would begin, and what it would do with each slot, as of now. It changes
// nothing.
func (b *Backfills) Preview(ctx context.Context, r BackfillRange) (Backfill, []PlannedSlot, error) {
	return b.backfills.Preview(ctx, r)
}

// Start starts a backfill and returns it. The servers of the task type make its runs, at most Parallel slots at a time,
// also after this process has ended. A slot that has a run keeps it, unless the run is SKIPPED, or has failed and
// RerunFailed is set. A slot never has two runs, whether the trigger or a backfill makes it. Start returns
// ErrBackfillRange if the range or the trigger does not allow a backfill, ErrUnknownTask if there is no such task type,
// and ErrUnknownTrigger if there is no such trigger.
func (b *Backfills) Start(ctx context.Context, r BackfillRange, actor string) (Backfill, error) {
	return b.backfills.Start(ctx, r, actor)
}

// List lists the latest backfills of this own_sign that the filter selects, the newest first, at most limit.
func (b *Backfills) List(ctx context.Context, f BackfillFilter, limit int) ([]BackfillRecord, error) {
	return b.backfills.List(ctx, f, limit)
}

// Get returns the backfill with the given id, or ErrUnknownBackfill if there is none.
func (b *Backfills) Get(ctx context.Context, id string) (BackfillRecord, error) {
	return b.backfills.Get(ctx, id)
}

// Slots returns all slots of a backfill, the oldest first, each with its run, also if the trigger or an operator made
// the run.
func (b *Backfills) Slots(ctx context.Context, id string) ([]BackfillSlot, error) {
	return b.backfills.Slots(ctx, id)
}

// Queues returns the queues of the runs of slots, in the order of the slots and in natural order of the queues.
func (b *Backfills) Queues(ctx context.Context, slots []BackfillSlot) ([]BackfillQueue, error) {
	return b.backfills.Queues(ctx, slots)
}

// Pause stops a backfill: no further slot gets a run. The runs that it has made go on. Pause returns ErrBackfillState
// if the backfill has ended.
func (b *Backfills) Pause(ctx context.Context, id, actor string) error {
	return b.backfills.SetPaused(ctx, id, true, actor)
}

// Resume ends a Pause. It returns ErrBackfillState if the backfill has ended.
func (b *Backfills) Resume(ctx context.Context, id, actor string) error {
	return b.backfills.SetPaused(ctx, id, false, actor)
}

// Cancel ends a backfill and all its open runs, also the runs of dependants. Cancel returns ErrBackfillState if the
// backfill has ended.
func (b *Backfills) Cancel(ctx context.Context, id, actor string) error {
	return b.backfills.Cancel(ctx, id, actor)
}
