package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/slots"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The kinds of triggers.
const (
	TriggerCron  = slots.KindCron  // a cron expression with seconds, in Quartz's syntax
	TriggerEvery = slots.KindEvery // a Go duration, counted from StartAt
	TriggerOnce  = slots.KindOnce  // a time in RFC 3339
)

// The misfire policies: which slots fire when several are due or one is old, because no worker was running or the
// trigger was paused.
const (
	MisfireOne  = slots.MisfireOne  // the newest
	MisfireSkip = slots.MisfireSkip // the newest, if it is younger than MisfireAfter
	MisfireAll  = slots.MisfireAll  // each; if more than CatchupMax are due, the newest CatchupMax
)

// The overlap policies: what happens to a slot while an earlier run of the same trigger is open (R4). Runs of other
// triggers and submitted runs do not count: the run of the slot waits for its turn.
const (
	OverlapSkip = "SKIP" // its run is SKIPPED; the run of ONCE waits
	OverlapWait = "WAIT" // its run waits, if no other run of the trigger waits already; else it is SKIPPED
)

// The states of a trigger.
const (
	TriggerActive = "ACTIVE"
	TriggerPaused = "PAUSED" // it misses its slots; after a resume its misfire policy selects the slots that still fire
	TriggerDone   = "DONE"   // it has no more slots
	TriggerError  = "ERROR"  // its row is invalid; the message says why
)

// ErrUnknownTrigger means that no trigger in this own_sign has that name.
var ErrUnknownTrigger = errors.New("unknown trigger")

// Trigger makes runs of a task type at certain times, a row of schedule_trigger. Its slots are the instants at which it
// is due, by the database's clock.
type Trigger struct {
	Name       string `json:"name"`       // unique in the own_sign; at most 150 bytes
	Target     string `json:"target"`     // a task type of mode RUN
	Kind       string `json:"kind"`       // CRON, EVERY or ONCE
	Expression string `json:"expression"` // at most 255 bytes
	TimeZone   string `json:"time_zone"`  // of CRON, such as Europe/Berlin. Defaults to UTC.
	// StartAt and EndAt are the bounds of the slots, both inclusive; zero is no bound. The slots of EVERY are counted from
	// StartAt; for EVERY it defaults to the time at which the trigger is made.
	StartAt  time.Time `json:"start_at,omitzero"`
	EndAt    time.Time `json:"end_at,omitzero"`
	MaxFires int64     `json:"max_fires"` // after that many slots have fired the trigger is DONE. Defaults to no bound.

	Misfire      string        `json:"misfire"`                 // ONE, SKIP or ALL. Defaults to ONE.
	MisfireAfter time.Duration `json:"-" db:"misfire_after_ms"` // Defaults to 1 min.
	// CatchupMax bounds the missed slots that ALL fires at once. Defaults to 100.
	CatchupMax int `json:"catchup_max"`
	// Jitter spreads triggers of the same slots: this one fires later than its slots by a constant time below Jitter that
	// follows from its name. At most 24 h. Defaults to none.
	Jitter time.Duration `json:"-" db:"jitter_ms"`
	// ExcludedDays are days without slots, for kind CRON: 2026-04-03, or 12-25 for each year, separated by commas. They
	// are days of TimeZone. At most 2,000 bytes.
	ExcludedDays string `json:"excluded_days"`

	Overlap  string `json:"overlap"`  // SKIP or WAIT. Defaults to SKIP.
	Priority int    `json:"priority"` // of the runs: the READY run with the highest priority is opened first
	Params   string `json:"params"`   // of the runs

	// The store sets the following fields; a caller leaves them zero.
	ID       string    `json:"trigger_id"` // follows from the own_sign and the name
	Status   string    `json:"status"`
	Message  string    `json:"message"`
	Fires    int64     `json:"fires"`              // slots that have fired, without those whose run was SKIPPED
	Missed   int64     `json:"missed"`             // slots that will never fire
	MissedAt time.Time `json:"missed_at,omitzero"` // the newest of them, until an operator acknowledges it (R19)
	// Skipped is the number of slots whose runs are SKIPPED, since the last slot that fired; SkippedSince is the first of
	// them. Both are zero after an operator has acknowledged them (R19).
	Skipped      int64     `json:"skipped"`
	SkippedSince time.Time `json:"skipped_since,omitzero"`

	NextFireAt time.Time `json:"next_fire_at,omitzero"` // the next slot, later by the jitter
	PrevFireAt time.Time `json:"prev_fire_at,omitzero"` // the last slot that was due
	Version    int64     `json:"version"`
}

// WithDefaults returns the trigger with defaults for the fields that are zero, and its bounds in UTC at the database's
// resolution.
func (t Trigger) WithDefaults() Trigger {
	t.TimeZone = cmp.Or(t.TimeZone, "UTC")
	t.Misfire = cmp.Or(t.Misfire, MisfireOne)
	t.MisfireAfter = cmp.Or(t.MisfireAfter, time.Minute)
	t.CatchupMax = cmp.Or(t.CatchupMax, 100)
	t.Overlap = cmp.Or(t.Overlap, OverlapSkip)
	t.StartAt, t.EndAt = t.StartAt.UTC().Truncate(time.Microsecond), t.EndAt.UTC().Truncate(time.Microsecond)
	return t
}

// Validate checks a trigger as far as that needs no database. Only the database knows whether the target can have runs.
func (t Trigger) Validate() error {
	if err := t.checkTexts(); err != nil {
		return err // the other errors would repeat the texts
	}
	_, err := t.WithDefaults().replace(Trigger{}, false, "", time.Now()) // any time serves: only the error is used
	return sqldb.Wrap(err, "trigger %s", t.Name)
}

func (t Trigger) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	errs = append(errs, t.validateJitter(), validPriority(t.Priority), validTime("start_at", t.StartAt),
		validTime("end_at", t.EndAt))
	if t.MaxFires < 0 || t.MaxFires > mostFires {
		bad("max_fires (%d) must be between 0 and %d", t.MaxFires, mostFires)
	}
	if !t.EndAt.IsZero() && t.EndAt.Before(t.StartAt) {
		bad("end_at (%s) must not be before start_at (%s)", t.EndAt.Format(time.RFC3339), t.StartAt.Format(time.RFC3339))
	}
	if t.Misfire != MisfireOne && t.Misfire != MisfireSkip && t.Misfire != MisfireAll {
		bad("misfire (%q) must be ONE, SKIP or ALL", t.Misfire)
	}
	if t.MisfireAfter < time.Millisecond || t.MisfireAfter > sqldb.MaxDuration || t.MisfireAfter%time.Millisecond != 0 {
		bad("misfire_after (%s) must be from 1ms to %s, in whole milliseconds", t.MisfireAfter, sqldb.MaxDuration)
	}
	if t.CatchupMax < 1 || t.CatchupMax > maxCatchup {
		bad("catchup_max (%d) must be between 1 and %d", t.CatchupMax, maxCatchup)
	}
	if t.Overlap != OverlapSkip && t.Overlap != OverlapWait {
		bad("overlap (%q) must be SKIP or WAIT", t.Overlap)
	}
	if _, err := t.parse(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkTexts checks that the texts fit into their columns, before a statement or another error has them (X12).
func (t Trigger) checkTexts() error {
	err := cmp.Or(
		roster.ValidArgument("trigger", t.Name, 150),
		sqldb.CheckText("the task type", t.Target, roster.MaxTaskType), // it may be unknown, which its transaction finds
		sqldb.CheckText("kind", t.Kind, maxWord), sqldb.CheckText("expression", t.Expression, MaxExpression),
		sqldb.CheckText("time_zone", t.TimeZone, MaxTimeZone), sqldb.CheckText("misfire", t.Misfire, maxWord),
		sqldb.CheckText("overlap", t.Overlap, maxWord),
		sqldb.CheckText("excluded_days", t.ExcludedDays, maxExcludedDays), validParams(t.Params),
	)
	return sqldb.Wrap(err, "trigger %.60q", t.Name)
}

// The widths of columns, in bytes.
const (
	MaxExpression = 255 // of a cron expression
	MaxTimeZone   = 64  // of the name of a time zone
	maxWord       = 20  // of a word that Rota knows, such as CRON
)

// maxExcludedDays is the longest list of excluded days, in bytes.
const maxExcludedDays = 2_000

// mostFires is the upper bound of MaxFires, as the constraint of its column has it.
const mostFires = 1_000_000_000_000

// maxCatchup is the upper bound of CatchupMax, and so of the runs that one firing inserts.
const maxCatchup = 1_000

// parse returns the computation of the trigger's slots, which knows no jitter. It fails if kind, expression, time zone
// or excluded days are invalid.
func (t Trigger) parse() (slots.Trigger, error) {
	schedule, err := slots.Parse(t.Kind, t.Expression, t.TimeZone, t.StartAt)
	if err == nil {
		schedule, err = slots.Without(schedule, t.ExcludedDays)
	}
	return slots.Trigger{
		Schedule: schedule, StartAt: t.StartAt, EndAt: t.EndAt, MaxFires: t.MaxFires, Fires: t.Fires,
		NextFireAt: t.nextSlot(), Misfire: t.Misfire, MisfireAfter: t.MisfireAfter, CatchupMax: t.CatchupMax,
	}, err
}

// triggerNamespace is the namespace of the UUIDs of triggers.
var triggerNamespace = uuid.MustParse("6f1d3c1e-54a0-4d5b-9a53-8a1c2f1f7f0e")

// triggerID returns the id that follows from the own_sign and the name. A trigger that is deleted and made again keeps
// its id, and so its slots have the keys of the runs that they fired before (R2).
func triggerID(ownSign, name string) string {
	return uuid.NewSHA1(triggerNamespace, []byte(ownSign+"\x00"+name)).String()
}

// runKey returns the key of the run of a slot.
func (t Trigger) runKey(slot time.Time) string {
	return t.ID + "/" + slot.UTC().Format(time.RFC3339Nano)
}

// ReadTrigger returns a trigger under its target's lock row. It returns ErrUnknownTrigger if no trigger has that name.
func ReadTrigger(ctx context.Context, l *roster.LockTx, name string) (Trigger, error) {
	t, found, err := sqldb.Record[Trigger](ctx, l, `SELECT {columns} FROM schedule_trigger
		WHERE own_sign = ? AND name = ?`, l.OwnSign, name)
	if err == nil && !found {
		err = ErrUnknownTrigger
	}
	return t, err
}

// writeTrigger writes the row of a trigger, and an event.
func writeTrigger(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool, actor string) error {
	if err := writeTriggerRow(ctx, l, t, old, there); err != nil {
		return err
	}
	return recordTrigger(ctx, l, actor, "trigger "+t.Name+" was defined")
}

func writeTriggerRow(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool) error {
	row := struct {
		Trigger
		OwnSign string `json:"own_sign"`
	}{t, l.OwnSign}
	if !there {
		err := sqldb.Insert(ctx, l.Tx, "schedule_trigger", row)
		if l.Dialect.Class(err) == sqldb.Duplicate {
			err = sqldb.ErrRaced // another transaction made it for another target, under the lock row of that target
		}
		return err
	}
	return sqldb.Changed(sqldb.Update(ctx, l.Tx, "schedule_trigger", row, `own_sign = ? AND name = ? AND version = ?`,
		l.OwnSign, t.Name, old.Version))
}

// maxJitter is the upper bound of Jitter.
const maxJitter = 24 * time.Hour

// delay returns how much later than its slots the trigger fires. It follows from the trigger's id, so that all servers
// agree and the slots keep their distance.
func (t Trigger) delay() time.Duration {
	n := t.Jitter.Milliseconds()
	if n <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.ID)) // never fails
	return time.Duration(h.Sum64()%uint64(n)) * time.Millisecond
}

// firingAt returns when a slot fires, or zero for the zero slot.
func (t Trigger) firingAt(slot time.Time) time.Time {
	if slot.IsZero() {
		return slot
	}
	return slot.Add(t.delay())
}

// nextSlot returns the slot that fires next, or zero if there is none.
func (t Trigger) nextSlot() time.Time {
	if t.NextFireAt.IsZero() {
		return time.Time{}
	}
	return t.NextFireAt.Add(-t.delay())
}

// first returns when the trigger fires next, as of now, or zero if it is done.
func (t Trigger) first(a slots.Trigger, now time.Time) time.Time {
	return t.firingAt(a.First(now.Add(-t.delay())))
}

func (t Trigger) validateJitter() error {
	switch {
	case t.Jitter < 0 || t.Jitter > maxJitter || t.Jitter%time.Millisecond != 0:
		return fmt.Errorf("jitter (%s) must be from 0s to %s, in whole milliseconds", t.Jitter, maxJitter)
	case t.Jitter > 0 && t.Kind == TriggerOnce:
		return fmt.Errorf("jitter (%s) must not be set for kind ONCE", t.Jitter)
	}
	return nil
}
