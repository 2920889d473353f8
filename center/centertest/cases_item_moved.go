package centertest

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
)

// wantAny checks whether workers look for failed items of a queue.
func (r itemSteps) wantAny(queue string, want bool) {
	r.Helper()
	got, err := failures.Of(r.c.Roster()).Any(r.Context(), r.task, queue)
	if r.must(err); got != want {
		r.Errorf("queue %s may have failed items: %t, want %t", queue, got, want)
	}
}

// testMovedItems checks that a record belongs to its key (X6): Any reports that items may have changed queues, and Find
// returns them whatever their queue was.
func testMovedItems(t *testing.T, c *center.Center) {
	t.Run("X6 another number of queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		dead := failures.Item{Key: "7", QueueID: "1", Partition: r.partition(), State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantAny("0", false)
		r.wantAny("1", true)
		r.repartition(4)
		r.drainAll("A")
		r.wantChanges("")
		for _, queue := range []string{"0", "1", "2", "3"} {
			r.wantAny(queue, true)
		}
		found, err := failures.Of(c.Roster()).Find(t.Context(), r.task, []string{"7", "8"})
		r.must(err)
		r.compareItems(found, dead)
		dead.QueueID, dead.Partition = "3", r.partition()
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantAny("0", false)
		r.wantItems("3", dead)
	})
	t.Run("X6 named queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"north", "south"}})
		dead := failures.Item{Key: "7", QueueID: "south", Partition: r.partition(), State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantAny("north", false)
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.wantAny("north", true)
		dead.QueueID, dead.Partition = "north", r.partition()
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantItems("north", dead)
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "west", ""))
		r.wantAny("west", true)
	})
}

// testStartedItems checks that Any survives a lock row that was deleted by hand, and that Started returns the items
// that are STARTED.
func testStartedItems(t *testing.T, c *center.Center) {
	t.Run("X6 a lock row that was deleted by hand", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		dead := failures.Item{Key: "7", QueueID: "1", Partition: 5, State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.exec("DELETE FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.define(center.Settings{Queues: 2})
		r.wantAny("1", true)
	})
	t.Run("S14", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		var want []failures.Item
		for i := range 5 {
			item := failures.Item{Key: fmt.Sprint(i), QueueID: "0", Partition: r.partition(), State: ops.ItemDead}
			switch i {
			case 2, 4:
				item.State = ops.ItemStarted
				want = append(want, item)
			case 3:
				item.State = ops.ItemRetry
			}
			r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{item}))
		}
		other := failures.Item{Key: "other", QueueID: "1", Partition: r.partition(), State: ops.ItemStarted}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{other}))
		got, err := failures.Of(c.Roster()).Started(t.Context(), r.task, "0")
		r.must(err)
		r.compareItems(got, want...)
	})
}
