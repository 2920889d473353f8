package centertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

func testConstraints(t *testing.T, c *center.Center) {
	t.Run("S13 the tables refuse values that no server can work with", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		refused := []struct{ table, column, value string }{
			{"schedule_task_running", "queue_total", "-1"},
			{"schedule_task_running", "version", "9223372036854775807"},
			{"schedule_server", "judge_dead_interval_ms", "9223372036854775807"},
			{"schedule_server", "judge_dead_interval_ms", "-1"},
			{"schedule_task_type", "judge_dead_interval_ms", "9223372036854775807"},
			{"schedule_task_type", "thread_number", "9223372036854775807"},
			{"schedule_queue", "epoch", "9223372036854775807"},
			{"schedule_queue", "epoch", "-1"},
			{"schedule_server", "state", "'RESTING'"},
			{"schedule_task_type", "mode", "'SOMETIMES'"},
		}
		if c.Dialect() != schema.Postgres { // it has a type for booleans
			refused = append(refused, []struct{ table, column, value string }{{"schedule_task_running", "paused", "2"}, {"schedule_task_type", "coalesce_runs", "2"}}...)
		}
		if c.Dialect() == schema.SQLite { // it keeps values of any type
			refused = append(refused, []struct{ table, column, value string }{{"schedule_task_running", "paused", "'yes'"}, {"schedule_server", "weight", "1.5"}, {"schedule_queue", "queue_index", "'first'"}}...)
		}
		for _, value := range invalidTimes(c.Dialect()) {
			for table, column := range map[string]string{"schedule_server": "heartbeat_time", "schedule_queue": "window_done_at", "schedule_task_running": "audited_at"} {
				refused = append(refused, struct{ table, column, value string }{table, column, value})
			}
		}
		for _, u := range refused {
			_, err := c.DB().ExecContext(t.Context(), "UPDATE "+u.table+" SET "+u.column+" = "+u.value+" WHERE task_type = '"+r.task+"'")
			if name := "ck_" + u.table + "_" + u.column; err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s.%s = %s: error %v, want one that names %s", u.table, u.column, u.value, err, name)
			}
		}
		for _, value := range []string{`{"`, `["a"]`, `north`} {
			if _, err := c.DB().ExecContext(t.Context(), "UPDATE schedule_task_running SET queue_changes = '"+value+"' WHERE task_type = '"+r.task+"'"); err == nil {
				t.Errorf("queue_changes = %s is not refused", value)
			}
		}
	})
}

// wantUnharmed checks that A renews its lease, reads its queues and plans, and that a new server registers.
func (r *fixture) wantUnharmed() {
	r.Helper()
	if _, ok := r.heartbeat("A"); !ok {
		r.Fatal("the heartbeat of A found no row")
	}
	server := r.c.Roster().Server(r.task, r.uuid("A"))
	_, err := server.View(r.Context())
	r.must(err)
	_, err = server.PendingHandovers(r.Context())
	r.must(err)
	_, err = r.c.Roster().Planner(r.task, r.uuid("A")).Rebalance(r.Context(), roster.RebalanceOptions{Always: true, Watched: time.Hour, MaxHeartbeatAge: time.Minute})
	r.must(err)
	name := "new" + time.Now().Format("150405.000000000")
	reg := r.register(name)
	if watched := reg.At.Sub(reg.WatchingSince); watched < 0 || watched > time.Hour {
		r.Fatalf("a new server inherits a watch of %s", watched)
	}
	r.must(r.c.Roster().Server(r.task, r.uuid(name)).Leave(r.Context(), nil, roster.Reservation{}))
}

func testInvalidServers(t *testing.T, c *center.Center) {
	t.Run("S13 a server with an absurd interval stops no other", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		for _, value := range []string{"9223372036854775807", "-9223372036854775807", "0"} {
			r.execUnchecked("UPDATE schedule_server SET judge_dead_interval_ms = %s WHERE uuid = '%s'", value, r.uuid("B"))
			r.wantUnharmed()
		}
	})
}

func testInvalidTimes(t *testing.T, c *center.Center) {
	t.Run("S13 a time that makes no sense stops no other server", func(t *testing.T) {
		all := newFixture(t, c, center.Settings{Queues: 3})
		for i, value := range invalidTimes(c.Dialect()) {
			r := all.sibling(fmt.Sprint(i))
			r.define(center.Settings{Queues: 3})
			r.join("A", "B")
			for _, column := range []string{"watching_since", "register_time", "heartbeat_time"} {
				r.execUnchecked("UPDATE schedule_server SET %s = %s WHERE uuid = '%s'", column, value, r.uuid("B"))
				r.wantUnharmed()
			}
			for _, column := range []string{"req_since", "window_done_at", "cur_since"} {
				r.execUnchecked("UPDATE schedule_queue SET %s = %s WHERE task_type = '%s'", column, value, r.task)
				r.wantUnharmed()
			}
		}
	})
	t.Run("S13 a trigger that is due at no time stops no server", func(t *testing.T) {
		all := newFixture(t, c, center.Settings{Queues: 3})
		for i, value := range invalidTimes(c.Dialect()) {
			r := all.sibling(fmt.Sprint(i))
			r.define(center.Settings{Queues: 3})
			r.join("A")
			r.execUnchecked(`INSERT INTO schedule_trigger (own_sign, name, trigger_id, target, kind, expression, next_fire_at)
				VALUES ('BASE', '%s', 'x', '%[1]s', 'EVERY', '1h', %[2]s)`, r.task, value)
			report := roster.ServerReport{UUID: r.uuid("A"), OldToken: r.tokens["A"], TaskType: r.task, State: ops.StateServing, InRuns: true}
			replies, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{Token: "second", Servers: []roster.ServerReport{report}})
			if err != nil || len(replies) != 1 {
				t.Errorf("with a trigger due at %s: %d replies, want 1: %v", value, len(replies), err)
			}
		}
	})
}

// unreadable are values of a column of booleans or numbers that database/sql cannot read, as SQL. PostgreSQL keeps none:
// its columns have types.
func unreadable(c *center.Center) (flags, numbers []string) {
	switch c.Dialect() {
	case schema.Postgres:
		return nil, nil
	case schema.SQLite:
		return []string{"2", "'yes'", "0.5"}, []string{"'many'", "1.5"}
	default:
		return []string{"2", "-1"}, nil
	}
}

func testUnreadableValues(t *testing.T, c *center.Center) {
	flags, numbers := unreadable(c)
	for _, value := range flags {
		t.Run("S13 a task type whose paused is "+plain(value)+" is paused, and no other", func(t *testing.T) { testUnreadableTask(t, c, "paused", value) })
		t.Run("S13 flags that are "+plain(value)+" stop no server and no list", func(t *testing.T) { testUnreadableFlags(t, c, value) })
	}
	for _, value := range numbers {
		t.Run("S13 a task type with "+plain(value)+" queues is paused, and no other", func(t *testing.T) { testUnreadableTask(t, c, "queue_total", value) })
		t.Run("S13 numbers that are "+plain(value)+" stop no server and no list", func(t *testing.T) { testUnreadableNumbers(t, c, value) })
	}
}

// plain returns a literal of SQL without its quotes.
func plain(value string) string { return strings.Trim(value, "'") }

// testUnreadableTask sends the heartbeat of a process with two task types. The lock row of one cannot be read.
func testUnreadableTask(t *testing.T, c *center.Center, column, value string) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	other := r.sibling("other")
	other.define(center.Settings{Queues: 2})
	r.join("A")
	other.join("A")
	r.execUnchecked("UPDATE schedule_task_running SET %s = %s WHERE task_type = '%s'", column, value, r.task)
	b := roster.Heartbeat{Token: "second"}
	for _, f := range []*fixture{r, other} {
		b.Servers = append(b.Servers, roster.ServerReport{UUID: f.uuid("A"), OldToken: f.tokens["A"], TaskType: f.task, State: ops.StateServing})
	}
	replies, err := c.Roster().SendHeartbeat(t.Context(), b)
	r.must(err)
	bad, good := replies[r.uuid("A")], replies[other.uuid("A")]
	if !bad.Paused || bad.QueueVersion <= 0 {
		t.Errorf("reply %+v, want a task type that is paused and the number of its queues", bad)
	}
	if good.Paused || good.Unreadable != nil || good.QueueVersion <= 0 {
		t.Errorf("reply %+v of the other task type, want one that works", good)
	}
	r.wantFound(column + " (" + plain(value) + ") of row BASE in schedule_task_running must be ")
	if tasks, err := ops.New(c).Tasks().List(t.Context(), r.task); err != nil || len(tasks) != 1 || column == "paused" && !tasks[0].Paused {
		t.Errorf("list the task types: %+v, %v", tasks, err)
	}
	r.execUnchecked("UPDATE schedule_task_running SET queue_total = 2 WHERE task_type = '%s'", r.task)
	r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, false))
	r.tokens["A"] = "second"
	if p, ok := r.heartbeat("A"); !ok || p.Paused {
		t.Errorf("after resume: %+v", p)
	}
}

func testUnreadableFlags(t *testing.T, c *center.Center, value string) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A", "B")
	r.execUnchecked("UPDATE schedule_task_type SET coalesce_runs = %s WHERE task_type = '%s'", value, r.task)
	_, err := ops.New(c).Tasks().Define(t.Context(), r.task, center.Settings{Queues: 2})
	r.must(err)
	_, err = ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
	r.must(err)
	r.wantUnharmed()
	r.wantFound("coalesce_runs (")
}

func testUnreadableNumbers(t *testing.T, c *center.Center, value string) {
	r := newFixture(t, c, center.Settings{Queues: 3})
	r.join("A", "B", "C")
	for _, column := range []string{"weight", "planner_version", "max_in_flight", "judge_dead_interval_ms", "thread_number"} {
		r.execUnchecked("UPDATE schedule_server SET %s = %s WHERE uuid = '%s'", column, value, r.uuid("C"))
		r.wantUnharmed()
		_, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
		r.must(err)
	}
	for _, column := range []string{"queue_index", "crash_count", "plan_version"} {
		r.execUnchecked("UPDATE schedule_queue SET %s = %s WHERE task_type = '%s' AND queue_id = '2'", column, value, r.task)
		r.wantUnharmed()
		_, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: r.task})
		r.must(err)
	}
	r.wantFound("of row C in schedule_server", "of row 2 in schedule_queue")
}

func testInvalidQueues(t *testing.T, c *center.Center) {
	t.Run("S13 a queue whose epoch cannot rise stops no other queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A")
		r.execUnchecked("UPDATE schedule_queue SET epoch = 9223372036854775807 WHERE task_type = '%s' AND queue_id IN ('2', '3')", r.task)
		r.wantUnharmed()
		if _, ok := r.heartbeat("A"); !ok {
			t.Fatal("no reply")
		}
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		if len(v.Queues) != 2 {
			t.Fatalf("view %+v, want the two valid queues", v)
		}
		r.join("B")
		r.wantOwners("A", "A>B", "A", "A")
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B", "A", "A")
	})
}

func testInvalidLockRow(t *testing.T, c *center.Center) {
	t.Run("S13 changes that cannot be read change nothing", func(t *testing.T) {
		all := newFixture(t, c, named)
		for i, value := range []string{`{"`, `[1, "north", null]`, `{"a": 1}`, `{"north": "removed"}`} {
			r := all.sibling(fmt.Sprint(i))
			r.define(named)
			r.join("A")
			r.execUnchecked("UPDATE schedule_task_running SET queue_changes = '%s' WHERE task_type = '%s'", value, r.task)
			r.wantUnharmed()
			if _, err := ops.New(c).Tasks().List(t.Context(), r.task); err != nil {
				t.Errorf("list the task types: %v", err)
			}
			r.wantOwners("A", "A")
		}
	})
}

func testInvalidTotal(t *testing.T, c *center.Center) {
	for _, total := range []string{"9000000000000000000", "-5", "100001"} {
		t.Run("S13 N1 a request for "+total+" queues is withdrawn", func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 3})
			r.join("A")
			r.execUnchecked(`UPDATE schedule_task_running SET queue_changes = '{"all": %s}' WHERE task_type = '%s'`, total, r.task)
			if ids := r.changing("A"); len(ids) > 0 {
				t.Errorf("the server drains %v, want none", ids)
			}
			r.rebalanceAlways("A")
			r.wantChanges("")
			r.wantOwners("A", "A", "A")
		})
	}
	t.Run("S13 N1 a number of queues that is wrong in the lock row does not count", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		r.repartition(2)
		r.execUnchecked("UPDATE schedule_task_running SET queue_total = 9000000000000000000 WHERE task_type = '%s'", r.task)
		r.drainAll("A")
		r.wantQueues("0", "1")
	})
}

func testInvalidLog(t *testing.T, c *center.Center, logged *logtest.Log) {
	r := newFixture(t, c, center.Settings{Queues: 3})
	r.join("A", "B")
	r.execUnchecked("UPDATE schedule_task_running SET queue_changes = '{', skipped = '7' WHERE task_type = '%s'", r.task)
	r.execUnchecked("UPDATE schedule_server SET judge_dead_interval_ms = 9223372036854775807 WHERE uuid = '%s'", r.uuid("B"))
	r.execUnchecked("UPDATE schedule_queue SET epoch = -1 WHERE task_type = '%s' AND queue_id = '2'", r.task)
	r.execUnchecked("UPDATE schedule_queue SET cur_since = %s WHERE task_type = '%s' AND queue_id = '1'", invalidTimes(c.Dialect())[0], r.task)
	r.wantFound("queue_changes ({) of row BASE", "skipped (7) of row BASE",
		"judge_dead_interval_ms (9223372036854775807) of row B in schedule_server", "epoch (-1) of row 2 in schedule_queue must be between 0 and 1000000000000",
		"cur_since (", "of row 1 in schedule_queue")
	_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
	r.must(err)
	r.wantLogged(logged.Lines(), "schedule_task_running", "BASE", "queue_changes")
	r.wantLogged(logged.Lines(), "schedule_task_running", "BASE", "skipped")
	r.wantLogged(logged.Lines(), "schedule_server", r.uuid("B"), "judge_dead_interval_ms")
	r.wantLogged(logged.Lines(), "schedule_queue", "2", "epoch")
	r.wantLogged(logged.Lines(), "schedule_queue", "1", "cur_since")
}

// wantFound checks that the doctor names each of the texts among the invalid values.
func (r *fixture) wantFound(texts ...string) {
	r.Helper()
	found := strings.Join(r.findings("values"), "\n")
	for _, text := range texts {
		if !strings.Contains(found, text) {
			r.Errorf("the doctor does not say %q:\n%s", text, found)
		}
	}
}
