package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// pin pins a queue.
func (r *fixture) pin(queue, labels string) {
	r.Helper()
	r.must(r.c.Roster().Operator("ann").PinQueue(r.Context(), r.task, queue, labels))
}

// wantPins checks the pins that the queues have, and that no other pin is left.
func (r *fixture) wantPins(want ...string) {
	r.Helper()
	queues, err := ops.New(r.c).Queues().List(r.Context(), ops.QueueFilter{TaskType: r.task})
	r.must(err)
	pinned := int64(0)
	for i, q := range queues {
		if len(queues) != len(want) || q.Pin != want[i] {
			r.Fatalf("queue %s has the pin %q; want %q", q.QueueID, q.Pin, want)
		}
		if q.Pin != "" {
			pinned++
		}
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_queue_setting WHERE task_type = '%s' AND own_sign = '%s'", r.task, r.c.OwnSign()); n != pinned {
		r.Fatalf("there are %d pins of %d pinned queues", n, pinned)
	}
}

// testPinAtOnce checks that a pin does not wait for the owner's transactions, which may overlap for ever.
func testPinAtOnce(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	r := newFixture(t, c, center.Settings{Queues: 2})
	tx := r.stall("A", "0")
	r.pin("0", "zone=b")
	r.wantPins("zone=b", "")
	r.pin("0", "")
	r.wantPins("", "")
	r.must(tx.Commit())
}

// testPins checks which pins a queue has that was made, removed or copied.
func testPins(t *testing.T, c *center.Center, url string) {
	t.Run("P14 a queue that is removed and added again is not pinned", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.pin("south", "zone=b")
		r.wantPins("", "zone=b")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.wantPins("")
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "south", ""))
		r.wantPins("", "")
	})
	t.Run("P14 a queue that was deleted by hand and is added again is not pinned", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.pin("south", "zone=b")
		r.exec("DELETE FROM schedule_queue WHERE task_type = '%s' AND queue_id = 'south'", r.task)
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "south", ""))
		r.wantPins("", "")
	})
	t.Run("P14 fewer queues have fewer pins", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		r.pin("0", "zone=a")
		r.pin("2", "zone=b")
		for _, total := range []int{2, 3} {
			r.repartition(total)
			r.drainAll("A")
			r.wantChanges("")
		}
		r.wantPins("zone=a", "", "")
	})
	t.Run("P14 another environment copies the pins of BASE, again after its rows were deleted", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.pin("1", "zone=b")
		test := fixtureOf(&taskType{T: t, c: Open(t, url, center.Options{OwnSign: "TEST"}), task: r.task})
		for range 2 {
			test.define(center.Settings{Queues: 2})
			test.wantPins("", "zone=b")
			test.exec("DELETE FROM schedule_queue WHERE task_type = '%s' AND own_sign = 'TEST'", r.task)
			test.exec("DELETE FROM schedule_task_running WHERE task_type = '%s' AND own_sign = 'TEST'", r.task)
		}
		r.wantPins("", "zone=b")
	})
}
