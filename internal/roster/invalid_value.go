package roster

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// InvalidValue is a value in a row of the roster that no server can work with. The CHECK constraints of the tables
// refuse it; it is there if a table has lost its constraints, or if the database does not enforce them.
type InvalidValue struct {
	Table, Row, Column string
	Value              string // as the database writes it, at most 60 characters
	Rule               string // what the value must be
}

// String names the table, the row, the column and the value for an operator.
func (v InvalidValue) String() string {
	return fmt.Sprintf("%s (%s) of row %s in %s must %s", v.Column, v.Value, v.Row, v.Table, v.Rule)
}

// valueStart returns the beginning of a value, for people.
func valueStart(value string) string {
	const most = 60
	if letters := []rune(value); len(letters) > most {
		return string(letters[:most]) + "..."
	}
	return value
}

// mostInvalid bounds how many values InvalidValues returns.
const mostInvalid = 20

// InvalidValues returns values of the roster's rows that readers ignore or replace by a bound (S13). It returns one for
// each row, and at most 20.
func (p Planner) InvalidValues(ctx context.Context) (list []InvalidValue, err error) {
	for _, t := range checkedTables {
		if err := t.findInvalid(ctx, p, &list); err != nil {
			return nil, fmt.Errorf("look for invalid values in %s: %w", t.name, err)
		}
	}
	var removing, skipped string
	err = p.roster.DB.QueryRow(ctx, `SELECT removing, skipped FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`, p.taskType, p.roster.OwnSign).
		Scan((*sqldb.Text)(&removing), (*sqldb.Text)(&skipped))
	if err != nil && !sqldb.NoRows(err) {
		return nil, fmt.Errorf("read the lists of queues in the lock row: %w", err)
	}
	for _, column := range []struct{ name, value string }{{"removing", removing}, {"skipped", skipped}} {
		if column.value != "" && json.Unmarshal([]byte(column.value), new([]string)) != nil {
			list = append(list, InvalidValue{"schedule_task_running", p.roster.OwnSign, column.name, valueStart(column.value), "be a JSON list of queue ids"})
		}
	}
	return list, nil
}

// checkedTable is a table whose values are checked as its CHECK constraints do.
type checkedTable struct {
	name, key, taskType string // the columns that name the row for people and that hold the task type
	columns             []checkedColumn
}

// checkedColumn is a column of numbers with a largest value, or a column of times.
type checkedColumn struct {
	name        string
	least, most int64 // both 0 for a time
}

const maxInFlight = 1_000_000

const maxPlannerVersion = 1_000_000

const maxCounter = 1_000_000_000_000_000_000

// checkedTables are the tables that all servers of a roster read. The settings have rules of their own.
var checkedTables = []checkedTable{
	{"schedule_task_running", "own_sign", "task_type", []checkedColumn{
		{"queue_total", 0, MaxQueues},
		{"requested_total", 1, MaxQueues},
		{"epoch_high", 0, sqldb.MaxEpoch},
		{"partition_version", 0, maxCounter},
		{"membership_version", 0, maxCounter},
		{"planned_version", 0, maxCounter},
		{"plan_version", 0, maxCounter},
		{"item_version", 0, maxCounter},
		{"planner_version", 1, maxPlannerVersion},
		{"version", 0, maxCounter},
		{name: "reserved_until"},
		{name: "load_moves_until"},
	}},
	{"schedule_server", "uuid", "task_type", []checkedColumn{
		{"judge_dead_interval_ms", 0, sqldb.MaxDuration.Milliseconds()},
		{name: "register_time"},
		{name: "heartbeat_time"},
		{name: "watching_since"},
		{"beat_count", 0, maxCounter},
		{"drained_partition", 0, maxCounter},
		{"max_in_flight", 0, maxInFlight},
		{"max_in_flight_target", 0, maxInFlight},
		{"max_in_flight_version", 0, maxCounter},
		{"weight", 0, plan.MaxWeight},
		{"planner_version", 1, maxPlannerVersion},
	}},
	{"schedule_queue", "queue_id", "task_type", []checkedColumn{
		{"queue_index", 0, 1_000_000_000_000},
		{"epoch", 0, sqldb.MaxEpoch},
		{"plan_version", 0, maxCounter},
		{"crash_count", 0, 1_000_000_000_000},
		{name: "cur_since"},
		{name: "req_since"},
		{name: "reserved_until"},
		{name: "window_done_at"},
	}},
	{"schedule_trigger", "name", "target", []checkedColumn{
		{name: "next_fire_at"},
		{name: "prev_fire_at"},
		{name: "start_at"},
		{name: "end_at"},
	}},
	{"schedule_backfill", "backfill_id", "task_type", []checkedColumn{
		{"parallel", 1, 100},
		{name: "start_at"},
		{name: "from_at"},
		{name: "to_at"},
		{name: "next_slot_at"},
	}},
}

// findInvalid adds the invalid values of the table.
func (t checkedTable) findInvalid(ctx context.Context, p Planner, list *[]InvalidValue) error {
	var invalid, values strings.Builder
	rules := map[string]string{}
	for _, c := range t.columns {
		fmt.Fprintf(&invalid, " WHEN %s NOT BETWEEN %s THEN '%[1]s'", c.name, c.bounds())
		fmt.Fprintf(&values, " WHEN %s NOT BETWEEN %s THEN CONCAT('', %[1]s)", c.name, c.bounds())
		rules[c.name] = "be between " + c.bounds()
	}
	invalidColumn := "CASE" + invalid.String() + " END"
	return p.roster.DB.Each(ctx, func(rows *sql.Rows) error {
		v := InvalidValue{Table: t.name}
		err := rows.Scan(&v.Row, &v.Column, (*sqldb.Text)(&v.Value))
		v.Value = valueStart(v.Value)
		v.Rule = strings.Replace(rules[v.Column], " AND ", " and ", 1)
		*list = append(*list, v)
		return err
	}, fmt.Sprintf(`SELECT %[1]s, %[2]s, %[3]s FROM %[4]s WHERE %[5]s = ? AND own_sign = ? AND %[2]s IS NOT NULL ORDER BY %[1]s LIMIT %[6]d`,
		t.key, invalidColumn, "CASE"+values.String()+" END", t.name, t.taskType, max(0, mostInvalid-len(*list))), p.taskType, p.roster.OwnSign)
}

// bounds returns the bounds of the column as operands of BETWEEN.
func (c checkedColumn) bounds() string {
	if c.most == 0 {
		return `'1000-01-01 00:00:00' AND '9999-12-31 23:59:59.999999'`
	}
	return fmt.Sprintf("%d AND %d", c.least, c.most)
}
