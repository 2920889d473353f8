package runs

import (
	"cmp"
	"context"
	"database/sql"
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
	TriggerCron  = slots.KindCron  // a cron expression with seconds, as Quartz has them
	TriggerEvery = slots.KindEvery // a Go duration, counted from StartAt
	TriggerOnce  = slots.KindOnce  // a time in RFC 3339
)

// What fires of the slots that are due when they are several or old, because nobody was there, or the trigger paused.
const (
	MisfireOne  = slots.MisfireOne  // the newest
	MisfireSkip = slots.MisfireSkip // the newest, if it is younger than MisfireAfter
	MisfireAll  = slots.MisfireAll  // each, up to CatchupMax: then the newest
)

// What becomes of a slot while runs of its target are open (R4).
const (
	OverlapSkip = "SKIP" // its run is SKIPPED
	OverlapWait = "WAIT" // its run waits, if no other waits already; else it is SKIPPED
)

// The states of a trigger.
const (
	TriggerActive = "ACTIVE"
	TriggerPaused = "PAUSED" // slots are missed, and when it is resumed its misfire says which are made up for
	TriggerDone   = "DONE"   // there is no slot any more
	TriggerError  = "ERROR"  // its row makes no sense; the message says why
)

// ErrUnknownTrigger means that there is no trigger of that name in this own_sign.
var ErrUnknownTrigger = errors.New("unknown trigger")

// Trigger is when runs of a task type begin by themselves, a row of schedule_trigger. Its slots, the instants at which
// it is due, are by the database's clock.
type Trigger struct {
	Name       string `json:"name"`       // unique in the own_sign; at most 150 bytes
	Target     string `json:"target"`     // a task type of mode RUN
	Kind       string `json:"kind"`       // CRON, EVERY or ONCE
	Expression string `json:"expression"` // at most 255 bytes
	TimeZone   string `json:"time_zone"`  // of CRON, such as Europe/Berlin. Defaults to UTC.
	// StartAt and EndAt bound the slots, both included; zero is no bound. From StartAt the slots of EVERY are counted;
	// there it defaults to when the trigger is made.
	StartAt  time.Time `json:"start_at,omitzero"`
	EndAt    time.Time `json:"end_at,omitzero"`
	MaxFires int64     `json:"max_fires"` // then the trigger is DONE. Defaults to no bound.

	Misfire      string        `json:"misfire"`                 // ONE, SKIP or ALL. Defaults to ONE.
	MisfireAfter time.Duration `json:"-" db:"misfire_after_ms"` // Defaults to 1 min.
	// CatchupMax bounds what ALL makes up for at once. Defaults to 100.
	CatchupMax int    `json:"catchup_max"`
	Overlap    string `json:"overlap"`  // SKIP or WAIT. Defaults to SKIP.
	Priority   int    `json:"priority"` // of the runs: of several that are READY the highest is opened first
	Params     string `json:"params"`   // of the runs

	// What follows is the store's.
	ID         string    `json:"trigger_id"` // the same for the same name
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	Fires      int64     `json:"fires"`  // slots that have fired
	Missed     int64     `json:"missed"` // slots that never will
	NextFireAt time.Time `json:"next_fire_at,omitzero"`
	PrevFireAt time.Time `json:"prev_fire_at,omitzero"`
	Version    int64     `json:"version"`
}

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

// maxExpression is the width of the column.
const MaxExpression = 255

// maxCatchup bounds the runs that one firing inserts.
const maxCatchup = 1_000

// parse reads the expression.
func (t Trigger) parse() (slots.Trigger, error) {
	schedule, err := slots.Parse(t.Kind, t.Expression, t.TimeZone, t.StartAt)
	return slots.Trigger{
		Schedule: schedule, StartAt: t.StartAt, EndAt: t.EndAt, MaxFires: t.MaxFires, Fires: t.Fires, NextFireAt: t.NextFireAt,
		Misfire: t.Misfire, MisfireAfter: t.MisfireAfter, CatchupMax: t.CatchupMax,
	}, err
}

// triggerNamespace is the name space of the ids of triggers.
var triggerNamespace = uuid.MustParse("6f1d3c1e-54a0-4d5b-9a53-8a1c2f1f7f0e")

// triggerID is the same for the same name, so that the slots of a trigger that was deleted and is made again have
// the keys of the runs that they have fired already (R2).
func triggerID(ownSign, name string) string {
	return uuid.NewSHA1(triggerNamespace, []byte(ownSign+"\x00"+name)).String()
}

// runKey is the key of the run of a slot.
func (t Trigger) runKey(slot time.Time) string {
	return t.ID + "/" + slot.UTC().Format(time.RFC3339Nano)
}

// DefineTrigger makes a trigger unless there is one of its name, and returns the one that is in force, whoever made
// it. Slots that lie before its making are not made up for, but for the one of ONCE, which is due until it has fired.
// ErrUnknownTask if the target has no row.
func (e *Engine) DefineTrigger(ctx context.Context, t Trigger) (Trigger, error) {
	return e.putTrigger(ctx, t, "", false)
}

// ApplyTrigger makes a trigger or changes the one of its name, and returns what it has become. One that is PAUSED
// stays so. If anything about its slots changes, they count from now on; what it has fired stays fired.
func (e *Engine) ApplyTrigger(ctx context.Context, t Trigger, actor string) (Trigger, error) {
	return e.putTrigger(ctx, t, actor, true)
}

func (e *Engine) putTrigger(ctx context.Context, t Trigger, actor string, change bool) (now Trigger, err error) {
	t = t.WithDefaults()
	if err = e.ensureLockRow(ctx, t.Target); err != nil {
		return Trigger{}, fmt.Errorf("trigger %s: target %s: %w", t.Name, t.Target, err)
	}
	err = e.roster.UnderLock(ctx, t.Target, func(ctx context.Context, l *roster.LockTx) (err error) {
		now, err = PutTrigger(ctx, l, t, change, actor)
		return err
	})
	if err != nil {
		return Trigger{}, fmt.Errorf("trigger %s of %w", t.Name, err)
	}
	return now, nil
}

// putTrigger makes a trigger, or changes the one of its name if that is wanted, and returns what is there then.
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

// over is what a trigger becomes that is written over the old one, if there is one.
func (t Trigger) replace(old Trigger, there bool, ownSign string, now time.Time) (Trigger, error) {
	if t.StartAt.IsZero() && t.Kind == TriggerEvery {
		t.StartAt = now // where the slots are counted from, unless they are counted already
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

// writeTrigger inserts a trigger, or changes the old one.
func writeTrigger(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool, actor string) error {
	if err := writeTriggerRow(ctx, l, t, old, there); err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "defined: " + t.Name})
}

// resetSchedule sets when a trigger is due first.
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
			err = sqldb.ErrRaced // for another target, whose lock row is another
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

// columnValue is a column and the parameter that it gets.
type columnValue struct {
	name  string
	value any
}

// triggerColumns are the columns of a trigger but for its key.
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

const TriggerColumns = `name, target, kind, expression, time_zone, start_at, end_at, max_fires, misfire, misfire_after_ms, catchup_max, overlap,
	priority, params, trigger_id, status, message, fires, missed, next_fire_at, prev_fire_at, version`

func ScanTrigger(rows interface{ Scan(...any) error }) (t Trigger, err error) {
	err = rows.Scan(&t.Name, &t.Target, &t.Kind, &t.Expression, &t.TimeZone, (*sqldb.Instant)(&t.StartAt), (*sqldb.Instant)(&t.EndAt), &t.MaxFires, &t.Misfire,
		(*sqldb.Millis)(&t.MisfireAfter), &t.CatchupMax, &t.Overlap, &t.Priority, &t.Params, &t.ID, &t.Status, &t.Message, &t.Fires, &t.Missed,
		(*sqldb.Instant)(&t.NextFireAt), (*sqldb.Instant)(&t.PrevFireAt), &t.Version)
	return t, err
}

// trigger reads a trigger. ErrUnknownTrigger if there is none of that name.
func ReadTrigger(ctx context.Context, l *roster.LockTx, name string) (Trigger, error) {
	t, err := ScanTrigger(l.QueryRow(ctx, `SELECT `+TriggerColumns+` FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name))
	if sqldb.NoRows(err) {
		err = ErrUnknownTrigger
	}
	return t, err
}

// Triggers returns the triggers of this own_sign, by name.
func (e *Engine) Triggers(ctx context.Context) (triggers []Trigger, err error) {
	err = e.db.Each(ctx, func(rows *sql.Rows) error {
		t, err := ScanTrigger(rows)
		triggers = append(triggers, t)
		return err
	}, `SELECT `+TriggerColumns+` FROM schedule_trigger WHERE own_sign = ? ORDER BY name`, e.ownSign)
	if err != nil {
		return nil, fmt.Errorf("read the triggers of %s: %w", e.ownSign, err)
	}
	return triggers, nil
}
