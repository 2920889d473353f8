package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// Work that piles up is a finding while a live server owns the queue, and the task type is not paused.
func TestDiagnoseReportsBacklog(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Open(t, url, center.Options{})
		_, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{QueueNames: []string{"a", "b", "c"}})
		must(t, err)
		must(t, ops.New(c).Queues().SaveBacklogs(ctx, "settle", []ops.QueueBacklog{
			{QueueID: "a", Items: 100, Oldest: time.Now().Add(-time.Hour), Trend: ops.BacklogStuck},
			{QueueID: "b", Items: 5, Trend: ops.BacklogGrowing},
			{QueueID: "c", Items: 900, Trend: ops.BacklogDraining},
		}))
		if got := findingsOf(t, c, "backlog"); len(got) != 0 {
			t.Errorf("findings without an owner: %q, want none", got)
		}
		_, err = c.Roster().Register(ctx, roster.ServerInfo{UUID: "web1:1:1", TaskType: "settle", Host: "web1", JudgeDeadInterval: time.Hour})
		must(t, err)
		_, err = c.Roster().Planner("settle", "web1:1:1").Rebalance(ctx, roster.RebalanceOptions{})
		must(t, err)
		wantFinding(t, c, "backlog", "PROBLEM the oldest item stays the oldest, and the backlog does not become less: a (100 left, the oldest 1h0m")
		wantFinding(t, c, "backlog", "NOTE more items come than are executed: b (5 left)")
		centertest.Exec(t, c, "UPDATE schedule_task_type SET rate_per_second = 1")
		if got := hintsOf(t, c, condition.BacklogGrowing); len(got) != 1 || got[0] != "it executes no more than its settings allow: rate_per_second (1); to lift that: rota task set settle rate_per_second=0" {
			t.Errorf("what to do where a setting limits: %q", got)
		}
		if got := findingsOf(t, c, "backlog"); len(got) != 2 {
			t.Errorf("findings where 1,005 items take 17 minutes: %q, want the two above", got)
		}
		centertest.Exec(t, c, "UPDATE schedule_task_type SET rate_per_second = 0.25")
		wantFinding(t, c, "backlog", "NOTE rate_per_second (0.25) lets 1005 waiting items take at least 1h7m")
		centertest.Exec(t, c, "UPDATE schedule_server SET failing_since = register_time, last_error = 'no'")
		if got := hintsOf(t, c, condition.BacklogGrowing); len(got) != 0 {
			t.Errorf("what to do where all calls fail: %q, want what FAILING says", got)
		}
		centertest.Exec(t, c, "UPDATE schedule_server SET failing_since = NULL")
		must(t, c.Roster().Operator("test").Pause(ctx, "settle", true))
		if got := findingsOf(t, c, "backlog"); len(got) != 0 {
			t.Errorf("findings of a paused task type: %q, want none", got)
		}
	})
}

// One outage is one finding: neither the last error nor the backlog is another one.
func TestDiagnoseReportsAnOutageOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Served(t, url)
		must(t, ops.New(c).Queues().SaveBacklogs(ctx, "settle", []ops.QueueBacklog{
			{QueueID: "0", Epoch: 9, Items: 5, Trend: ops.BacklogGrowing}, {QueueID: "1", Epoch: 9, Items: 5, Oldest: time.Now(), Trend: ops.BacklogStuck},
		}))
		centertest.Exec(t, c, "UPDATE schedule_server SET last_error = 'no route to host', last_error_at = heartbeat_time")
		if got := hintsOf(t, c, condition.LastError); len(got) != 1 {
			t.Fatalf("%d findings of the last error before the alert, want one", len(got))
		}
		for _, server := range []string{centertest.Web1, centertest.Web2} {
			_, err := c.Roster().Alert(ctx, condition.Condition{Kind: condition.Outage.Name, TaskType: "settle", Server: server, Text: "no route to host"}, time.Hour)
			must(t, err)
		}
		found, err := doctor.Diagnose(ctx, ops.New(c), "settle")
		must(t, err)
		names := doctor.Judgement{Findings: found}.Of("settle")
		if problems, notes := names.Names(condition.Problem), names.Names(condition.Note); len(problems) != 1 || problems[0] != condition.Outage.Name || len(notes) > 0 {
			t.Errorf("problems %q and notes %q, want one %s", problems, notes, condition.Outage.Name)
		}
	})
}

// Counts that an autoscaler does not use any more are a finding.
func TestDiagnoseReportsOldCounts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Served(t, url)
		count := func(queue string, age time.Duration) {
			t.Helper()
			must(t, ops.New(c).Queues().SaveBacklogs(t.Context(), "settle", []ops.QueueBacklog{{QueueID: queue, Epoch: 9, Items: 10, Age: age}}))
		}
		count("0", 0)
		count("1", 10*time.Second)
		if got := findingsOf(t, c, "backlog"); len(got) != 0 {
			t.Errorf("findings: %q, want none", got)
		}
		count("2", time.Hour)
		wantFinding(t, c, "backlog", "NOTE counts are older than 1m0s, so /scale goes by the other queues, or answers 503 if they are fewer than half: 2 (1h0m")
	})
}

// A call of the dealer in which nothing is in flight yet, such as a select, is judged too.
func TestDiagnoseReportsStalledCalls(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Served(t, url)
		for _, inFlight := range []int{0, 3} {
			centertest.Exec(t, c, fmt.Sprintf("UPDATE schedule_server SET in_hand = %d, oldest_in_hand_since = '2026-11-25 10:00:00' WHERE uuid = '%s'", inFlight, centertest.Web1))
			wantFinding(t, c, "dealer", "PROBLEM a call of the dealer of web1:1 has been in flight for ")
		}
	})
}

// Names that look alike are quoted in the texts of the doctor, as they are in lists.
func TestDiagnoseQuotesNamesThatLookAlike(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Open(t, url, center.Options{})
		queues := []string{"caf\u00e9", "cafe\u0301"}
		_, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{QueueNames: queues})
		must(t, err)
		_, err = c.Roster().Register(ctx, roster.ServerInfo{UUID: "web1:1:1", TaskType: "settle", Host: "web1", JudgeDeadInterval: time.Hour})
		must(t, err)
		_, err = c.Roster().Planner("settle", "web1:1:1").Rebalance(ctx, roster.RebalanceOptions{})
		must(t, err)
		centertest.Exec(t, c, "UPDATE schedule_queue SET crash_count = 1000")
		findings := findingsOf(t, c, "queues")
		for _, want := range []string{"caf\u00e9 (1000)", `"cafe\u0301" (1000)`} {
			if !strings.Contains(strings.Join(findings, "\n"), want) {
				t.Errorf("findings %q, want %s", findings, want)
			}
		}
	})
}

// Alerts about what no table shows are findings for as long as their conditions last. Those that a check of the doctor
// covers are not.
func TestDiagnoseReportsAlerts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Open(t, url, center.Options{})
		_, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 2})
		must(t, err)
		raise := func(a condition.Condition) {
			t.Helper()
			a.TaskType = "settle"
			_, err := c.Roster().Alert(ctx, a, time.Hour)
			must(t, err)
		}
		raise(condition.Condition{Kind: condition.Backlog.Name, QueueID: "0", Text: "the first"})
		raise(condition.Condition{Kind: condition.Backlog.Name, QueueID: "1", Text: "relation shop does not exist"})
		raise(condition.Condition{Kind: condition.Stalled.Name, Text: "a call hangs"})
		raise(condition.Condition{Kind: condition.KeyDivided.Name, Text: "queue 0 has an order key that queue 1 has too"})
		wantFinding(t, c, "alerts", "NOTE relation shop does not exist; 1 more alert of this kind (alert of ")
		wantFinding(t, c, "alerts", "PROBLEM queue 0 has an order key that queue 1 has too (alert of ")
		if got := findingsOf(t, c, "alerts"); len(got) != 2 {
			t.Errorf("findings: %q, want two", got)
		}
		for i := range 501 { // hide no older alert of another kind
			_, err := c.Roster().Alert(ctx, condition.Condition{
				Kind: condition.Parked.Name, TaskType: "settle", Subject: fmt.Sprint(i), Text: "many items have failed",
			}, time.Hour)
			must(t, err)
		}
		wantFinding(t, c, "alerts", "PROBLEM queue 0 has an order key that queue 1 has too (alert of ")
		wantFinding(t, c, "alerts", "NOTE 500: many items have failed; 500 more alerts of this kind (alert of ")
		centertest.Exec(t, c, "UPDATE schedule_event SET open_until = '2020-01-01 00:00:00.000000'")
		if got := findingsOf(t, c, "alerts"); len(got) != 0 {
			t.Errorf("findings of alerts that have ended: %q, want none", got)
		}
	})
}

// An order key with failed items in two queues is a finding, unless the items were divided in another way between them.
func TestDiagnoseReportsDividedOrderKeys(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Served(t, url)
		save := func(items ...failures.Item) {
			t.Helper()
			for i := range items {
				items[i].State = ops.ItemRetry
			}
			must(t, failures.Of(c.Roster()).Save(ctx, "settle", items))
		}
		save(failures.Item{Key: "1", OrderKey: "north", QueueID: "0", Partition: 1},
			failures.Item{Key: "2", OrderKey: "north", QueueID: "0", Partition: 1},
			failures.Item{Key: "3", OrderKey: "north", QueueID: "2", Partition: 2},
			failures.Item{Key: "4", OrderKey: "North", QueueID: "1", Partition: 1},
			failures.Item{Key: "5", OrderKey: "north ", QueueID: "2", Partition: 1},
			failures.Item{Key: "6", QueueID: "0", Partition: 1}, failures.Item{Key: "7", QueueID: "1", Partition: 1})
		if got := findingsOf(t, c, "alerts"); len(got) != 0 {
			t.Errorf("findings %q, want none", got)
		}
		save(failures.Item{Key: "8", OrderKey: "north", QueueID: "3", Partition: 1})
		wantFinding(t, c, "alerts", `PROBLEM order keys with failed items in several queues: north (0 and 3)`)
		save(failures.Item{Key: "9", OrderKey: "north ", QueueID: "3", Partition: 1})
		wantFinding(t, c, "alerts", `PROBLEM order keys with failed items in several queues: north (0 and 3), "north " (2 and 3)`)
	})
}

// hintsOf returns what the doctor says to do about findings of a kind.
func hintsOf(t *testing.T, c *center.Center, kind condition.Kind) (hints []string) {
	t.Helper()
	findings, err := doctor.Diagnose(t.Context(), ops.New(c), "settle")
	must(t, err)
	for _, f := range findings {
		if f.Kind == kind.Name {
			hints = append(hints, f.Hint)
		}
	}
	return hints
}
