package centertest

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/schema"
)

// RunUnconstrained runs the cases about values that the CHECK constraints refuse, against the empty database at url. It
// drops the constraints first: a table may have lost them, and MySQL before 8.0.16 does not enforce them.
func RunUnconstrained(t *testing.T, url string) {
	log, logged := logtest.New(slog.LevelInfo)
	c := Open(t, url, center.Options{Logger: log})
	dropConstraints(t, c)
	testInvalidServers(t, c)
	testInvalidTimes(t, c)
	testUnreadableValues(t, c)
	testInvalidQueues(t, c)
	testInvalidLockRow(t, c)
	testInvalidTotal(t, c)
	t.Run("S13 each column with what it must not have", func(t *testing.T) { testHostileColumns(t, c) })
	t.Run("S13 the audit logs table, row and column", func(t *testing.T) { testInvalidLog(t, c, logged) })
}

// constraints lists the CHECK constraints and their tables. SQLite cannot drop them: see execUnchecked.
var constraints = map[schema.Dialect]string{
	schema.Postgres: `SELECT CAST(conrelid AS regclass), conname FROM pg_constraint WHERE contype = 'c' AND conname LIKE 'ck\_%'`,
	schema.MySQL: `SELECT table_name, constraint_name FROM information_schema.table_constraints
		WHERE constraint_schema = DATABASE() AND constraint_type = 'CHECK'`,
}

func dropConstraints(t *testing.T, c *center.Center) {
	query := constraints[c.Dialect().Family()]
	if query == "" {
		return
	}
	rows, err := c.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DB().ExecContext(t.Context(), "ALTER TABLE "+table+" DROP CONSTRAINT "+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// execUnchecked does what exec does on a connection that checks no constraints.
func (r *taskType) execUnchecked(format string, args ...any) {
	r.Helper()
	if r.c.Dialect() != schema.SQLite {
		r.exec(format, args...)
		return
	}
	conn, err := r.c.DB().Conn(r.Context())
	r.must(err)
	defer conn.Close()
	for _, statement := range []string{"PRAGMA ignore_check_constraints = ON", fmt.Sprintf(format, args...), "PRAGMA ignore_check_constraints = OFF"} {
		_, err := conn.ExecContext(r.Context(), statement)
		r.must(err)
	}
}

// invalidTimes are values of a column of times that no server can work with, as SQL.
func invalidTimes(d schema.Dialect) []string {
	switch d {
	case schema.Postgres:
		return []string{"'infinity'", "'-infinity'", "'200000-01-01'", "'0044-03-15 BC'"}
	case schema.SQLite:
		return []string{"'soon'", "''", "'infinity'", "'2026-02-31 10:00:00.000000'"}
	default:
		return []string{"'0001-01-01'"}
	}
}

// wantLogged checks that the log has an entry with these fields.
func (r *fixture) wantLogged(lines []logtest.Line, table, row, column string) {
	r.Helper()
	if !slices.ContainsFunc(lines, func(l logtest.Line) bool {
		return l.Fields["table"] == table && l.Fields["row"] == row && l.Fields["column"] == column && l.Fields["task_type"] == r.task
	}) {
		r.Errorf("the log does not name column %s of row %s in %s", column, row, table)
	}
}
