package centertest

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
)

// wantLoad checks how many failed items a queue loads if it asks for limited numbers of dead items and of others, and
// whether Load says that there may be more.
func (r itemSteps) wantLoad(queue string, most, want int, wantMore bool) {
	r.Helper()
	got, err := failures.Of(r.c.Roster()).Load(r.Context(), r.task, queue, most, most)
	r.must(err)
	if n := len(got.Items) + len(got.Dead); n != want || got.More != wantMore {
		r.Errorf("queue %s: %d items, more %t, want %d, %t", queue, n, got.More, want, wantMore)
	}
}

// testMovedItems checks that a record belongs to its key (X6): Load reports that items may have changed queues, and
// Find returns them whatever their queue was.
func testMovedItems(t *testing.T, c *center.Center) {
	t.Run("X6 another number of queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		dead := failures.Item{Key: "7", QueueID: "1", Partition: r.partition(), State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantLoad("0", 10, 0, false)
		r.wantLoad("1", 10, 1, false)
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		r.reportDrained("A")
		if !r.finishRepartition("A") {
			t.Fatal("the repartition did not finish")
		}
		for _, queue := range []string{"0", "1", "2", "3"} {
			r.wantLoad(queue, 10, 0, true)
		}
		found, err := failures.Of(c.Roster()).Find(t.Context(), r.task, []string{"7", "8"})
		r.must(err)
		r.compareItems(found, dead)
		dead.QueueID, dead.Partition = "3", r.partition()
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantLoad("0", 10, 0, false)
		r.wantItems("3", dead)
	})
	t.Run("X6 named queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"north", "south"}})
		dead := failures.Item{Key: "7", QueueID: "south", Partition: r.partition(), State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantLoad("north", 10, 0, false)
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.wantLoad("north", 10, 0, true)
		dead.QueueID, dead.Partition = "north", r.partition()
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.wantItems("north", dead)
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "west", ""))
		r.wantLoad("west", 10, 0, true)
	})
}

// testItemsToLoad checks when Load reports more items than it returns.
func testItemsToLoad(t *testing.T, c *center.Center) {
	t.Run("X6 a lock row that was deleted by hand", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		dead := failures.Item{Key: "7", QueueID: "1", Partition: 5, State: ops.ItemDead, Attempts: 25}
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{dead}))
		r.exec("DELETE FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.define(center.Settings{Queues: 2})
		r.wantLoad("1", 10, 0, true)
	})
	t.Run("X6 S14 more items than wanted", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		for i := range 5 {
			item := failures.Item{Key: fmt.Sprint(i), QueueID: "0", Partition: r.partition(), State: ops.ItemDead}
			switch i {
			case 2, 4:
				item.State = ops.ItemStarted
			case 3:
				item.State = ops.ItemRetry
			}
			r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{item}))
		}
		for _, test := range []struct {
			most, mostDead, items, dead int
			more                        bool
		}{
			{3, 2, 3, 2, false},
			{2, 2, 2, 2, true},
			{3, 1, 3, 1, true},
			{10, 0, 3, 0, true},
		} {
			got, err := failures.Of(c.Roster()).Load(t.Context(), r.task, "0", test.most, test.mostDead)
			r.must(err)
			if len(got.Items) != test.items || len(got.Dead) != test.dead || got.More != test.more {
				t.Errorf("%+v: %d items, %d dead, more %t", test, len(got.Items), len(got.Dead), got.More)
			}
			for i, item := range got.Items {
				if (item.State == ops.ItemStarted) != (i < 2) || item.State == ops.ItemDead {
					t.Errorf("loaded %+v, want first the two that are STARTED, then the one in RETRY", got.Items)
				}
			}
		}
	})
}
