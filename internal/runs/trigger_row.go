package runs

import (
	"context"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// TriggerColumns are the columns that [ScanTrigger] scans, in its order.
const TriggerColumns = `name, target, kind, expression, time_zone, start_at, end_at, max_fires, misfire, misfire_after_ms, catchup_max, overlap,
	priority, params, trigger_id, status, message, fires, missed, missed_at, skipped, skipped_since, next_fire_at, prev_fire_at, jitter_ms, excluded_days, version`

// ScanTrigger returns the trigger of a row of [TriggerColumns].
func ScanTrigger(rows interface{ Scan(...any) error }) (t Trigger, err error) {
	err = rows.Scan(&t.Name, &t.Target, &t.Kind, &t.Expression, &t.TimeZone, (*sqldb.Instant)(&t.StartAt), (*sqldb.Instant)(&t.EndAt), &t.MaxFires, &t.Misfire,
		(*sqldb.Millis)(&t.MisfireAfter), &t.CatchupMax, &t.Overlap, &t.Priority, &t.Params, &t.ID, &t.Status, &t.Message, &t.Fires, &t.Missed,
		(*sqldb.Instant)(&t.MissedAt), &t.Skipped, (*sqldb.Instant)(&t.SkippedSince), (*sqldb.Instant)(&t.NextFireAt), (*sqldb.Instant)(&t.PrevFireAt), (*sqldb.Millis)(&t.Jitter), &t.ExcludedDays, &t.Version)
	return t, err
}

// ReadTrigger returns a trigger under its target's lock row. It returns ErrUnknownTrigger if no trigger
// has that name.
func ReadTrigger(ctx context.Context, l *roster.LockTx, name string) (Trigger, error) {
	t, err := ScanTrigger(l.QueryRow(ctx, `SELECT `+TriggerColumns+` FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name))
	if sqldb.NoRows(err) {
		err = ErrUnknownTrigger
	}
	return t, err
}

// writeTrigger writes the row of a trigger, and an event.
func writeTrigger(ctx context.Context, l *roster.LockTx, t, old Trigger, there bool, actor string) error {
	if err := writeTriggerRow(ctx, l, t, old, there); err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "trigger " + t.Name + " was defined"})
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
		{"jitter_ms", t.Jitter.Milliseconds()},
		{"excluded_days", t.ExcludedDays},
		{"missed", t.Missed},
		{"missed_at", l.Dialect.TimeOrNull(t.MissedAt)},
		{"skipped", t.Skipped},
		{"skipped_since", l.Dialect.TimeOrNull(t.SkippedSince)},
		{"message", sqldb.Clean(t.Message)},
		{"version", t.Version},
	}
}
