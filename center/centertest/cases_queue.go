package centertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

func (r *fixture) finishRemoval(name, queue string) bool {
	r.Helper()
	return r.finishRemovalUnder(name, queue, r.epoch(queue))
}

func (r *fixture) finishRemovalUnder(name, queue string, epoch int64) bool {
	r.Helper()
	done, err := r.c.Roster().FinishRemoval(r.Context(), r.task, r.uuid(name), queue, epoch)
	r.must(err)
	return done
}

func (r *fixture) queues() []string {
	r.Helper()
	return r.readColumn("SELECT queue_id FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
}

func (r *fixture) wantQueues(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.queues()); diff != "" {
		r.Fatalf("queues (-want +got):\n%s", diff)
	}
	if p, ok := r.heartbeat("A"); ok && p.QueueTotal != len(want) {
		r.Fatalf("the lock row says that there are %d queues, there are %v", p.QueueTotal, want)
	}
}

func testNamedQueues(t *testing.T, c *center.Center) {
	named := center.Settings{QueueNames: []string{"north", "south"}}
	t.Run("N2 an added queue gets an owner", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.must(c.Roster().AddQueue(t.Context(), r.task, "west", "w", "test"))
		if p, _ := r.heartbeat("A"); p.MembershipVersion == p.PlannedVersion {
			t.Fatal("the membership version did not change")
		}
		r.rebalance("A")
		r.wantQueues("north", "south", "west")
		r.wantOwners("A", "A", "B")
		if diff := cmp.Diff([]string{"ADDED", "GRANTED"}, r.eventKinds("west")); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("N2 removal waits for the drain", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		v, err := c.Roster().View(t.Context(), r.task, r.uuid("A"))
		r.must(err)
		if !v.Queues[1].Removing || v.Queues[0].Removing {
			t.Fatalf("the owner is not told: %+v", v.Queues)
		}
		r.rebalance("A")
		r.wantOwners("A", "A")
		old := r.epoch("south")
		if r.finishRemovalUnder("A", "south", old-1) || r.finishRemoval("B", "south") {
			t.Fatal("removed by one that does not own it")
		}
		if !r.finishRemoval("A", "south") {
			t.Fatal("not removed")
		}
		r.wantQueues("north")
		if diff := cmp.Diff([]string{"GRANTED", "REQUESTED", "REMOVING", "REMOVED"}, r.eventKinds("south")); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("removed twice")
		}
		r.must(c.Roster().AddQueue(t.Context(), r.task, "south", "", "test"))
		if now := r.epoch("south"); now <= old+1 {
			t.Fatalf("H6 epoch %d was used before, up to %d", now, old+1)
		}
	})
	t.Run("N2 L5 removal does not wait for a transaction of the owner", func(t *testing.T) {
		if c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all writers")
		}
		r := newFixture(t, c, named)
		r.join("A")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("A", "south"), tx))
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		if r.finishRemoval("A", "south") {
			t.Fatal("removed under a transaction of its owner")
		}
		r.must(tx.Commit())
		if !r.finishRemoval("A", "south") {
			t.Fatal("not removed")
		}
	})
	t.Run("N2 without an owner it goes at once", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "north", "test"))
		r.wantQueues("south")
	})
	t.Run("N2 with a dead owner it goes with the plan", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.release("A", r.handover("south", "B"))
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantQueues("north")
	})
	t.Run("N2 a queue under removal goes when its owner leaves", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A", "B")
		r.release("A", r.handover("south", "B"))
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("B"), nil))
		r.wantQueues("north")
	})
	t.Run("N2 H3 kept after all: a late removal finds another epoch", func(t *testing.T) {
		r := newFixture(t, c, named)
		r.join("A")
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		old := r.epoch("south")
		r.must(c.Roster().AddQueue(t.Context(), r.task, "south", "", "test"))
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("removed although it is kept")
		}
		kept, err := c.Roster().Retake(t.Context(), r.task, r.uuid("A"), "south", old)
		if err != nil || !kept {
			t.Fatalf("kept: %t, %v", kept, err)
		}
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"))
		if r.finishRemovalUnder("A", "south", old) {
			t.Fatal("removed under an old epoch, while the new one may be worked")
		}
		r.wantQueues("north", "south")
	})
	t.Run("bad input", func(t *testing.T) {
		r := newFixture(t, c, named)
		numbered := newFixture(t, c, center.Settings{Queues: 2})
		numbered.task += ".numbered"
		numbered.define(center.Settings{Queues: 2})
		for want, err := range map[string]error{
			`add queue "north" to ` + r.task + `$BASE: there is a queue of that name`:      c.Roster().AddQueue(t.Context(), r.task, "north", "", "test"),
			`queue ("a\nb") must be printable`:                                             c.Roster().AddQueue(t.Context(), r.task, "a\nb", "", "test"),
			`remove queue "east" of ` + r.task + `$BASE: there is no queue of that name`:   c.Roster().RemoveQueue(t.Context(), r.task, "east", "test"),
			`$BASE: the queues have numbers: change how many there are instead`:            c.Roster().RemoveQueue(t.Context(), numbered.task, "1", "test"),
			`add queue "7" to ` + numbered.task + `$BASE: the queues have numbers: change`: c.Roster().AddQueue(t.Context(), numbered.task, "7", "", "test"),
			`unknown task type`: c.Roster().AddQueue(t.Context(), "nobody", "x", "", "test"),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		r.must(c.Roster().RemoveQueue(t.Context(), r.task, "north", "test"))
		if err := c.Roster().RemoveQueue(t.Context(), r.task, "south", "test"); err == nil || !strings.Contains(err.Error(), "it is the last one") {
			t.Error(err)
		}
	})
}
