package centertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/roster"
)

func testConstraints(t *testing.T, c *center.Center) {
	t.Run("S13 the tables refuse values that no server can work with", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		refused := []struct{ table, column, value string }{
			{"schedule_task_running", "requested_total", "9000000000000000000"},
			{"schedule_task_running", "requested_total", "0"},
			{"schedule_task_running", "queue_total", "-1"},
			{"schedule_task_running", "version", "9223372036854775807"},
			{"schedule_server", "judge_dead_interval_ms", "9223372036854775807"},
			{"schedule_server", "judge_dead_interval_ms", "-1"},
			{"schedule_task_type", "judge_dead_interval_ms", "9223372036854775807"},
			{"schedule_task_type", "thread_number", "9223372036854775807"},
			{"schedule_queue", "epoch", "9223372036854775807"},
			{"schedule_queue", "epoch", "-1"},
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
		for _, value := range []string{`{"`, `{"a": "b"}`, `north`} {
			if _, err := c.DB().ExecContext(t.Context(), "UPDATE schedule_task_running SET removing = '"+value+"' WHERE task_type = '"+r.task+"'"); err == nil {
				t.Errorf("removing = %s is not refused", value)
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
			report := roster.ServerReport{UUID: r.uuid("A"), TaskType: r.task, State: center.StateServing, InRuns: true}
			replies, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{OldTokens: []string{r.tokens["A"]}, Token: "second", Servers: []roster.ServerReport{report}})
			if err != nil || len(replies) != 1 {
				t.Errorf("with a trigger due at %s: %d replies, want 1: %v", value, len(replies), err)
			}
		}
	})
}

func testInvalidQueues(t *testing.T, c *center.Center) {
	t.Run("S13 a queue whose epoch cannot rise stops no other queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A")
		r.execUnchecked("UPDATE schedule_queue SET epoch = 9223372036854775807 WHERE task_type = '%s' AND queue_id IN ('2', '3')", r.task)
		r.wantUnharmed()
		p, _ := r.heartbeat("A")
		if want := r.epoch("0") + r.epoch("1"); p.Owned != 2 || p.EpochSum != want {
			t.Fatalf("reply %+v, want the two valid queues and epochs whose sum is %d", p, want)
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
	t.Run("S13 a list of removals that cannot be read removes nothing", func(t *testing.T) {
		all := newFixture(t, c, named)
		for i, value := range []string{`{"`, `[1, "north", null]`, `{"a": 1}`} {
			r := all.sibling(fmt.Sprint(i))
			r.define(named)
			r.join("A")
			r.execUnchecked("UPDATE schedule_task_running SET removing = '%s' WHERE task_type = '%s'", value, r.task)
			r.wantUnharmed()
			if _, err := c.Tasks().List(t.Context(), r.task); err != nil {
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
			r.execUnchecked("UPDATE schedule_task_running SET requested_total = %s WHERE task_type = '%s'", total, r.task)
			r.reportDrained("A")
			done, err := c.Roster().Planner(r.task, r.uuid("A")).FinishRepartition(t.Context())
			if err != nil || done {
				t.Fatalf("the number of queues has changed: %t, want false: %v", done, err)
			}
			r.wantQueues("0", "1", "2")
			if p, _ := r.heartbeat("A"); p.RequestedTotal != 0 {
				t.Fatalf("reply %+v, want no request", p)
			}
		})
	}
	t.Run("S13 N1 a number of queues that is wrong in the lock row does not count", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		r.must(c.Queues().Repartition(t.Context(), r.task, 2, "test"))
		r.execUnchecked("UPDATE schedule_task_running SET queue_total = 9000000000000000000 WHERE task_type = '%s'", r.task)
		r.reportDrained("A")
		done, err := c.Roster().Planner(r.task, r.uuid("A")).FinishRepartition(t.Context())
		if err != nil || !done {
			t.Fatalf("the number of queues has changed: %t, want true: %v", done, err)
		}
		r.wantQueues("0", "1")
	})
}

func testInvalidLog(t *testing.T, c *center.Center, logged *logtest.Log) {
	r := newFixture(t, c, center.Settings{Queues: 3})
	r.join("A", "B")
	r.execUnchecked("UPDATE schedule_task_running SET requested_total = -5, removing = '{', skipped = '7' WHERE task_type = '%s'", r.task)
	r.execUnchecked("UPDATE schedule_server SET judge_dead_interval_ms = 9223372036854775807 WHERE uuid = '%s'", r.uuid("B"))
	r.execUnchecked("UPDATE schedule_queue SET epoch = -1 WHERE task_type = '%s' AND queue_id = '2'", r.task)
	r.execUnchecked("UPDATE schedule_queue SET cur_since = %s WHERE task_type = '%s' AND queue_id = '1'", invalidTimes(c.Dialect())[0], r.task)
	r.wantFound("(-5) of row BASE in schedule_task_running", "removing ({) of row BASE", "skipped (7) of row BASE",
		"judge_dead_interval_ms (9223372036854775807) of row B in schedule_server", "epoch (-1) of row 2 in schedule_queue must be between 0 and 1000000000000",
		"cur_since (", "of row 1 in schedule_queue")
	_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
	r.must(err)
	r.wantLogged(logged.Lines(), "schedule_task_running", "BASE", "requested_total")
	r.wantLogged(logged.Lines(), "schedule_task_running", "BASE", "removing")
	r.wantLogged(logged.Lines(), "schedule_task_running", "BASE", "skipped")
	r.wantLogged(logged.Lines(), "schedule_server", r.uuid("B"), "judge_dead_interval_ms")
	r.wantLogged(logged.Lines(), "schedule_queue", "2", "epoch")
	r.wantLogged(logged.Lines(), "schedule_queue", "1", "cur_since")
	if p, _ := r.heartbeat("A"); p.RequestedTotal != 0 {
		t.Fatalf("reply %+v, want the request to be withdrawn", p)
	}
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
