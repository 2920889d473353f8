package runs

import (
	"context"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ReadTrigger returns a trigger under its target's lock row. It returns ErrUnknownTrigger if no trigger
// has that name.
func ReadTrigger(ctx context.Context, l *roster.LockTx, name string) (Trigger, error) {
	t, found, err := sqldb.Record[Trigger](ctx, l, `SELECT {columns} FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name)
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
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "trigger " + t.Name + " was defined"})
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
	n, err := sqldb.Update(ctx, l.Tx, "schedule_trigger", row, `own_sign = ? AND name = ? AND version = ?`, l.OwnSign, t.Name, old.Version)
	if err == nil && n == 0 {
		err = sqldb.ErrRaced
	}
	return err
}
