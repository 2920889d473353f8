package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// databaseCheck checks the database, and the rights of this role.
type databaseCheck struct{ *diagnosis }

// version reports the kind and version of the database. Open refuses a replica and a version that is too old.
func (d databaseCheck) version(ctx context.Context) error {
	name, err := sqldb.Value[string](ctx, d.db, d.db.Version)
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	d.ok(condition.Database, "%s, own_sign %s, at %s; it accepts writes", name, d.c.OwnSign(), d.db.Database.Address)
	return nil
}

// transactions checks the settings of the database that the fence relies on.
func (d databaseCheck) transactions(ctx context.Context) error { return d.notes(ctx, d.db) }

// notableSkew is the difference between two clocks that makes the logs of their hosts hard to compare.
const notableSkew = time.Second

// clockSkew compares this host's clock with the database's. It assumes that the database reads its clock in the middle
// of the round trip.
func (d databaseCheck) clockSkew(ctx context.Context) error {
	before := time.Now()
	now, err := d.db.Clock(ctx)
	if err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	trip := time.Since(before)
	ahead := before.Add(trip / 2).Sub(now).Round(time.Millisecond)
	if ahead.Abs() < notableSkew+trip {
		d.ok(condition.Clock, "this host's clock is the database's within %s, a round trip takes %s",
			max(ahead.Abs(), time.Millisecond), trip.Round(time.Microsecond))
		return nil
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	d.note(condition.Clock, "synchronise both (NTP)", "this host's clock is %s %s the database's, which decides: "+
		"logs and tables show different times", ahead.Abs().Round(time.Second), side)
	return nil
}

// schemaVersion reports a schema that is newer than this program. Open refuses a schema that the program must not use.
func (d databaseCheck) schemaVersion(ctx context.Context) error {
	list, err := schema.Status(ctx, d.db.Store, d.db.Name)
	if err != nil {
		return err
	}
	if have := list[len(list)-1].Version; have > schema.Latest() {
		d.add(condition.Schema, "version %d, newer than this program's %d; both may run on it", have, schema.Latest())
		return nil
	}
	d.ok(condition.Schema, "version %d, which this program expects", schema.Latest())
	return nil
}

// history reports a loss of history that no operator has acknowledged (H7).
func (d databaseCheck) history(ctx context.Context) error {
	loss, found, err := d.c.Roster().Loss(ctx)
	if err == nil && found {
		d.findings = append(d.findings, roster.LossCondition(loss))
	}
	return err
}

// privileges reports what this role lacks of the rights of a worker.
func (d databaseCheck) privileges(ctx context.Context) error {
	lacking, err := lackingRights(ctx, d.db, needs)
	if err == nil && !d.lacking(lacking, "this role") {
		d.ok(condition.Privileges, "this role has all rights on the roster's tables that a worker needs")
	}
	return err
}
