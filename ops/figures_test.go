package ops_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// The next attempt of an item is never in the past: it is due, or something else than its time decides.
func TestNextAttemptOfAnItem(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Served(t, url)
		must(t, failures.Of(c.Roster()).Save(t.Context(), "settle", []failures.Item{
			{Key: "dead", QueueID: "0", State: ops.ItemDead},
			{Key: "due", QueueID: "0", State: ops.ItemRetry},
			{Key: "later", QueueID: "0", State: ops.ItemRetry, RetryIn: time.Hour},
		}))
		want := func(due, later string) {
			t.Helper()
			list, err := ops.New(c).Items().List(t.Context(), ops.ItemFilter{}, 10)
			must(t, err)
			page, _, err := ops.New(c).Items().Page(t.Context(), ops.ItemFilter{TaskType: "settle"}, "")
			must(t, err)
			for _, i := range append(list, page...) {
				if want := map[string]string{"dead": "never", "due": due, "later": later}[i.ItemKey]; i.Next() != want {
					t.Errorf("%s is executed again %q, want %q", i.ItemKey, i.Next(), want)
				}
			}
			if len(list) != 3 || len(page) != 3 {
				t.Errorf("items %+v and %+v, want 3", list, page)
			}
		}
		want("due", "")
		centertest.Exec(t, c, fmt.Sprintf("UPDATE schedule_server SET failing_since = '2026-11-25 10:00:00', failed_calls = 7 WHERE uuid = '%s'", ownerOf(t, c, "0")))
		want("when another item succeeds", "when another item succeeds")
		must(t, c.Roster().Operator("test").Pause(t.Context(), "settle", true))
		want("when the task type is resumed", "when the task type is resumed")
		must(t, c.Roster().Operator("test").Pause(t.Context(), "settle", false))
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = NULL WHERE task_type = 'settle' AND queue_id = '0'")
		want("when its queue has an owner", "when its queue has an owner")
	})
}

// Nothing in flight has no age, of a server and of its task type, although a select may run.
func TestNothingInFlightHasNoAge(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Served(t, url)
		want := func(inFlight int64) {
			t.Helper()
			centertest.Exec(t, c, fmt.Sprintf("UPDATE schedule_server SET in_hand = %d, oldest_in_hand_since = '2026-11-25 10:00:00' WHERE uuid = '%s'", inFlight, web1))
			servers, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: "settle"})
			must(t, err)
			tasks, err := ops.New(c).Tasks().List(t.Context(), "settle")
			must(t, err)
			if s := servers[0]; s.InFlight != inFlight || (s.OldestInFlightAge == nil) != (inFlight == 0) || (tasks[0].OldestInFlight == nil) != (inFlight == 0) {
				t.Errorf("%d in flight: the oldest is %v old, and of the task type since %v", inFlight, s.OldestInFlightAge, tasks[0].OldestInFlight)
			}
		}
		want(0)
		want(3)
	})
}

// The figure of the queues without a live owner counts the queues that say so of themselves.
func TestLostQueuesAreCountedOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Served(t, url)
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = NULL, req_server = NULL, reserved_for = 'pod-0', reserved_until = '2126-11-25 10:00:00' WHERE task_type = 'settle' AND queue_id = '0'")
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'nobody', req_server = NULL WHERE task_type = 'settle' AND queue_id = '1'")
		tasks, err := ops.New(c).Tasks().List(t.Context(), "")
		must(t, err)
		for _, task := range tasks {
			queues, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: task.TaskType})
			must(t, err)
			lost := int64(0)
			for _, q := range queues {
				if q.Lost() {
					lost++
				}
			}
			if want := map[string]int64{"settle": 2}[task.TaskType]; task.Lost() != lost || lost < want {
				t.Errorf("%s has %d queues without a live owner, and %d queues say so: %+v", task.TaskType, task.Lost(), lost, queues)
			}
		}
	})
}

// ownerOf returns the owner of a queue of settle.
func ownerOf(t *testing.T, c *center.Center, queue string) string {
	t.Helper()
	queues, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: "settle"})
	must(t, err)
	for _, q := range queues {
		if q.QueueID == queue && q.CurServer != nil {
			return *q.CurServer
		}
	}
	t.Fatalf("queue %s of %+v has no owner", queue, queues)
	return ""
}
