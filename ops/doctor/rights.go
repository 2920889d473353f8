package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

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
