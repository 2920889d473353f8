package centertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// finishRemoval gives up a queue under its current epoch. It reports whether that deleted the queue.
func (r queueSteps) finishRemoval(name, queue string) bool {
	r.Helper()
	return r.finishRemovalUnder(name, queue, r.epoch(queue))
}

// finishRemovalUnder is finishRemoval under another epoch.
func (r queueSteps) finishRemovalUnder(name, queue string, epoch int64) bool {
	r.Helper()
	given, err := r.c.Roster().Server(r.task, r.uuid(name)).GiveUp(r.Context(), roster.QueueEpoch{ID: queue, Epoch: epoch})
	r.must(err)
	return len(given) > 0
}

// queues returns the ids of the queues in order.
func (r queueSteps) queues() []string {
	r.Helper()
	return r.readColumn("SELECT queue_id FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
}

// wantQueues checks the ids of the queues, and their number in the heartbeat reply to A if it is registered.
func (r *fixture) wantQueues(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.queues()); diff != "" {
		r.Fatalf("queues (-want +got):\n%s", diff)
	}
	if p, ok := r.heartbeat("A"); ok && p.QueueTotal != len(want) {
		r.Fatalf("the heartbeat reply counts %d queues, want %d", p.QueueTotal, len(want))
	}
}

// named is a task type with named queues.
var named = center.Settings{QueueNames: []string{"north", "south"}}

// oddNames are in natural order. Each differs from its neighbour in more than one way: in leading zeros and in length.
var oddNames = []string{"01", "1", "1-a", "01a"}

func testAddQueue(t *testing.T, c *center.Center) {
	t.Run("N2 an added queue gets an owner", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "west", "w"))
		if p, _ := r.heartbeat("A"); !p.PlanDue {
			t.Fatal("the added queue did not raise the membership version")
		}
		r.rebalance("A")
		r.wantQueues("north", "south", "west")
		r.wantOwners("A", "A", "B")
		if diff := cmp.Diff([]string{"ADDED", "GRANTED"}, r.eventKinds("west")); diff != "" {
			t.Fatalf("events of queue west (-want +got):\n%s", diff)
		}
		if all := r.readColumn("SELECT DISTINCT division FROM schedule_queue WHERE task_type = '%s'", r.task); len(all) != 1 {
			t.Fatalf("the queues are of the divisions %q, want one", all)
		}
	})
	t.Run("N2 H3 a removal sent before the withdrawal finds another epoch", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		old := r.epoch("south")
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "south", ""))
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("the queue was deleted although its removal is withdrawn")
		}
		kept, err := c.Roster().Server(r.task, r.uuid("A")).Retake(t.Context(), "south", old)
		if err != nil || !kept {
			t.Fatalf("the owner retook the queue: %t, want true: %v", kept, err)
		}
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("the queue was deleted under the epoch before the retake")
		}
		r.wantQueues("north", "south")
	})
}

func testRemoveQueue(t *testing.T, c *center.Center) {
	t.Run("N2 H6 a queue is removed after its owner has drained it", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		if !v.Queues[1].Changing || v.Queues[0].Changing {
			t.Fatalf("the view of the owner has queues %+v, want only the second marked as removing", v.Queues)
		}
		r.rebalance("A")
		r.wantOwners("A", "A")
		old := r.epoch("south")
		if r.finishRemovalUnder("A", "south", old-1) || r.finishRemoval("B", "south") {
			t.Fatal("the queue was deleted under an old epoch or by another server")
		}
		if !r.finishRemoval("A", "south") {
			t.Fatal("the owner drained the queue, but it was not deleted")
		}
		r.wantQueues("north")
		if diff := cmp.Diff([]string{"GRANTED", "REQUESTED", "REMOVING", "REMOVED"}, r.eventKinds("south")); diff != "" {
			t.Fatalf("events of queue south (-want +got):\n%s", diff)
		}
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("the queue was deleted twice")
		}
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "south", ""))
		if now := r.epoch("south"); now <= old+1 {
			t.Fatalf("the queue has epoch %d again, want one above %d", now, old+1)
		}
	})
	t.Run("N2 the removal of as many queues as there are fits, with the longest names", func(t *testing.T) {
		names := make([]string, 500)
		for i := range names {
			names[i] = fmt.Sprintf("%03d%s", i, strings.Repeat("n", 147))
		}
		r := newFixture(t, c, center.Settings{QueueNames: names})
		r.join("A")
		changes := roster.Changes{}
		for _, name := range names[:len(names)-2] { // each removal is a transaction
			changes[name] = roster.Remove
		}
		all, err := json.Marshal(changes)
		r.must(err)
		r.exec(`UPDATE schedule_task_running SET queue_changes = '%s' WHERE task_type = '%s'`, all, r.task)
		removed := names[len(names)-2]
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, removed))
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		changing := 0
		for _, q := range v.Queues {
			if q.Changing {
				changing++
			}
		}
		if changing != len(names)-1 {
			t.Errorf("%d queues are to be removed, want %d", changing, len(names)-1)
		}
		if !r.finishRemoval("A", removed) {
			t.Error("the last queue was not removed")
		}
	})
	t.Run("P1 N2 a plan is written while a queue is removed, whatever the names", func(t *testing.T) {
		all := newFixture(t, c, named)
		for i, removed := range oddNames {
			r := all.sibling(fmt.Sprint(i))
			r.define(center.Settings{QueueNames: oddNames})
			r.join("A")
			for epoch, name := range oddNames { // a change that is mixed up with another queue's row fails
				r.exec(`UPDATE schedule_queue SET epoch = %d WHERE task_type = '%s' AND queue_id = '%s'`, 100+epoch, r.task, name)
			}
			r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, removed))
			r.join("B", "C")
			if !r.finishRemoval("A", removed) {
				t.Fatalf("queue %s was not removed", removed)
			}
		}
	})
	t.Run("N2 L5 a removal does not wait for a transaction of the owner", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, named)
		r.join("A")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("A", "south"), tx))
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		if r.finishRemoval("A", "south") {
			t.Fatal("the queue was deleted while a transaction held its row")
		}
		r.must(tx.Commit())
		if !r.finishRemoval("A", "south") {
			t.Fatal("the queue was not deleted after the transaction")
		}
	})
}

func testRemoveOwnerless(t *testing.T, c *center.Center) {
	t.Run("N2 a queue without an owner is removed at once", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "north"))
		r.wantQueues("south")
	})
	t.Run("N2 a queue whose owner is dead is removed when it expires", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.release("A", r.handover("south", "B"))
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantQueues("north")
	})
	t.Run("N2 a queue is removed when its owner leaves", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.release("A", r.handover("south", "B"))
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantQueues("north")
	})
}

func testQueueErrors(t *testing.T, c *center.Center) {
	t.Run("errors name the operation, the queue and the cause", func(t *testing.T) {
		r := newFixture(t, c, named)
		numbered := r.sibling("numbered")
		numbered.define(center.Settings{Queues: 2})
		wantErrors(t, map[string]error{
			`add queue "north" to ` + r.task + `$BASE: there is a queue of that name`:       c.Roster().Operator("test").AddQueue(t.Context(), r.task, "north", ""),
			`queue ("a\nb") must be printable`:                                              c.Roster().Operator("test").AddQueue(t.Context(), r.task, "a\nb", ""),
			`remove queue "east" of ` + r.task + `$BASE: there is no queue of that name`:    c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "east"),
			`$BASE: the queues have numbers, so that only their number can change`:          c.Roster().Operator("test").RemoveQueue(t.Context(), numbered.task, "1"),
			`add queue "7" to ` + numbered.task + `$BASE: the queues have numbers, so that`: c.Roster().Operator("test").AddQueue(t.Context(), numbered.task, "7", ""),
			`unknown task type`: c.Roster().Operator("test").AddQueue(t.Context(), "nobody", "x", ""),
		})
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "north"))
		if err := c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"); err == nil || !strings.Contains(err.Error(), "it is the last one") {
			t.Errorf("remove the last queue: error %v, want a refusal", err)
		}
	})
}
