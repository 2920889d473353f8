package centertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
)

// taskRecord reads the record of the task type.
func (r *taskType) taskRecord() ops.TaskRecord {
	r.Helper()
	list, err := ops.New(r.c).Tasks().List(r.Context(), r.task)
	r.must(err)
	return list[0]
}

// testInspect checks that the lists for operators show what the tables hold.
func testInspect(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 12})
	r.join("A", "B")
	r.exec("UPDATE schedule_server SET in_hand = 3, success_count = 7, last_error = 'no', oldest_in_hand_since = register_time WHERE uuid = '%s'", r.uuid("A"))
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{
		{Key: "a", QueueID: "0", State: ops.ItemDead, Attempts: 3, LastError: "broken"},
		{Key: "b", QueueID: "1", State: ops.ItemRetry, RetryIn: time.Hour},
	}))
	task := r.taskRecord()
	if task.QueueTotal != 12 || task.Servers != 2 || task.Owned != 6 || task.Moving != 6 || task.InFlight != 3 || task.SuccessCount != 7 ||
		task.DeadItems != 1 || task.RetryItems != 1 || task.OldestInFlight == nil || task.OwnSign != c.OwnSign() || task.Paused {
		t.Fatalf("task type %+v, want 12 queues of 2 servers, 6 of them moving, and 1 item each of DEAD and RETRY", task)
	}
	if _, err := ops.New(c).Tasks().List(t.Context(), "no such"); !errors.Is(err, center.ErrUnknownTask) {
		t.Fatalf("list an unknown task type: error %v, want ErrUnknownTask", err)
	}
	r.inspectQueues()
	r.inspectServers()
	r.inspectItems()
	names, err := ops.New(c).Tasks().Names(t.Context())
	if err != nil || !slices.Contains(names, r.task) {
		t.Fatalf("names of the task types %q, want %s among them: %v", names, r.task, err)
	}
}

// inspectQueues checks the list of queues and its filters.
func (r *fixture) inspectQueues() {
	r.Helper()
	ids := func(f ops.QueueFilter) (ids []string) {
		f.TaskType = r.task
		list, err := ops.New(r.c).Queues().List(r.Context(), f)
		r.must(err)
		for _, q := range list {
			ids = append(ids, q.QueueID)
		}
		return ids
	}
	want := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11")
	if diff := cmp.Diff(want, ids(ops.QueueFilter{})); diff != "" {
		r.Fatalf("ids of the queues (-want +got):\n%s", diff)
	}
	for _, f := range []ops.QueueFilter{{Status: "MOVING"}, {Servers: []string{r.uuid("B")}}, {Host: "host-B"}} {
		if n := len(ids(f)); n != 6 {
			r.Fatalf("filter %+v: %d queues, want 6", f, n)
		}
	}
	list, err := ops.New(r.c).Queues().List(r.Context(), ops.QueueFilter{TaskType: r.task, Status: "MOVING"})
	r.must(err)
	q := list[0]
	if *q.CurServer != r.uuid("A") || *q.CurHost != "host-A" || *q.CurPID != 1 || *q.ReqServer != r.uuid("B") || q.Epoch < 1 ||
		*q.OwnedFor < 0 || *q.Requested < 0 || *q.HeartbeatAge < 0 || q.OwnSign != r.c.OwnSign() {
		r.Fatalf("moving queue %+v, want owner A with its host and pid, and requester B", q)
	}
	held, err := ops.New(r.c).Queues().List(r.Context(), ops.QueueFilter{TaskType: r.task, Status: "HELD"})
	r.must(err)
	if held[0].ReqServer != nil || held[0].Requested != nil {
		r.Fatalf("queue %+v, want no requester", held[0])
	}
}

// inspectServers checks the lists of servers and of servers that are gone, and the statuses of their queues.
func (r *fixture) inspectServers() {
	r.Helper()
	r.makeSilent("B")
	list, err := ops.New(r.c).Servers().List(r.Context(), ops.ServerFilter{TaskType: r.task})
	r.must(err)
	a, b := list[0], list[1]
	if a.UUID != r.uuid("A") || a.Queues != 12 || a.Requested != 6 || a.Requesting != 0 || a.Overdue || !a.Eligible() || a.LastError != "no" || *a.OldestInFlightAge < 0 {
		r.Fatalf("server A %+v, want 12 queues, 6 of them requested, an error and a call in flight", a)
	}
	if b.Queues != 0 || b.Requesting != 6 || !b.Overdue || b.Eligible() || b.HeartbeatAge < 1000 || b.OldestInFlight != nil || b.LastFetchTime != nil {
		r.Fatalf("server B %+v, want an overdue server that waits for 6 queues", b)
	}
	if some, err := ops.New(r.c).Servers().List(r.Context(), ops.ServerFilter{TaskType: r.task, Host: "host-B"}); err != nil || len(some) != 1 {
		r.Fatalf("servers on host-B %+v, want 1: %v", some, err)
	}
	if r.taskRecord().DeadServers != 1 {
		r.Fatalf("%d dead servers, want 1", r.taskRecord().DeadServers)
	}
	r.inspectStatuses()
	r.exec("UPDATE schedule_server SET last_error_at = register_time, given_settings = '{\"execute_number\":\"7\"}' WHERE uuid = '%s'", r.uuid("B"))
	r.rebalanceExpiring("A")
	gone, err := ops.New(r.c).Servers().Gone(r.Context(), ops.ServerFilter{TaskType: r.task}, 10)
	if err != nil || len(gone) != 1 || gone[0].UUID != r.uuid("B") || gone[0].Reason != "EXPIRED" || gone[0].LeftTime.IsZero() ||
		!gone[0].LastErrorAt.Equal(b.RegisterTime) || gone[0].GivenSettings["execute_number"] != "7" {
		r.Fatalf("servers that are gone %+v, want B, which expired, with its last error and settings: %v", gone, err)
	}
}

// inspectStatuses checks the statuses of queues, in a roster that has every status.
func (r *fixture) inspectStatuses() {
	r.Helper()
	r.exec("UPDATE schedule_queue SET cur_server = NULL, req_server = NULL WHERE task_type = '%s' AND queue_id = '0'", r.task)
	r.exec("UPDATE schedule_queue SET cur_server = 'nobody' WHERE task_type = '%s' AND queue_id = '2'", r.task)
	r.exec("UPDATE schedule_queue SET cur_server = '%s' WHERE task_type = '%s' AND queue_id = '4'", r.uuid("B"), r.task)
	r.exec(`INSERT INTO schedule_server (uuid, task_type, own_sign, register_time, heartbeat_time, last_error, labels)
		SELECT '%s', task_type, 'ELSEWHERE', register_time, heartbeat_time, '', '' FROM schedule_server WHERE uuid = '%s'`,
		r.uuid("far"), r.uuid("A"))
	defer r.exec("DELETE FROM schedule_server WHERE uuid = '%s'", r.uuid("far"))
	r.exec("UPDATE schedule_queue SET cur_server = '%s' WHERE task_type = '%s' AND queue_id = '6'", r.uuid("far"), r.task)
	list, err := ops.New(r.c).Queues().List(r.Context(), ops.QueueFilter{TaskType: r.task})
	r.must(err)
	var got []string
	for _, q := range list {
		got = append(got, q.QueueID+" "+q.Status)
	}
	want := []string{
		"0 UNASSIGNED", "1 MOVING", "2 ORPHAN", "3 MOVING", "4 OVERDUE", "5 MOVING",
		"6 ORPHAN", "7 MOVING", "8 HELD", "9 MOVING", "10 HELD", "11 MOVING",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("statuses (-want +got):\n%s", diff)
	}
	task := r.taskRecord()
	if task.Owned != 2 || task.Moving != 6 || task.Unassigned != 1 || task.Orphan != 2 || task.Overdue != 1 {
		r.Fatalf("counts of the statuses %+v, want 2 held, 6 moving, 1 unassigned, 2 orphans and 1 overdue", task)
	}
}

// inspectItems checks the list of failed items and its filters.
func (r *fixture) inspectItems() {
	r.Helper()
	items, err := ops.New(r.c).Items().List(r.Context(), ops.ItemFilter{TaskType: r.task}, 10)
	if err != nil || len(items) != 2 || items[0].ItemKey != "a" || items[0].LastError != "broken" || items[1].NextAttemptAt == nil {
		r.Fatalf("failed items %+v, want a with its error and b with its next attempt: %v", items, err)
	}
	for _, f := range []ops.ItemFilter{{QueueID: "1"}, {State: ops.ItemRetry}} {
		f.TaskType = r.task
		if some, err := ops.New(r.c).Items().List(r.Context(), f, 10); err != nil || len(some) != 1 || some[0].ItemKey != "b" {
			r.Fatalf("failed items under filter %+v: %+v, want b: %v", f, some, err)
		}
	}
}

// testEvents checks the filters of the list of events.
func testEvents(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A", "B")
	events := func(f ops.EventFilter, limit int) (kinds []string, list []ops.EventRecord) {
		t.Helper()
		f.TaskType = r.task
		list, err := ops.New(c).Events().List(t.Context(), f, limit)
		r.must(err)
		for _, e := range list {
			kinds = append(kinds, e.Kind)
		}
		return kinds, list
	}
	want := func(f ops.EventFilter, limit int, want string) {
		t.Helper()
		if kinds, _ := events(f, limit); strings.Join(kinds, " ") != want {
			t.Errorf("filter %+v: events %s, want %s", f, kinds, want)
		}
	}
	want(ops.EventFilter{}, 100, "JOINED GRANTED GRANTED JOINED REQUESTED")
	want(ops.EventFilter{}, 2, "JOINED REQUESTED") // the last two, oldest first
	want(ops.EventFilter{QueueID: "0"}, 100, "GRANTED")
	want(ops.EventFilter{Kind: ops.EventJoined}, 100, "JOINED JOINED")
	want(ops.EventFilter{Server: r.uuid("B")}, 100, "JOINED REQUESTED")
	want(ops.EventFilter{Since: time.Hour}, 1, "REQUESTED")
	_, all := events(ops.EventFilter{}, 100)
	want(ops.EventFilter{After: all[3].EventID}, 100, "REQUESTED")
	r.exec("UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND kind <> 'REQUESTED'", r.task)
	want(ops.EventFilter{Since: time.Hour}, 100, "REQUESTED")
	if e := all[0]; e.QueueID != nil || e.Epoch != nil || e.FromServer != nil || *e.ToServer != r.uuid("A") || e.EventTime.Location() != time.UTC {
		t.Errorf("first event %+v, want A to join, at a time in UTC, without a queue", e)
	}
}
