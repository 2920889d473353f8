package centertest

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// preview returns the moves of a plan as "queue from>to reason".
func (r *fixture) preview(s ops.Scenario) (moves []string) {
	r.Helper()
	p, err := ops.New(r.c).Queues().Plan(r.Context(), r.task, s)
	r.must(err)
	name := func(uuid *string) string {
		if uuid == nil {
			return "-"
		}
		return r.short(*uuid)
	}
	for _, m := range p.Moves {
		moves = append(moves, m.QueueID+" "+name(m.CurServer)+">"+name(m.NextServer)+" "+m.Reason)
	}
	return moves
}

// testPreview checks that Plan shows the moves that the next rebalance makes, and changes nothing.
func testPreview(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	r.register("A")
	for range 2 {
		moves := r.preview(ops.Scenario{})
		if diff := cmp.Diff([]string{"0 ->A it has no owner", "1 ->A it has no owner", "2 ->A it has no owner", "3 ->A it has no owner"}, moves); diff != "" {
			t.Fatalf("the first plan (-want +got):\n%s", diff)
		}
	}
	r.wantOwners("-", "-", "-", "-")
	r.rebalance("A")
	want := func(s ops.Scenario, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.preview(s)); diff != "" {
			t.Fatalf("the plan for %+v (-want +got):\n%s", s, diff)
		}
	}
	want(ops.Scenario{})
	want(ops.Scenario{Add: 1}, "1 A>new-1 its owner has more than its share", "3 A>new-1 its owner has more than its share")
	want(ops.Scenario{Add: 1, Remove: []string{r.uuid("A")}}, "0 A>new-1 its owner stops", "1 A>new-1 its owner stops", "2 A>new-1 its owner stops", "3 A>new-1 its owner stops")
	r.join("B")
	r.wantOwners("A", "A>B", "A", "A>B")
	want(ops.Scenario{}, "1 A>B its owner has more than its share", "3 A>B its owner has more than its share") // the requests are written already
	r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), true))
	want(ops.Scenario{}, "0 A>B its owner is paused", "1 A>B its owner is paused", "2 A>B its owner is paused", "3 A>B its owner is paused")
	want(ops.Scenario{Resume: []string{r.uuid("A")}}, "1 A>B its owner has more than its share", "3 A>B its owner has more than its share")
	r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), false))
	r.makeSilent("A")
	moves := r.preview(ops.Scenario{})
	if len(moves) != 4 || !strings.HasPrefix(moves[0], "0 A>B its owner is dead, silent for ") {
		t.Fatalf("moves %q, want 4 away from the dead server", moves)
	}
	if _, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{Remove: []string{"nobody"}}); !errors.Is(err, center.ErrGone) {
		t.Fatalf("preview without an unknown server: error %v, want ErrGone", err)
	}
	if _, err := ops.New(c).Queues().Plan(t.Context(), "no such", ops.Scenario{}); !errors.Is(err, center.ErrUnknownTask) {
		t.Fatalf("preview an unknown task type: error %v, want ErrUnknownTask", err)
	}
}

// findings returns the findings of one check about the task type, as "STATUS text". Each problem must have a hint. The
// key must tell each finding from the others, because pages and alerts know a condition by it.
func (r *fixture) findings(check string) (list []string) {
	r.Helper()
	findings, err := doctor.Diagnose(r.Context(), ops.New(r.c), r.task)
	r.must(err)
	known := map[string]bool{}
	for _, f := range findings {
		if f.Status != condition.OK && known[f.Key()] || f.Kind == "" || f.Check == "" {
			r.Errorf("finding %+v: want a kind, a check, and a key of its own", f)
		}
		known[f.Key()] = true
		if f.TaskType == r.task && f.Check == check {
			list = append(list, f.Status+" "+strings.ReplaceAll(f.Text, r.task+":", ""))
			if f.Status != condition.OK && f.Hint == "" {
				r.Errorf("finding %q has no hint", f.Text)
			}
		}
	}
	return list
}

// testDiagnose checks that Diagnose finds each problem, and finds none in a healthy roster.
func testDiagnose(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	want := func(check string, want ...string) {
		t.Helper()
		got := r.findings(check)
		if len(got) != len(want) {
			t.Fatalf("findings of check %s: %q, want %q", check, got, want)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("finding of check %s: %q, want %q at its start", check, got[i], want[i])
			}
		}
	}
	row := func(set string) { r.exec("UPDATE schedule_server SET "+set+" WHERE uuid = '%s'", r.uuid("A")) }
	want("workers", "PROBLEM no worker is registered")
	r.join("A")
	want("roster", "OK 2 queues, 1 worker")
	row("last_error = 'no such table'")
	want("errors", "NOTE last error of 1 worker: no such table")
	row("last_error_at = '2020-01-01 00:00:00.000000'")
	want("errors") // the worker has gone on since
	row("last_error_at = heartbeat_time")
	want("errors", "NOTE last error of 1 worker, ")
	row("failing_since = '2020-01-01 00:00:00.000000', failed_calls = 7")
	want("failing", "PROBLEM 7 calls of A have failed in ")
	want("errors")
	row("in_hand = 1, oldest_in_hand_since = '2020-01-01 00:00:00.000000'")
	want("dealer")
	want("failing", "PROBLEM 7 calls of A have failed in ")
	if text := strings.Join(r.findings("failing"), ""); !strings.Contains(text, "; a call of A has been in flight for ") {
		t.Errorf("%q does not name the call that hangs", text)
	}
	row("failing_since = NULL")
	want("dealer", "PROBLEM a call of the dealer of A has been in flight for ")
	row("failing_since = '2020-01-01 00:00:00.000000'")
	r.join("B")
	want("requests")
	r.exec("UPDATE schedule_queue SET req_since = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND req_server IS NOT NULL", r.task)
	want("requests", "PROBLEM A has not handed over queues that were requested ")
	r.repartition(3)
	want("repartition", "NOTE 3 queues instead of 2, as soon as every worker has drained; it waits for A")
	r.repartition(2)
	want("repartition")
	r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
	want("pause", "NOTE the task type is paused")
	r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("B"), true))
	want("workers", "NOTE B is paused")
	r.makeSilent("A")
	want("workers", "PROBLEM no worker may take queues", "NOTE B is paused", "PROBLEM A has been silent for ")
	r.exec("UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("A"))
	want("workers", "PROBLEM no worker may take queues", "NOTE B is paused", "PROBLEM A has been silent since before the clock was set back")
	want("failing") // the report of an overdue server is stale
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{
		{Key: "a", QueueID: "0", State: ops.ItemDead, LastError: "no such\ncustomer"}, {Key: "b", QueueID: "0", State: ops.ItemRetry},
	}))
	want("items", "PROBLEM 1 item has failed permanently: a of queue 0: no such; customer", "NOTE 1 item has failed and is retried: b of queue 0")
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "c", QueueID: "0", State: ops.ItemDead, LastError: "no such\ncustomer"}}))
	want("items", "PROBLEM 2 items have failed permanently, such as ", "NOTE 1 item has failed and is retried: b of queue 0")
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "d", OrderKey: "k", QueueID: "0", State: ops.ItemRetry}}))
	if got := strings.Join(r.findings("items"), "\n"); strings.Count(got, "; failed items hold 1 order key") != 1 {
		t.Errorf("findings %q, want the order key said once", got)
	}
	r.exec("UPDATE schedule_queue SET crash_count = 6 WHERE task_type = '%s' AND queue_id = '1'", r.task)
	want("queues", "PROBLEM queues whose owners have died one after the other: 1 (6)")
	r.exec("UPDATE schedule_queue SET crash_count = 5 WHERE task_type = '%s' AND queue_id = '1'", r.task)
	r.exec("UPDATE schedule_task_type SET heartbeat_interval_ms = 1, version = version + 1 WHERE task_type = '%s'", r.task)
	want("settings", "PROBLEM workers refuse the row in schedule_task_type and keep their last valid settings: heartbeat_interval (1ms) must be at least 100ms")
	r.join("C")
	r.exec("UPDATE schedule_queue SET cur_server = NULL WHERE task_type = '%s' AND queue_id = '0'", r.task)
	r.exec("UPDATE schedule_queue SET cur_server = 'nobody' WHERE task_type = '%s' AND queue_id = '1'", r.task)
	orphan := "PROBLEM queues whose owner is not registered: 1"
	want("queues", "NOTE queues that are being assigned: 0", orphan)
	r.exec("UPDATE schedule_queue SET gmt_modified = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
	want("queues", "NOTE queues that are being assigned: 0", orphan) // the only eligible server has just joined
	r.exec("UPDATE schedule_server SET register_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("C"))
	want("queues", "PROBLEM queues without an owner: 0", orphan)
}

// testDiagnoseServers checks that Diagnose reports a worker that was expired until it joins again, and that workers
// whose errors differ in figures are one finding.
func testDiagnoseServers(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	want := func(check, want string) {
		t.Helper()
		got := r.findings(check)
		if ok, _ := regexp.MatchString(want, strings.Join(got, "\n")); !ok || want == "^$" && len(got) > 0 {
			t.Fatalf("findings of check %s: %q, want %s", check, got, want)
		}
	}
	r.join("A", "B")
	for i, server := range []string{"A", "B"} {
		r.exec("UPDATE schedule_server SET failing_since = '2020-01-01 00:00:00.000000', failed_calls = 7, "+
			"last_error = 'execute 1 item of queue %d: status 500' WHERE uuid = '%s'", i, r.uuid(server))
	}
	want("failing", `^PROBLEM 14 calls of A, B have failed in .* the last error: execute 1 item of queue 0: status 500$`)
	r.exec("UPDATE schedule_server SET failing_since = NULL WHERE task_type = '%s'", r.task)
	want("errors", `^NOTE last error of 2 workers: execute 1 item of queue 0: status 500$`)

	want("workers", "^$")
	r.makeSilent("B")
	r.rebalanceExpiring("A")
	want("workers", `^NOTE workers that were silent for judge_dead_interval, .* not joined again: B \(\S+ ago\)$`)
	r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
	want("workers", `^PROBLEM no worker is registered; B was expired \S+ ago, because it had sent no heartbeat$`)
	r.join("A")
	r.exec("UPDATE schedule_server_history SET left_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
	want("workers", "^$")
}

// testDiagnoseRemoval checks that Diagnose reports a queue whose removal waits for its owner, and checks the database.
func testDiagnoseRemoval(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{QueueNames: []string{"north", "south"}})
	r.join("A")
	r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
	if got := r.findings("removal"); len(got) != 1 || got[0] != "NOTE queue south is to be removed and waits for A to drain it" {
		t.Fatalf("findings %q, want a note that queue south waits for A", got)
	}
	queues, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: r.task})
	if err != nil || queues[0].Removing || !queues[1].Removing {
		t.Fatalf("queues %+v, want only the second marked as removing: %v", queues, err)
	}
	findings, err := doctor.Diagnose(t.Context(), ops.New(c), r.task)
	r.must(err)
	checks := map[string]bool{}
	for _, f := range findings {
		checks[f.Check] = true
	}
	for _, check := range []string{"database", "clock", "schema", "privileges"} {
		if !checks[check] {
			t.Errorf("no finding of check %s in %+v", check, findings)
		}
	}
}

// testDiagnoseSettings checks that Diagnose reports settings of programs that differ from the row, one finding for all
// servers that state the same, with the command that applies it.
func testDiagnoseSettings(t *testing.T, c *center.Center) {
	row := center.Settings{QueueNames: []string{"north", "south"}, ExecuteNumber: 100, DrainTimeout: time.Minute, TaskParameter: strings.Repeat("x", 3_000)}
	r := newFixture(t, c, row)
	same := row
	same.QueueNames = []string{"south", "north"} // the order does not matter
	r.registerGiven("A", same)
	r.registerGiven("D", center.Settings{ThreadNumber: 5}) // the default, which the row has too
	if got := r.findings("settings"); len(got) != 0 {
		t.Fatalf("findings %q for the settings of the row, want none", got)
	}
	other := row
	other.ExecuteNumber, other.QueueNames = 50, []string{"north", "east"}
	other.TaskParameter += "x" // the finding does not show the end of the value
	r.registerGiven("B", other)
	r.registerGiven("C", center.Settings{ExecuteNumber: 50, DrainTimeout: time.Second})
	r.registerGiven("E", center.Settings{ExecuteNumber: 50, DrainTimeout: time.Second})
	got := r.findings("settings")
	want := []string{
		"NOTE B: stated settings are not in force: queues [east, north] (the row says [north, south]), execute_number 50 (the row says 100), task_parameter xxx",
		"NOTE 2 workers (C, E): stated settings are not in force: execute_number 50 (the row says 100), drain_timeout 1s (the row says 1m0s)",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("findings %q, want %q", got, want)
		}
	}
	findings, err := doctor.Diagnose(t.Context(), ops.New(c), r.task)
	r.must(err)
	var hints []string
	for _, f := range findings {
		if f.Kind == condition.SettingsDiffer.Name {
			hints = append(hints, f.Hint)
		}
	}
	wantHints := []string{
		"to apply them: manager.Apply in a Go program, or rota task apply -f FILE", // task_parameter is not whole in the row
		"to apply them: rota task set " + r.task + " execute_number=50 drain_timeout=1s",
	}
	if diff := cmp.Diff(wantHints, hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	servers, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
	r.must(err)
	if diff := cmp.Diff(map[string]string{"execute_number": "50", "drain_timeout": "1s"}, servers[3].GivenSettings); diff != "" {
		t.Errorf("given settings of C (-want +got):\n%s", diff)
	}
	r.exec("UPDATE schedule_server SET given_settings = NULL WHERE task_type = '%s'", r.task) // older programs register like this
	if got := r.findings("settings"); len(got) != 0 {
		t.Errorf("findings %q for servers that give no settings, want none", got)
	}
}

// testFailingQueue checks what a row says about a queue that fails while others succeed, until when it does, and what the
// doctor tells of it.
func testFailingQueue(t *testing.T, c *center.Center) {
	t.Run("X7 the row of a queue says since when it fails", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		servers, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
		r.must(err)
		since := servers[0].Now.Add(-15*time.Minute - 30*time.Second).UTC().Truncate(time.Millisecond) // by the database's clock
		save := func(server string, epoch int64, since time.Time) {
			t.Helper()
			r.must(c.Roster().Server(r.task, r.uuid(server)).SaveFailing(t.Context(), []roster.FailingQueue{{QueueEpoch: center.QueueEpoch{ID: "1", Epoch: epoch}, Since: since}}))
		}
		want := func(server string, since time.Time) {
			t.Helper()
			view, err := c.Roster().Server(r.task, r.uuid(server)).View(t.Context())
			r.must(err)
			if len(view.Queues) != 2 || !view.Queues[0].FailingSince.IsZero() || !view.Queues[1].FailingSince.Equal(since) {
				t.Fatalf("%s owns %+v, want that queue 1 fails since %v", server, view.Queues, since)
			}
		}
		found := func(want bool) {
			t.Helper()
			list := r.findings("failing")
			if want != (len(list) == 1 && strings.HasPrefix(list[0], "PROBLEM queues whose calls have all failed, while others may succeed: 1 (15m")) || !want && len(list) > 0 {
				t.Fatalf("findings %q, want one about queue 1: %t", list, want)
			}
		}
		found(false)
		save("A", r.epoch("1")-1, since)
		want("A", time.Time{})
		save("A", r.epoch("1"), since)
		want("A", since)
		found(true)
		r.exec("UPDATE schedule_server SET failing_since = '2020-01-01 00:00:00.000000', failed_calls = 7 WHERE uuid = '%s'", r.uuid("A"))
		if list := r.findings("failing"); len(list) != 1 || !strings.HasPrefix(list[0], "PROBLEM 7 calls of A") {
			t.Fatalf("findings %q, want one about the server, which says more than its queue", list)
		}
		r.exec("UPDATE schedule_server SET failing_since = NULL WHERE uuid = '%s'", r.uuid("A"))
		r.join("B")
		r.makeSilent("A")
		found(false) // nobody works it, which is another finding
		r.rebalanceExpiring("B")
		want("B", since)
		found(true)
		save("A", r.epoch("1"), time.Time{})
		want("B", since)
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
		found(false)
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, false))
		save("B", r.epoch("1"), time.Time{})
		want("B", time.Time{})
		found(false)
	})
}
