package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// IsUnreadable reports whether an error is of a value that does not fit into the field for it, because somebody has
// written it by hand (S13). database/sql has no type for it.
func IsUnreadable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "sql: Scan error on column")
}

// validityExtension reports values that no server can work with (S13).
func validityExtension() extension { return extension{repair: reportInvalid} }

// reportInvalid reports invalid values.
func reportInvalid(ctx context.Context, p Planner) error {
	list, err := p.InvalidValues(ctx)
	if err != nil {
		return err
	}
	for _, v := range list {
		p.roster.OnInvalid(ctx, p.taskType, v)
	}
	return nil
}

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
	type texts struct{ Skipped, Changes string }
	row, _, err := sqldb.Record[texts](ctx, p.roster.DB, `SELECT skipped, queue_changes FROM schedule_task_running
		WHERE `+ofTask, p.taskType, p.roster.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the JSON of the lock row: %w", err)
	}
	for _, column := range []struct {
		name, value, rule string
		into              any
	}{
		{"skipped", row.Skipped, "be a JSON list of queue ids", &[]string{}},
		{"queue_changes", row.Changes, `be a JSON object of numbers, or "remove", by queue ids`, &Changes{}},
	} {
		if column.value != "" && json.Unmarshal([]byte(column.value), column.into) != nil {
			list = append(list, InvalidValue{
				"schedule_task_running", p.roster.OwnSign, column.name, valueStart(column.value), column.rule,
			})
		}
	}
	return list, nil
}

// checkedTable is a table whose rows all servers of a roster read. The rows of runs are read one by one.
type checkedTable struct {
	name  string
	key   string // the column that names the row for people
	where string // the rows, with parameters for the task type and the own_sign
	flags bool   // only the booleans are checked: the settings have rules of their own
}

var checkedTables = []checkedTable{
	{name: "schedule_task_type", key: "task_type", where: `task_type = ? AND '' <> ?`, flags: true},
	{name: "schedule_task_running", key: "own_sign", where: ofTask},
	{name: "schedule_server", key: "uuid", where: ofTask},
	{name: "schedule_queue", key: "queue_id", where: ofTask},
	{name: "schedule_trigger", key: "name", where: `target = ? AND own_sign = ?`},
	{name: "schedule_backfill", key: "backfill_id", where: ofTask},
}

// findInvalid adds the values of the table that its CHECK constraints refuse.
func (t checkedTable) findInvalid(ctx context.Context, p Planner, list *[]InvalidValue) error {
	checks := t.checks(p.roster.DB.Name)
	if len(checks) == 0 {
		return nil // PostgreSQL has a type for booleans
	}
	// Most audits find nothing. A statement with each condition once costs the database a third of the next one.
	valid := make([]string, len(checks))
	for i, c := range checks {
		valid[i] = "(" + c.Condition + ")"
	}
	rows, err := sqldb.Records[string](ctx, p.roster.DB, fmt.Sprintf(`SELECT %[1]s FROM %[2]s q
		WHERE %[3]s AND NOT (%[4]s) ORDER BY %[1]s LIMIT 1`, t.key, t.name, t.where, strings.Join(valid, " AND ")),
		p.taskType, p.roster.OwnSign)
	if err != nil || len(rows) == 0 {
		return err
	}
	return t.listInvalid(ctx, p, checks, list)
}

// checks returns the conditions of the values that findInvalid looks at. It leaves out the JSON lists: a cast of a text
// that is no JSON fails the statement.
func (t checkedTable) checks(d schema.Dialect) (list []invalidCheck) {
	for _, c := range schema.Checks(d) {
		if c.Table != t.name {
			continue
		}
		isList, isFlag := strings.Contains(strings.ToLower(c.Condition), "json"), strings.HasSuffix(c.Condition, " IN (0, 1)")
		if !isList && (isFlag || !t.flags) {
			list = append(list, invalidCheck{c, ""})
		}
	}
	for _, c := range laterTimes(t.name) {
		list = append(list, invalidCheck{c, laterRule})
	}
	return list
}

// laterRule is the rule of [laterTimes].
const laterRule = "not be so far in the future: it was edited, or the clock was set back since; " +
	"the next audit corrects it"

// invalidCheck is a condition of a column, and what it asks for, if [ruleOf] does not know it.
type invalidCheck struct {
	schema.ColumnCheck
	rule string
}

// listInvalid adds the first value of each row that breaks a check.
func (t checkedTable) listInvalid(ctx context.Context, p Planner, checks []invalidCheck, list *[]InvalidValue) error {
	var invalid, values strings.Builder
	rules := map[string]string{}
	for _, c := range checks {
		fmt.Fprintf(&invalid, " WHEN NOT (%s) THEN '%s'", c.Condition, c.Column)
		fmt.Fprintf(&values, " WHEN NOT (%s) THEN CONCAT('', %s)", c.Condition, c.Column)
		rules[c.Column] = cmp.Or(c.rule, ruleOf(c.ColumnCheck))
	}
	invalidColumn := "CASE" + invalid.String() + " END"
	type value struct{ Row, Column, Value string }
	found, err := sqldb.Records[value](ctx, p.roster.DB, fmt.Sprintf(`SELECT %[1]s, %[2]s, CASE%[3]s END FROM %[4]s q
		WHERE %[5]s AND %[2]s IS NOT NULL ORDER BY %[1]s LIMIT %[6]d`, t.key, invalidColumn, values.String(), t.name, t.where,
		max(0, mostInvalid-len(*list))), p.taskType, p.roster.OwnSign)
	for _, v := range found {
		*list = append(*list, InvalidValue{t.name, v.Row, v.Column, valueStart(v.Value), rules[v.Column]})
	}
	return err
}

var (
	between = regexp.MustCompile(`BETWEEN (-?\d+) AND (\d+)`)
	oneOf   = regexp.MustCompile(` IN \((.*)\)$`)
)

// ruleOf says what a CHECK constraint asks for, after "must".
func ruleOf(c schema.ColumnCheck) string {
	if m := between.FindStringSubmatch(c.Condition); m != nil {
		return "be between " + m[1] + " and " + m[2]
	}
	if m := oneOf.FindStringSubmatch(c.Condition); m != nil && strings.HasPrefix(c.Condition, c.Column+" IN ") {
		return "be one of " + m[1]
	}
	return "be a time between the years 1000 and 9999"
}
