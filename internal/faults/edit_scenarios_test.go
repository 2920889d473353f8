//go:build linux

package faults

import (
	"context"
	"slices"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/schema"
)

// editScenarios are rows that somebody edits by hand.
var editScenarios = []scenario{
	// PostgreSQL has a type for booleans
	{name: "edited-boolean", play: editedBoolean, kinds: []string{testdb.MariaDB, testdb.SQLite}, quick: true},
}

// editedBoolean: a boolean of the lock row is neither 0 nor 1, in a table that checks no constraints. The task type is
// paused, no worker expires or ends, and the doctor names the value.
func editedBoolean(s *stage) {
	s.execUnchecked(`UPDATE schedule_task_running SET paused = 2`)
	done := s.standstill()
	s.sleep(s.dead(2))
	if n := s.count(`SELECT COUNT(*) FROM history`); n != done {
		s.t.Errorf("%d items were done although the task type is paused", n-done)
	}
	found, err := doctor.Diagnose(s.t.Context(), ops.New(s.c), taskType)
	s.must(err)
	if !slices.ContainsFunc(found, func(c condition.Condition) bool { return c.Kind == condition.InvalidValue.Name }) {
		s.t.Errorf("the doctor does not name the value: %+v", found)
	}
	s.exec(`UPDATE schedule_task_running SET paused = 0`)
	s.works(20)
}

// execUnchecked runs a statement on a connection that checks no constraints. MySQL has no such connections.
func (s faultSteps) execUnchecked(statement string) {
	s.t.Helper()
	off := map[schema.Dialect]string{
		schema.MariaDB: `SET SESSION check_constraint_checks = 0`,
		schema.SQLite:  `PRAGMA ignore_check_constraints = ON`,
	}
	on := map[schema.Dialect]string{
		schema.MariaDB: `SET SESSION check_constraint_checks = 1`,
		schema.SQLite:  `PRAGMA ignore_check_constraints = OFF`,
	}
	ctx := context.WithoutCancel(s.t.Context())
	conn, err := s.c.DB().Conn(ctx)
	s.must(err)
	defer conn.Close()
	for _, text := range []string{off[s.c.Dialect()], statement, on[s.c.Dialect()]} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
	}
}
