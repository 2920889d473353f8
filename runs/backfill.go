package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/slots"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/processor"
)

// The states of a backfill. Its pause is a flag (R1).
const (
	BackfillRunning   = "RUNNING"   // slots are left, or runs that it made have not ended
	BackfillSuccess   = "SUCCESS"   // all its runs have succeeded
	BackfillFailed    = "FAILED"    // all its runs have ended, and not all have succeeded
	BackfillCancelled = "CANCELLED" // an operator has cancelled it, or its trigger or task type was deleted
)

// ErrUnknownBackfill means that no backfill in this own_sign has that id.
var ErrUnknownBackfill = errors.New("unknown backfill")

// ErrBackfillState means that the state of the backfill does not allow the operation.
var ErrBackfillState = errors.New("the backfill is in the wrong state")

// ErrBackfillRange means that no backfill of that range can be made.
var ErrBackfillRange = errors.New("no backfill is possible")

const (
	// maxBackfillSlots bounds the slots of a backfill. An operator that asks for more has probably mistyped the range.
	maxBackfillSlots = 10_000
	// maxBackfillParallel bounds the slots that are in progress at a time, and so the runs that one tick makes.
	maxBackfillParallel = 100
	// countedSlots is the largest number of slots that the error about a refused range names.
	countedSlots = 100_000
)

// BackfillRange asks for a run for each slot of a trigger in a range of time.
type BackfillRange struct {
	TaskType string
	Trigger  string    // Defaults to the only trigger of the task type.
	From     time.Time // the first possible slot
	To       time.Time // all slots are earlier. Defaults to the database's time.
	Parallel int       // the most slots that are in progress at a time, from 1 to 100. Defaults to 1.
	Priority *int      // of the runs. Defaults to one less than that of the trigger.

	RerunFailed  bool // failed and cancelled runs of the slots are rerun; otherwise they stay as they are
	NoDependants bool // the runs have no dependants
	NewestFirst  bool // the newest slot comes first
	// SameWork allows a backfill although a dealer does not know the slot, so that each run would do the same work.
	SameWork bool
}

// Backfill makes a run for each slot of a trigger in a range of time, a row of schedule_backfill (R20). Its JSON names
// are the columns, and so it has as many fields. Times are by the database's clock.
type Backfill struct {
	ID       string `json:"backfill_id"` // UUIDv7: sorts by time
	TaskType string `json:"task_type"`
	OwnSign  string `json:"own_sign"`
	Trigger  string `json:"trigger_name"`

	// The backfill makes the slots and runs of the trigger as it was at the start of the backfill.
	Kind         string    `json:"kind"` // CRON or EVERY
	Expression   string    `json:"expression"`
	TimeZone     string    `json:"time_zone"`
	StartAt      time.Time `json:"start_at,omitzero"`
	ExcludedDays string    `json:"excluded_days"`
	Params       string    `json:"params"`
	Priority     int       `json:"priority"`

	From        time.Time `json:"from_at"` // no slot is earlier
	To          time.Time `json:"to_at"`   // all slots are earlier
	Parallel    int       `json:"parallel"`
	RerunFailed bool      `json:"rerun_failed"`
	Dependants  bool      `json:"dependants"`
	NewestFirst bool      `json:"newest_first"`

	State      string    `json:"state"`                 // one of the Backfill constants
	Paused     bool      `json:"paused"`                // no further slot gets a run
	NextSlotAt time.Time `json:"next_slot_at,omitzero"` // the next slot to look at; zero if there is none
	SlotsTotal int       `json:"slots_total"`
	SlotsMade  int       `json:"slots_made"` // slots whose run it has made or reopened
	SlotsKept  int       `json:"slots_kept"` // slots that had a run, which it has not changed
	Message    string    `json:"message"`    // why it is in that state
	Actor      string    `json:"actor"`      // the operator that started it
	CreatedAt  time.Time `json:"created_at"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Version    int64     `json:"version"`
}

// Backfills starts, lists and controls backfills.
type Backfills struct {
	core
	triggers *Triggers
	closer   *closer
}

// plan returns the backfill of a range of a trigger's slots, and these slots in the order of the backfill. It refuses a
// range that has no slots or too many, or slots that the trigger itself will fire.
func (r BackfillRange) plan(t Trigger, now time.Time) (Backfill, []time.Time, error) {
	if err := r.validate(t, now); err != nil {
		return Backfill{}, nil, err
	}
	a, err := t.parse()
	if err != nil {
		return Backfill{}, nil, err
	}
	b := Backfill{
		TaskType: t.Target, Trigger: t.Name, Kind: t.Kind, Expression: t.Expression, TimeZone: t.TimeZone, StartAt: t.StartAt,
		ExcludedDays: t.ExcludedDays, Params: t.Params, Priority: max(t.Priority-1, -maxPriority),
		From:     later(r.From.UTC().Truncate(time.Microsecond), t.StartAt),
		To:       cmp.Or(r.To, now).UTC().Truncate(time.Microsecond),
		Parallel: cmp.Or(r.Parallel, 1), RerunFailed: r.RerunFailed, Dependants: !r.NoDependants, NewestFirst: r.NewestFirst,
		State: BackfillRunning,
	}
	if r.Priority != nil {
		b.Priority = *r.Priority
	}
	if !t.EndAt.IsZero() && t.EndAt.Before(b.To) {
		b.To = t.EndAt.Add(time.Microsecond) // a slot at the end fires
	}
	list := firstSlots(a.Schedule, b.From, b.To, b.NewestFirst, countedSlots+1)
	const tooMany = "the range has %s%d slots; a backfill has at most %d"
	switch n := len(list); {
	case n == 0:
		return Backfill{}, nil, badRange("%s has no slot in the range%s", t.Name, startText(t))
	case n > countedSlots:
		return Backfill{}, nil, badRange(tooMany, "more than ", countedSlots, maxBackfillSlots)
	case n > maxBackfillSlots:
		return Backfill{}, nil, badRange(tooMany, "", n, maxBackfillSlots)
	}
	b.NextSlotAt, b.SlotsTotal = list[0], len(list)
	return b, list, nil
}

func (r BackfillRange) validate(t Trigger, now time.Time) error {
	switch {
	case t.Target != r.TaskType:
		return badRange("trigger %s fires %s", t.Name, t.Target)
	case t.Kind == TriggerOnce:
		return badRange("trigger %s is of kind ONCE and has one slot, which it fires itself: "+
			"rota trigger fire makes a run of it", t.Name)
	case r.Parallel < 0 || r.Parallel > maxBackfillParallel:
		return badRange("parallel (%d) must be from 1 to %d", r.Parallel, maxBackfillParallel)
	case r.From.IsZero():
		return badRange("from must be set")
	case validTime("from", r.From) != nil:
		return badRange("%v", validTime("from", r.From))
	case r.Priority != nil && validPriority(*r.Priority) != nil:
		return badRange("%v", validPriority(*r.Priority))
	case r.To.After(now):
		return badRange("to (%s) must not be in the future: the trigger fires these slots itself", instant(r.To))
	case !r.From.Before(cmp.Or(r.To, now)):
		return badRange("from (%s) must be before to (%s)", instant(r.From), instant(cmp.Or(r.To, now)))
	}
	return nil
}

// sameWork refuses the dealers that do not know the slot of a run.
func sameWork(c processor.Capabilities) error {
	if !c.Slotless {
		return nil
	}
	return badRange("its statements use no {{slot}}, {{slot_end}} or {{run_key}}, so that the run of each slot would do " +
		"the same work; --same-work makes the runs all the same")
}

func badRange(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBackfillRange, fmt.Sprintf(format, args...))
}

// startText says when the slots of a trigger begin, if they have a beginning.
func startText(t Trigger) string {
	if t.StartAt.IsZero() {
		return ""
	}
	return ": its slots begin at " + instant(t.StartAt)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// firstSlots returns at most n slots of a range.
func firstSlots(s slots.Schedule, from, to time.Time, backwards bool, n int) (list []time.Time) {
	for at := range slots.Range(s, from, to, backwards) {
		if len(list) == n {
			break
		}
		list = append(list, at)
	}
	return list
}

// schedule returns the slots of the trigger as it was at the start of the backfill.
func (b Backfill) schedule() (slots.Schedule, error) {
	s, err := slots.Parse(b.Kind, b.Expression, b.TimeZone, b.StartAt)
	if err == nil {
		s, err = slots.Without(s, b.ExcludedDays)
	}
	return s, err
}

// next returns at most n slots that are left, in the order of the backfill.
func (b Backfill) next(n int) ([]time.Time, error) {
	s, err := b.schedule()
	if err != nil || b.NextSlotAt.IsZero() {
		return nil, err
	}
	if b.NewestFirst {
		return firstSlots(s, b.From, b.NextSlotAt.Add(1), true, n), nil
	}
	return firstSlots(s, b.NextSlotAt, b.To, false, n), nil
}

// runKey returns the key of the run of a slot. The trigger gives its runs the same keys, so that a slot has one run
// (R2).
func (b Backfill) runKey(slot time.Time) string {
	return Trigger{ID: triggerID(b.OwnSign, b.Trigger)}.runKey(slot)
}

// What a backfill does with a slot.
const (
	SlotMake  = "MAKE"  // the slot has no run: it gets one
	SlotRerun = "RERUN" // its run is reopened
	SlotKeep  = "KEEP"  // its run stays as it is
)

// action returns what the backfill does with a slot whose run has that state, "" if it has no run. A run that is
// SKIPPED has done nothing. The backfill reopens it, as a submission of its key does (R11).
func (b Backfill) action(state string) string {
	switch {
	case state == "":
		return SlotMake
	case state == Skipped, b.RerunFailed && slices.Contains(reopenable, state):
		return SlotRerun
	}
	return SlotKeep
}

// readBackfills reads the backfills that a condition on b selects, in the order in which they were started.
func readBackfills(ctx context.Context, l *roster.LockTx, where string, args ...any) ([]Backfill, error) {
	list, err := sqldb.Records[Backfill](ctx, l, `SELECT {columns b} FROM schedule_backfill b WHERE `+where, args...)
	return list, sqldb.Wrap(err, "read the backfills")
}

// update writes what changes in the row of a backfill, unless another transaction has changed the row meanwhile. It is
// the last statement of its transaction that locks a row. A rerun also locks this row after its runs, so the two
// transactions do not wait for each other.
func (b Backfill) update(ctx context.Context, l *roster.LockTx) error {
	ended := ``
	if b.State != BackfillRunning {
		ended = `, ended_at = {now}`
	}
	return sqldb.Changed(l.Exec(ctx, `UPDATE schedule_backfill SET state = ?, paused = ?, next_slot_at = ?,
		slots_made = ?, slots_kept = ?, message = ?, version = version + 1`+ended+` WHERE backfill_id = ? AND version = ?`,
		b.State, b.Paused, l.Dialect.TimeOrNull(b.NextSlotAt), b.SlotsMade, b.SlotsKept, sqldb.Clean(b.Message),
		b.ID, b.Version))
}
