package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Start starts a backfill and returns it. The servers of the task type make its runs with their ticks, the oldest slot
// first. After a crash of a server the others go on. Start returns ErrBackfillRange if the range or the trigger does
// not allow a backfill, and ErrUnknownTrigger if no trigger has that name.
func (bs *Backfills) Start(ctx context.Context, r BackfillRange, actor string) (b Backfill, err error) {
	trigger, id, err := bs.prepare(ctx, r)
	if err != nil {
		return Backfill{}, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	start := func() error {
		return bs.triggers.change(ctx, trigger, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
			there, err := readBackfills(ctx, l, `b.backfill_id = ?`, id)
			if err == nil && len(there) > 0 {
				b = there[0] // the first attempt of this transaction was committed
				return nil
			}
			if err == nil {
				err = checkMode(ctx, l, l.TaskType)
			}
			if err == nil {
				b, _, err = r.plan(t, l.Now)
			}
			if err != nil {
				return err
			}
			b.ID, b.OwnSign, b.Actor, b.CreatedAt = id, l.OwnSign, actor, l.Now
			return insertBackfill(ctx, l, b)
		})
	}
	err = start()
	if errors.Is(err, sqldb.ErrUnknownCommit) && ctx.Err() == nil {
		err = start()
	}
	if err != nil {
		return Backfill{}, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	return b, nil
}

// prepare returns the trigger of a range and the id of a new backfill.
func (bs *Backfills) prepare(ctx context.Context, r BackfillRange) (trigger, id string, err error) {
	if trigger, err = bs.triggerOf(ctx, r); err != nil {
		return "", "", err
	}
	now, err := bs.db.Clock(ctx)
	return trigger, newRunID(now), err
}

// triggerOf returns the name of the trigger of a range.
func (bs *Backfills) triggerOf(ctx context.Context, r BackfillRange) (string, error) {
	if r.Trigger != "" {
		return r.Trigger, nil
	}
	list, err := bs.triggers.List(ctx, TriggerFilter{Target: r.TaskType})
	switch {
	case err != nil:
		return "", err
	case len(list) == 1:
		return list[0].Name, nil
	case len(list) == 0:
		if err := checkMode(ctx, bs.db, r.TaskType); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: the task type has no trigger, and so no slots", ErrBackfillRange)
	}
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return "", fmt.Errorf("%w: the task type has several triggers, name one of them: %s", ErrBackfillRange, strings.Join(names, ", "))
}

func insertBackfill(ctx context.Context, l *roster.LockTx, b Backfill) error {
	b.Actor = sqldb.Clean(b.Actor)
	if err := sqldb.Insert(ctx, l.Tx, "schedule_backfill", b); err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: b.Actor, Reason: fmt.Sprintf("backfill %s of trigger %s was started: %s from %s to %s",
		b.ID, b.Trigger, plural.Of(b.SlotsTotal, "slot", "slots"), instant(b.From), instant(b.To))})
}

// BackfillSlot is a slot of a backfill, and its run if it has one. A trigger, an operator or a backfill has made the
// run.
type BackfillSlot struct {
	ScheduledAt time.Time `json:"scheduled_at"` // the slot
	RunID       string    `json:"run_id"`
	State       string    `json:"state"` // of the run
	Message     string    `json:"message"`
	BackfillID  string    `json:"backfill_id"` // of the run; empty if no backfill has made or reopened it
}

// PlannedSlot is a slot and what a backfill would do with it.
type PlannedSlot struct {
	BackfillSlot
	Action string `json:"action"` // MAKE, RERUN or KEEP
}

// Preview returns what Start would write, and what the backfill would do with each slot, as of now. It changes nothing,
// and fails as Start does.
func (bs *Backfills) Preview(ctx context.Context, r BackfillRange) (b Backfill, list []PlannedSlot, err error) {
	b, planned, err := bs.preview(ctx, r)
	if err != nil {
		return Backfill{}, nil, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	b.OwnSign = bs.ownSign
	found, err := bs.slotRuns(ctx, b, planned)
	if err != nil {
		return Backfill{}, nil, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	for _, s := range found {
		list = append(list, PlannedSlot{s, b.action(s.State)})
	}
	return b, list, nil
}

func (bs *Backfills) preview(ctx context.Context, r BackfillRange) (Backfill, []time.Time, error) {
	name, err := bs.triggerOf(ctx, r)
	if err != nil {
		return Backfill{}, nil, err
	}
	list, err := bs.triggers.List(ctx, TriggerFilter{Name: name})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("trigger %s: %w", name, ErrUnknownTrigger)
	}
	if err == nil {
		err = checkMode(ctx, bs.db, r.TaskType)
	}
	if err != nil {
		return Backfill{}, nil, err
	}
	return r.plan(list[0].Trigger, list[0].Now)
}

// slotRuns returns the slots with their runs.
func (bs *Backfills) slotRuns(ctx context.Context, b Backfill, at []time.Time) (list []BackfillSlot, err error) {
	for part := range slices.Chunk(at, roster.InsertRows) {
		found, err := findSlotRuns(ctx, bs.db, b, part)
		if err != nil {
			return nil, err
		}
		for _, slot := range part {
			s := found[b.runKey(slot)]
			s.ScheduledAt = slot
			list = append(list, s)
		}
	}
	return list, nil
}
