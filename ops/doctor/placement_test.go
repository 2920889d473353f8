package doctor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// servedWithin returns a task type of four queues whose settings let web1 own two of them at least, and its workers:
// web1:1 and web2:2, which has the label zone=b.
func servedWithin(t *testing.T, s center.Settings) (c *center.Center, rebalance func()) {
	c = centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	s.Queues = 4
	centertest.Define(t, c, "settle", s)
	rebalance = func() {
		_, err := c.Roster().Planner("settle", centertest.Web1).Rebalance(t.Context(), roster.RebalanceOptions{})
		must(t, err)
	}
	for uuid, labels := range map[string]plan.Labels{centertest.Web1: nil, centertest.Web2: {"zone": "b"}} {
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{
			UUID: uuid, TaskType: "settle", Host: uuid, PID: 1, JudgeDeadInterval: time.Hour, Labels: labels,
		})
		must(t, err)
	}
	centertest.Exec(t, c, "UPDATE schedule_server SET register_time = '2026-01-01 00:00:00.000000' WHERE uuid = '"+centertest.Web1+"'")
	rebalance()
	return c, rebalance
}

// A pinned queue stays with an owner that lacks a label also where the workers that have it are full or stand by.
func TestDiagnoseReportsPinsThatNobodyMeets(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]center.Settings{
		"full": {MaxQueuesPerServer: 2}, "stands by": {MaxServers: 1}, "none": {Require: "disk=ssd"}, "met": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, rebalance := servedWithin(t, s)
			centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = '"+centertest.Web1+"' WHERE queue_id IN ('0', '2')")
			must(t, c.Roster().Operator("test").PinQueue(t.Context(), "settle", "0", "zone=b"))
			if name == "full" { // a queue of web2 would make room
				for _, queue := range []string{"1", "3"} {
					must(t, c.Roster().Operator("test").PinQueue(t.Context(), "settle", queue, "zone=b"))
				}
			}
			want := []string{"PROBLEM no worker that has the labels of pinned queues may take them, and their owners keep them: 0 (zone=b)"}
			if name == "met" {
				want = nil
			}
			for range 2 { // before a plan and after it
				if got := findingsOf(t, c, "pins"); !slices.Equal(got, want) {
					t.Errorf("findings %q, want %q", got, want)
				}
				rebalance()
			}
		})
	}
}

// Nobody works the queues of a paused worker that no other one may take.
func TestDiagnoseReportsQueuesOfPausedWorkers(t *testing.T) {
	t.Parallel()
	c, rebalance := servedWithin(t, center.Settings{MaxQueuesPerServer: 2})
	must(t, c.Roster().Operator("test").PauseServer(t.Context(), centertest.Web1, true))
	const want = "PROBLEM web1:1 is paused and keeps queues that no other worker may take, so that nobody works them: 0, 2"
	if got := findingsOf(t, c, "workers"); !slices.Contains(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	s, err := ops.New(c).Tasks().Settings(t.Context(), "settle")
	must(t, err)
	s.MaxQueuesPerServer = 0
	d, err := ops.New(c).Tasks().Compare(t.Context(), "settle", s)
	must(t, err)
	must(t, ops.New(c).Tasks().Apply(t.Context(), d, "test"))
	for range 2 { // web2 is about to request them, and has requested them
		if got := findingsOf(t, c, "workers"); slices.Contains(got, want) {
			t.Errorf("findings %q", got)
		}
		rebalance()
	}
}

// A call that hangs is no reason for a queue to wait if its worker must not have the queue anyway.
func TestDiagnoseReportsTheRuleBeforeHungCalls(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 2})
	must(t, c.Roster().Operator("test").PinQueue(t.Context(), "settle", "0", "zone=b"))
	_, err := c.Roster().Register(t.Context(), roster.ServerInfo{
		UUID: centertest.Web1, TaskType: "settle", Host: "web1", PID: 1, JudgeDeadInterval: time.Hour, HungQueues: []string{"0", "1"},
	})
	must(t, err)
	_, err = c.Roster().Planner("settle", centertest.Web1).Rebalance(t.Context(), roster.RebalanceOptions{})
	must(t, err)
	want := []string{
		"PROBLEM queues without an owner, because calls of former sessions still hang: 1 on web1:1",
		"PROBLEM queues without an owner (pin: zone=b): 0",
	}
	if got := findingsOf(t, c, "queues"); !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}
