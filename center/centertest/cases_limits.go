package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

func testQueueLimits(t *testing.T, c *center.Center) {
	r := newFixture(t, c, splittable)
	r.join("A")
	rate, most, weight := 2.5, 0, 3
	limits := func(id string) string {
		t.Helper()
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		for _, q := range v.Queues {
			if q.ID == id {
				return q.Limits()
			}
		}
		return "no queue"
	}
	set := func(l roster.QueueLimits) {
		t.Helper()
		r.must(c.Roster().Operator("test").SetQueue(t.Context(), r.task, "1", replaceLimits(l)))
	}
	before, _ := r.heartbeat("A")
	r.pin("1", "host=h|localhost")
	set(roster.QueueLimits{RatePerSecond: &rate, MaxInFlight: &most, Weight: &weight})
	if after, _ := r.heartbeat("A"); after.SettingsVersion == before.SettingsVersion {
		t.Fatal("the heartbeat reply does not tell the owner that limits have changed")
	}
	const want = "rate_per_second 2.5, max_in_flight 0, weight 3"
	if got := limits("1"); got != want || limits("0") != "the limits of the task type" {
		t.Fatalf("the owner reads %q for queue 1 and %q for queue 0, want %q for queue 1 alone", got, limits("0"), want)
	}
	if events := r.eventKinds("1"); events[len(events)-1] != roster.EventSettings {
		t.Fatalf("events of the queue: %v, want SETTINGS as the last", events)
	}
	r.setLimitsAtOnce(verbs.SetQueue{Rate: "7", MaxInFlight: "5"}, verbs.SetQueue{Weight: "9"})
	if got := limits("1"); got != "rate_per_second 7, max_in_flight 5, weight 9" {
		t.Fatalf("after two changes at once: %q, want what each of them has named", got)
	}
	set(roster.QueueLimits{RatePerSecond: &rate, MaxInFlight: &most, Weight: &weight})
	r.pin("1", "")
	r.resize("1", 4)
	r.finishChange("A", "1")
	if got := limits("3"); got != want {
		t.Fatalf("a part of the queue has %q, want %q", got, want)
	}
	set(roster.QueueLimits{})
	if n := r.readInt("SELECT COUNT(*) FROM schedule_queue_setting WHERE task_type = '%s'", r.task); n != 1 {
		t.Fatalf("%d queues have settings, want only queue 3", n)
	}
	wantErrors(t, map[string]error{
		"queues 1 and 3 cannot merge while their setting differs": r.tryResize("1", 2),
		"there is no queue of that name":                          c.Roster().Operator("test").SetQueue(t.Context(), r.task, "9", replaceLimits(roster.QueueLimits{})),
	})
}

func replaceLimits(l roster.QueueLimits) func(*roster.QueueLimits) error {
	return func(old *roster.QueueLimits) error {
		*old = l
		return nil
	}
}

// setLimitsAtOnce begins changes of the limits of queue 1 by several operators, and then makes them.
func (r *fixture) setLimitsAtOnce(list ...verbs.SetQueue) {
	r.Helper()
	var changes []*verbs.Change
	for _, s := range list {
		s.TaskType, s.Queue = r.task, "1"
		change, err := s.Prepare(r.Context(), ops.New(r.c))
		r.must(err)
		changes = append(changes, change)
	}
	for _, change := range changes {
		_, err := change.Do(r.Context(), "test")
		r.must(err)
	}
}
