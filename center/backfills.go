package center

import (
	"context"

	"github.com/dutyrota/rota/internal/runs"
)

// Backfills previews and lists backfills: runs for the slots of a trigger in a range of time (R20).
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
