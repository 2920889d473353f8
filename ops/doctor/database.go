package doctor

import (
	"context"
	"fmt"
	"strings"
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

// notes adds what there is to know about a database.
func (d *diagnosis) notes(ctx context.Context, db *sqldb.DB) error {
	if look := db.Database.Notes; look != nil {
		notes, err := look(ctx, db.Store)
		if err != nil {
			return err
		}
		for _, n := range notes {
			c := d.note(condition.KindOf(n.Kind), n.Hint, "%s", n.Finding)
			c.Subject = n.Subject
			switch {
			case n.OK:
				c.Status = condition.OK
			case n.Problem:
				c.Status = condition.Problem
			}
		}
	}
	return nil
}

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

// need lists the rights that a worker needs on a table.
type need struct{ table, verbs, key string }

// needs are the least rights of a worker, as docs/security.md lists them.
var needs = []need{
	{"schedule_task_type", "SELECT INSERT", "task_type"},
	{"schedule_task_running", "SELECT INSERT UPDATE", "task_type"},
	{"schedule_environment", "SELECT INSERT UPDATE", "own_sign"},
	{"schedule_server", "SELECT INSERT UPDATE DELETE", "uuid"},
	{"schedule_server_version", "SELECT INSERT UPDATE DELETE", "uuid"},
	{"schedule_server_history", "SELECT INSERT DELETE", "uuid"},
	{"schedule_queue", "SELECT INSERT UPDATE DELETE", "task_type"},
	{"schedule_queue_setting", "SELECT INSERT DELETE", "task_type"},
	{"schedule_data", "SELECT INSERT UPDATE", "name"},
	{"schedule_event", "SELECT INSERT UPDATE DELETE", "event_id"},
	{"schedule_failed_item", "SELECT INSERT UPDATE DELETE", "task_type"},
	{"schedule_backlog", "SELECT INSERT UPDATE DELETE", "task_type"},
	{"schedule_run", "SELECT INSERT UPDATE DELETE", "run_id"},
	{"schedule_run_queue", "SELECT INSERT UPDATE DELETE", "run_id"},
	{"schedule_run_item", "SELECT INSERT UPDATE DELETE", "run_id"},
	{"schedule_run_dep", "SELECT INSERT DELETE", "run_id"},
	{"schedule_submission", "SELECT INSERT UPDATE DELETE", "run_key"},
	{"schedule_task_after", "SELECT INSERT DELETE", "task_type"},
	{"schedule_trigger", "SELECT INSERT UPDATE DELETE", "name"},
	{"schedule_backfill", "SELECT INSERT UPDATE DELETE", "backfill_id"},
	{"schedule_assignment", "SELECT", ""}, // the doctor itself reads it
	{"schedule_schema_version", "SELECT", ""},
	{"schedule_schema_lock", "SELECT", ""},
}

// privileges reports what this role lacks of the rights of a worker.
func (d databaseCheck) privileges(ctx context.Context) error {
	lacking, err := lackingRights(ctx, d.db, needs)
	if err == nil && !d.lacking(lacking, "this role") {
		d.ok(condition.Privileges, "this role has all rights on the roster's tables that a worker needs")
	}
	return err
}

// lacking reports rights that a role lacks, or that were not tried.
func (d *diagnosis) lacking(r rights, role string) bool {
	switch {
	case r.untried != "":
		d.advise(condition.Privileges, "find the transaction that holds a lock and does not end", "%s", r.untried)
	case len(r.missing) > 0:
		d.note(condition.Privileges, "for a worker's role: GRANT "+strings.Join(r.missing, "; GRANT "),
			"%s lacks rights that a worker needs: %s", role, strings.Join(r.missing, "; "))
	default:
		return false
	}
	return true
}

// rights are the rights that a role lacks.
type rights struct {
	missing []string
	untried string // why not all of them could be tried
}

// lackingRights tries each right with a statement that matches no row: the catalogs of rights differ too much between
// databases.
func lackingRights(ctx context.Context, db *sqldb.DB, needs []need) (r rights, err error) {
	for _, n := range needs {
		var verbs []string
		for verb := range strings.FieldsSeq(n.verbs) {
			err := db.Retry(ctx, func() (bool, error) {
				_, err := db.Exec(ctx, n.probe(verb))
				return true, err // a repetition does no harm: it matches no row
			})
			switch {
			case err == nil:
			case db.Denied(err):
				verbs = append(verbs, verb)
			case db.Transient(err):
				r.untried = fmt.Sprintf("cannot try %s on %s with a statement that matches no row: %s", verb, n.table,
					sqldb.OneLine(err))
				return r, nil
			default:
				return r, fmt.Errorf("try %s on %s: %w", verb, n.table, err)
			}
		}
		if len(verbs) > 0 {
			r.missing = append(r.missing, strings.Join(verbs, ", ")+" ON "+n.table)
		}
	}
	return r, nil
}

// probe returns a statement that needs a right on the table and matches no row.
func (n need) probe(verb string) string {
	switch verb {
	case "INSERT":
		return fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE 1 = 0", n.table, n.table)
	case "UPDATE":
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE 1 = 0", n.table, n.key, n.key)
	case "DELETE":
		return fmt.Sprintf("DELETE FROM %s WHERE 1 = 0", n.table)
	}
	return fmt.Sprintf("SELECT 1 FROM %s WHERE 1 = 0", n.table)
}
