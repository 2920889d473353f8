package centertest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

// hostileValues are values, as SQL, that no program writes into a column of a kind. The CHECK constraints refuse most.
func hostileValues(c *center.Center, column schema.Column) (list []string) {
	flags, numbers := unreadable(c)
	switch column.Kind {
	case schema.Time:
		return invalidTimes(c.Dialect())
	case schema.Flag:
		return flags
	case schema.Number:
		return append(numbers, "9223372036854775807", "-9223372036854775807")
	case schema.Fraction:
		if c.Dialect() == schema.Postgres {
			return []string{"'NaN'", "'Infinity'", "-1e300"}
		}
		return []string{"1e300", "-1e300"}
	}
	return []string{"''", `'{"=,;'`}
}

// environmentWide are the columns of a row that all task types of an environment share, and that say what becomes of
// all their queues.
var environmentWide = []string{"schedule_environment.epoch_floor"}

// hostileColumns are the columns that a kind of database tries. Short tests share them among the kinds: what reads a
// column is mostly the same, and all of them on each kind take minutes.
func hostileColumns(d schema.Dialect) (list []schema.Column) {
	kinds := []schema.Dialect{schema.Postgres, schema.MySQL, schema.MariaDB, schema.SQLite}
	for n, column := range schema.Columns() {
		if of := kinds[n%len(kinds)]; !testing.Short() || d == of || !slices.Contains(kinds, d) {
			list = append(list, column)
		}
	}
	return list
}

// testHostileColumns writes into each column of each table, in the rows of one task type, what no program writes. A
// healthy task type of the same process goes on, and everything can be listed.
func testHostileColumns(t *testing.T, c *center.Center) {
	r := newTimes(t, c, "hostile")
	good := r.sibling("good")
	good.define(center.Settings{Mode: center.ModeRun, Queues: 2})
	good.join("A")
	for _, table := range schema.Tables() {
		r.exec("CREATE TABLE saved_%s AS SELECT * FROM %[1]s WHERE %s", table, r.rows(table))
	}
	for _, column := range hostileColumns(c.Dialect()) {
		if column.Key || slices.Contains(environmentWide, column.Table+"."+column.Name) {
			continue
		}
		for i, value := range hostileValues(c, column) {
			if i > 0 && testing.Short() {
				break
			}
			if !r.tryHostile(column, value) {
				continue
			}
			for _, failure := range r.hostileSteps(good) {
				t.Errorf("%s.%s = %s: %s", column.Table, column.Name, value, failure)
			}
		}
		r.restore(column)
		// The heartbeats since have another token than the one that was saved, and match no row without it.
		r.execUnchecked("UPDATE schedule_server SET beat_token = '%s' WHERE uuid = '%s'", r.tokens["A"], r.uuid("A"))
	}
}

// tryHostile writes a value, and reports whether the database has taken it.
func (r timeSteps) tryHostile(column schema.Column, value string) bool {
	r.Helper()
	conn, err := r.c.DB().Conn(r.Context())
	r.must(err)
	defer conn.Close()
	sqlite := r.c.Dialect() == schema.SQLite
	if sqlite {
		_, err := conn.ExecContext(r.Context(), "PRAGMA ignore_check_constraints = ON")
		r.must(err)
		defer func() {
			_, err := conn.ExecContext(r.Context(), "PRAGMA ignore_check_constraints = OFF")
			r.must(err)
		}()
	}
	_, err = conn.ExecContext(r.Context(), fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", column.Table, column.Name, value, r.rows(column.Table)))
	return err == nil
}

// restore writes the saved values of a column.
func (r timeSteps) restore(column schema.Column) {
	r.Helper()
	var same []string
	for _, c := range schema.Columns() {
		if c.Table == column.Table && c.Key {
			same = append(same, fmt.Sprintf("s.%s = %s.%[1]s", c.Name, column.Table))
		}
	}
	r.execUnchecked("UPDATE %s SET %s = (SELECT s.%[2]s FROM saved_%[1]s s WHERE %[3]s) WHERE %[4]s AND EXISTS (SELECT 1 FROM saved_%[1]s s WHERE %[3]s)",
		column.Table, column.Name, strings.Join(same, " AND "), r.rows(column.Table))
}

// hostileSteps are what the process and the programs of operators do. It returns what has failed.
func (r timeSteps) hostileSteps(good *fixture) (failures []string) {
	ctx, c := r.Context(), r.c
	try := func(what string, err error) {
		if err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", what, err))
		}
	}
	b := roster.Heartbeat{Token: rand.Text()}
	for _, f := range []*fixture{r.fixture, good} {
		b.Servers = append(b.Servers, roster.ServerReport{
			UUID: f.uuid("A"), OldToken: f.tokens["A"], TaskType: f.task, State: ops.StateServing, InRuns: true,
		})
	}
	replies, err := c.Roster().SendHeartbeat(ctx, b)
	try("heartbeat", err)
	if reply := replies[good.uuid("A")]; err == nil && (reply.Now.IsZero() || reply.Paused || reply.Unreadable != nil) {
		failures = append(failures, fmt.Sprintf("the healthy task type gets the reply %+v", reply))
	}
	if err == nil {
		r.tokens["A"], good.tokens["A"] = b.Token, b.Token
	}
	server, planner := c.Roster().Server(good.task, good.uuid("A")), c.Roster().Planner(good.task, good.uuid("A"))
	view, err := server.View(ctx)
	try("view", err)
	if err == nil && len(view.Queues) != 2 {
		failures = append(failures, fmt.Sprintf("the healthy server reads %d queues, want 2", len(view.Queues)))
	}
	_, err = server.PendingHandovers(ctx)
	try("pending hand-overs", err)
	_, err = planner.Rebalance(ctx, roster.RebalanceOptions{Always: true})
	try("rebalance", err)
	_, err = c.Engine().Scheduler.Tick(ctx, good.task)
	try("tick", err)
	_, err = c.Roster().Unserved(ctx)
	try("look for unserved task types", err)
	client := ops.New(c)
	_, err = client.Tasks().List(ctx, "")
	try("list the task types", err)
	_, err = client.Queues().List(ctx, ops.QueueFilter{})
	try("list the queues", err)
	_, err = client.Servers().List(ctx, ops.ServerFilter{})
	try("list the servers", err)
	_, err = client.Servers().Gone(ctx, ops.ServerFilter{}, 10)
	try("list the servers that are gone", err)
	_, err = client.Items().List(ctx, ops.ItemFilter{}, 10)
	try("list the items", err)
	_, err = client.Events().List(ctx, ops.EventFilter{}, 10)
	try("list the events", err)
	_, err = client.Runs().List(ctx, runs.Filter{}, 10)
	try("list the runs", err)
	_, err = client.Triggers().List(ctx, runs.TriggerFilter{})
	try("list the triggers", err)
	_, err = client.Backfills().List(ctx, runs.BackfillFilter{}, 10)
	try("list the backfills", err)
	_, err = c.DB().ExecContext(ctx, "CREATE TABLE looked AS SELECT * FROM schedule_assignment")
	try("read schedule_assignment", err)
	if err == nil {
		_, err = c.DB().ExecContext(ctx, "DROP TABLE looked")
		try("drop", err)
	}
	_, err = doctor.Diagnose(ctx, client, good.task)
	try("diagnose the healthy task type", err)
	return failures
}
