package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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

// The misfire policies: which slots fire when several are due or one is old, because no worker was running or the trigger
// was paused.
const (
	MisfireOne  = slots.MisfireOne  // the newest
	MisfireSkip = slots.MisfireSkip // the newest, if it is younger than MisfireAfter
	MisfireAll  = slots.MisfireAll  // each; if more than CatchupMax are due, the newest CatchupMax
)

// The overlap policies: what happens to a slot while runs of its target are open (R4).
const (
	OverlapSkip = "SKIP" // its run is SKIPPED
	OverlapWait = "WAIT" // its run waits, if no other run waits already; else it is SKIPPED
)

// The states of a trigger.
const (
	TriggerActive = "ACTIVE"
	TriggerPaused = "PAUSED" // it misses its slots; after a resume its misfire policy selects those that still fire
	TriggerDone   = "DONE"   // it has no more slots
	TriggerError  = "ERROR"  // its row is invalid; the message says why
)

// ErrUnknownTrigger means that no trigger in this own_sign has that name.
var ErrUnknownTrigger = errors.New("unknown trigger")

// Trigger makes runs of a task type at certain times, a row of schedule_trigger. Its slots are the instants at which it is
// due, by the database's clock.
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
	MaxFires int64     `json:"max_fires"` // after that many slots the trigger is DONE. Defaults to no bound.

	Misfire      string        `json:"misfire"`                 // ONE, SKIP or ALL. Defaults to ONE.
	MisfireAfter time.Duration `json:"-" db:"misfire_after_ms"` // Defaults to 1 min.
	// CatchupMax bounds the missed slots that ALL fires at once. Defaults to 100.
	CatchupMax int    `json:"catchup_max"`
	Overlap    string `json:"overlap"`  // SKIP or WAIT. Defaults to SKIP.
	Priority   int    `json:"priority"` // of the runs: the READY run with the highest priority is opened first
	Params     string `json:"params"`   // of the runs

	// The store sets the following fields; a caller leaves them zero.
	ID         string    `json:"trigger_id"` // follows from the own_sign and the name
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	Fires      int64     `json:"fires"`  // slots that have fired
	Missed     int64     `json:"missed"` // slots that will never fire
	NextFireAt time.Time `json:"next_fire_at,omitzero"`
	PrevFireAt time.Time `json:"prev_fire_at,omitzero"`
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

func (t Trigger) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	errs = append(errs, roster.ValidName("trigger", t.Name, 150), validParams(t.Params))
	if len(t.Expression) > MaxExpression {
		bad("expression must have at most %d bytes, not %d", MaxExpression, len(t.Expression))
	}
	if t.MaxFires < 0 {
		bad("max_fires (%d) must not be negative", t.MaxFires)
	}
	if !t.EndAt.IsZero() && t.EndAt.Before(t.StartAt) {
		bad("end_at (%s) must not be before start_at (%s)", t.EndAt.Format(time.RFC3339), t.StartAt.Format(time.RFC3339))
	}
	if t.Misfire != MisfireOne && t.Misfire != MisfireSkip && t.Misfire != MisfireAll {
		bad("misfire (%q) must be ONE, SKIP or ALL", t.Misfire)
	}
	if t.MisfireAfter < time.Millisecond {
		bad("misfire_after (%s) must be at least 1ms", t.MisfireAfter)
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

// MaxExpression is the width of the column expression, in bytes.
const MaxExpression = 255

// maxCatchup is the upper bound of CatchupMax, and so of the runs that one firing inserts.
const maxCatchup = 1_000

// parse returns the computation of the trigger's slots. It fails if kind, expression or time zone are invalid.
func (t Trigger) parse() (slots.Trigger, error) {
	schedule, err := slots.Parse(t.Kind, t.Expression, t.TimeZone, t.StartAt)
	return slots.Trigger{
		Schedule: schedule, StartAt: t.StartAt, EndAt: t.EndAt, MaxFires: t.MaxFires, Fires: t.Fires, NextFireAt: t.NextFireAt,
		Misfire: t.Misfire, MisfireAfter: t.MisfireAfter, CatchupMax: t.CatchupMax,
	}, err
}

// triggerNamespace is the namespace of the UUIDs of triggers.
var triggerNamespace = uuid.MustParse("6f1d3c1e-54a0-4d5b-9a53-8a1c2f1f7f0e")

// triggerID returns the id that follows from the own_sign and the name. A trigger that is deleted and made again keeps its
// id, and so its slots have the keys of the runs that they fired before (R2).
func triggerID(ownSign, name string) string {
	return uuid.NewSHA1(triggerNamespace, []byte(ownSign+"\x00"+name)).String()
}

// runKey returns the key of the run of a slot.
func (t Trigger) runKey(slot time.Time) string {
	return t.ID + "/" + slot.UTC().Format(time.RFC3339Nano)
}

// Triggers reads, changes and fires triggers.
type Triggers struct{ core }

// Define makes a trigger unless one of its name exists, and returns the one that is in force. Slots before that time
// do not fire, except the slot of ONCE, which is due until it has fired. Define returns ErrUnknownTask if the target
// has no row.
func (ts *Triggers) Define(ctx context.Context, t Trigger) (Trigger, error) {
	return ts.put(ctx, t, "", false)
}

// Apply makes a trigger or changes the one of its name, and returns the result. A PAUSED trigger stays PAUSED. If a
// field that determines the slots changes, the new slots start from now, and none of the slots that have fired fires again.
func (ts *Triggers) Apply(ctx context.Context, t Trigger, actor string) (Trigger, error) {
	return ts.put(ctx, t, actor, true)
}

func (ts *Triggers) put(ctx context.Context, t Trigger, actor string, change bool) (now Trigger, err error) {
	t = t.WithDefaults()
	if err = ensureLockRow(ctx, ts.roster, t.Target); err != nil {
		return Trigger{}, fmt.Errorf("trigger %s: target %s: %w", t.Name, t.Target, err)
	}
	err = ts.roster.UnderLock(ctx, t.Target, func(ctx context.Context, l *roster.LockTx) (err error) {
		now, err = PutTrigger(ctx, l, t, change, actor)
		return err
	})
	if err != nil {
		return Trigger{}, fmt.Errorf("trigger %s of %w", t.Name, err)
	}
	return now, nil
}

// PutTrigger makes a trigger, and with change it also changes an existing one. It returns the trigger that is then in force.
func PutTrigger(ctx context.Context, l *roster.LockTx, t Trigger, change bool, actor string) (Trigger, error) {
	old, err := ReadTrigger(ctx, l, t.Name)
	there := err == nil
	if err != nil && !errors.Is(err, ErrUnknownTrigger) {
		return Trigger{}, err
	}
	if there && !change {
		return old, nil
	}
	if t, err = t.replace(old, there, l.OwnSign, l.Now); err != nil {
		return Trigger{}, err
	}
	return t, writeTrigger(ctx, l, t, old, there, actor)
}

// replace returns the trigger that results when t is written over old, or as a new trigger if old does not exist.
func (t Trigger) replace(old Trigger, there bool, ownSign string, now time.Time) (Trigger, error) {
	if t.StartAt.IsZero() && t.Kind == TriggerEvery {
		t.StartAt = now // a new trigger counts its slots from now; an existing one keeps its origin
		if old.Kind == TriggerEvery {
			t.StartAt = old.StartAt
		}
	}
	if err := t.validate(); err != nil {
		return Trigger{}, err
	}
	t.ID, t.Fires, t.Missed, t.PrevFireAt, t.Version = triggerID(ownSign, t.Name), old.Fires, old.Missed, old.PrevFireAt, old.Version+1
	t.NextFireAt, t.Status = old.NextFireAt, old.Status
	if !there || !t.sameSlots(old) || old.Status == TriggerError {
		if err := t.resetSchedule(now); err != nil {
			return Trigger{}, err
		}
		if old.Status == TriggerPaused {
			t.Status = TriggerPaused
		}
	}
	return t, nil
}

// writeTrigger writes the row of a trigger, and an event.
func writeTrigger(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool, actor string) error {
	if err := writeTriggerRow(ctx, l, t, old, there); err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "defined: " + t.Name})
}

// resetSchedule sets the first slot after now, and the status that follows from it.
func (t *Trigger) resetSchedule(now time.Time) error {
	a, err := t.parse()
	if err != nil {
		return err
	}
	t.NextFireAt, t.Message = a.First(now), ""
	t.Status = TriggerActive
	if t.NextFireAt.IsZero() {
		t.Status = TriggerDone
	}
	return nil
}

// sameSlots reports whether two triggers are due at the same instants.
func (t Trigger) sameSlots(o Trigger) bool {
	return t.Kind == o.Kind && t.Expression == o.Expression && t.TimeZone == o.TimeZone && t.StartAt.Equal(o.StartAt) &&
		t.EndAt.Equal(o.EndAt) && t.MaxFires == o.MaxFires && t.Target == o.Target
}

func writeTriggerRow(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool) error {
	var names []string
	var args []any
	for _, col := range triggerValues(l, t) {
		names, args = append(names, col.name), append(args, col.value)
	}
	if !there {
		_, err := l.Exec(ctx, `INSERT INTO schedule_trigger (`+strings.Join(names, ", ")+`, own_sign, name) VALUES (`+sqldb.Marks(len(args)+2)+`)`,
			append(args, l.OwnSign, t.Name)...)
		if l.Dialect.Class(err) == sqldb.Duplicate {
			err = sqldb.ErrRaced // another transaction made it for another target, under the lock row of that target
		}
		return err
	}
	n, err := l.Exec(ctx, `UPDATE schedule_trigger SET `+strings.Join(names, " = ?, ")+` = ? WHERE own_sign = ? AND name = ? AND version = ?`,
		append(args, l.OwnSign, t.Name, old.Version)...)
	if err == nil && n == 0 {
		err = sqldb.ErrRaced
	}
	return err
}

// columnValue is a column and the value that is written to it.
type columnValue struct {
	name  string
	value any
}

// triggerValues returns the columns of a trigger, except its key, with their values.
func triggerValues(l *roster.LockTx, t Trigger) []columnValue {
	return []columnValue{
		{"trigger_id", t.ID},
		{"target", t.Target},
		{"kind", t.Kind},
		{"expression", t.Expression},
		{"time_zone", t.TimeZone},
		{"start_at", l.Dialect.TimeOrNull(t.StartAt)},
		{"end_at", l.Dialect.TimeOrNull(t.EndAt)},
		{"max_fires", t.MaxFires},
		{"fires", t.Fires},
		{"next_fire_at", l.Dialect.TimeOrNull(t.NextFireAt)},
		{"prev_fire_at", l.Dialect.TimeOrNull(t.PrevFireAt)},
		{"status", t.Status},
		{"misfire", t.Misfire},
		{"misfire_after_ms", t.MisfireAfter.Milliseconds()},
		{"catchup_max", t.CatchupMax},
		{"overlap", t.Overlap},
		{"priority", t.Priority},
		{"params", t.Params},
		{"missed", t.Missed},
		{"message", sqldb.Clean(t.Message)},
		{"version", t.Version},
	}
}

// TriggerColumns are the columns that [ScanTrigger] scans, in its order.
const TriggerColumns = `name, target, kind, expression, time_zone, start_at, end_at, max_fires, misfire, misfire_after_ms, catchup_max, overlap,
	priority, params, trigger_id, status, message, fires, missed, next_fire_at, prev_fire_at, version`

// ScanTrigger returns the trigger of a row of [TriggerColumns].
func ScanTrigger(rows interface{ Scan(...any) error }) (t Trigger, err error) {
	err = rows.Scan(&t.Name, &t.Target, &t.Kind, &t.Expression, &t.TimeZone, (*sqldb.Instant)(&t.StartAt), (*sqldb.Instant)(&t.EndAt), &t.MaxFires, &t.Misfire,
		(*sqldb.Millis)(&t.MisfireAfter), &t.CatchupMax, &t.Overlap, &t.Priority, &t.Params, &t.ID, &t.Status, &t.Message, &t.Fires, &t.Missed,
		(*sqldb.Instant)(&t.NextFireAt), (*sqldb.Instant)(&t.PrevFireAt), &t.Version)
	return t, err
}

// ReadTrigger returns a trigger under its target's lock row. It returns ErrUnknownTrigger if none has that name.
func ReadTrigger(ctx context.Context, l *roster.LockTx, name string) (Trigger, error) {
	t, err := ScanTrigger(l.QueryRow(ctx, `SELECT `+TriggerColumns+` FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name))
	if sqldb.NoRows(err) {
		err = ErrUnknownTrigger
	}
	return t, err
}
