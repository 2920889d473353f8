package centertest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

func testHungQueues(t *testing.T, c *center.Center) {
	t.Run("P9 a server does not get its hung queues before they are cleared", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.joinHung("A", "0", "2", "9")
		r.wantOwners("-", "A", "-")
		before := r.readInt("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.clearHung("A", "0")
		if after := r.readInt("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task); after != before+1 {
			t.Errorf("the membership version went from %d to %d, want one more", before, after)
		}
		r.rebalance("A")
		r.wantOwners("A", "A", "-")
		r.clearHung("A", "2", "9")
		r.clearHung("A", "2") // again, after a reply that was lost
		r.rebalance("A")
		r.wantOwners("A", "A", "A")
		if n := r.readInt("SELECT COUNT(*) FROM schedule_server WHERE uuid = '%s' AND hung_queues IS NULL", r.uuid("A")); n != 1 {
			t.Error("hung_queues is not NULL when all are cleared")
		}
	})
	t.Run("P9 another server gets the hung queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A", "A", "A")
		r.joinHung("C", "1")
		r.wantOwners("A", "A", "A>C", "A>C")
		r.release("A", r.handover("2", "C"), r.handover("3", "C"))
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantOwners("C", "-", "C", "C")
		r.clearHung("C", "1")
		r.rebalance("C")
		r.wantOwners("C", "C", "C", "C")
	})
	t.Run("P9 a server without a row clears nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		if err := c.Roster().Server(r.task, r.uuid("A")).ClearHungQueues(t.Context(), []string{"0"}); !errors.Is(err, roster.ErrGone) {
			t.Errorf("error %v, want %v", err, roster.ErrGone)
		}
	})
}

// testHungQueuesSeen checks that the lists and Diagnose say why a queue has no owner.
func testHungQueuesSeen(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 3, MaxQueuesPerServer: 1})
	r.joinHung("A", "1")
	want := []string{"PROBLEM queues without an owner, because calls of former sessions still hang: 1 on A", "PROBLEM queues without an owner (max_queues_per_server: 1): 2"}
	if diff := cmp.Diff(want, r.findings("queues")); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	servers, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
	r.must(err)
	if diff := cmp.Diff([]string{"1"}, servers[0].HungQueues); diff != "" {
		t.Errorf("hung queues of A (-want +got):\n%s", diff)
	}
	queues, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: r.task})
	r.must(err)
	for i, hungOn := range [][]string{nil, {r.uuid("A")}, nil} {
		if diff := cmp.Diff(hungOn, queues[i].HungOn); diff != "" {
			t.Errorf("servers on which queue %d hangs (-want +got):\n%s", i, diff)
		}
	}
	r.makeSilent("A")
	r.register("B")
	r.rebalanceExpiring("B")
	if n := r.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s' AND hung_queues IS NOT NULL", r.uuid("A")); n != 1 {
		t.Error("the history does not have the hung queues")
	}
}
