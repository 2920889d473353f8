package centertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// testTotals checks that the processes have equal numbers of queues of all task types. Each case has an environment of its
// own, because its processes serve no other task types.
func testTotals(t *testing.T, c *center.Center) {
	in := func(t *testing.T, ownSign string) *center.Center {
		t.Helper()
		other, err := c.In(ownSign)
		if err != nil {
			t.Fatal(err)
		}
		return other
	}
	join := func(r *fixture, names ...string) {
		for _, name := range names {
			r.register(name)
			r.exec("UPDATE schedule_server SET process = '%s' WHERE uuid = '%s'", name, r.uuid(name))
			r.rebalance(name)
		}
	}
	balance := func(r *fixture) {
		r.exec("UPDATE schedule_environment SET balanced_at = NULL WHERE own_sign = '%s'", r.c.OwnSign())
		r.must(r.c.Roster().Planner(r.task, r.uuid("A")).BalanceTotals(r.Context()))
	}
	// pair returns two task types of one queue that the first of two processes has.
	pair := func(t *testing.T, ownSign string) (one, two *fixture) {
		one = newFixture(t, in(t, ownSign), center.Settings{Queues: 1})
		two = one.sibling("b")
		two.define(center.Settings{Queues: 1})
		for _, r := range []*fixture{one, two} {
			join(r, "A", "B")
			r.wantOwners("A")
		}
		balance(one) // inserts the row
		return one, two
	}
	t.Run("P15 a process with fewer queues elsewhere gets the spare queue", func(t *testing.T) {
		one, two := pair(t, "elsewhere")
		two.exec("UPDATE schedule_queue SET cur_server = NULL WHERE task_type = '%s'", two.task)
		two.exec("UPDATE schedule_task_running SET membership_version = membership_version + 1 WHERE task_type = '%s'", two.task)
		two.rebalance("A")
		one.wantOwners("A")
		two.wantOwners("B")
	})
	t.Run("P8 P15 planning again requests for the same process", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		other := r.sibling("other")
		other.define(center.Settings{Queues: 4})
		r.register("A")
		other.register("B") // its process owns four queues of the other task type
		other.rebalance("B")
		r.rebalance("A")
		for _, name := range []string{"B", "C", "D"} {
			r.register(name)
		}
		r.exec("UPDATE schedule_server SET process = host_name WHERE task_type LIKE '%s%%'", r.task)
		r.exec("UPDATE schedule_queue SET cur_server = NULL, req_server = NULL, epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '2'", r.task)
		r.rebalance("A")
		first := r.owners()
		r.rebalanceAlways("A")
		if again := r.owners(); !slices.Equal(first, again) {
			t.Errorf("the plan made %v, and planning again makes %v", first, again)
		}
	})
	t.Run("P15 queues move until the totals are equal", func(t *testing.T) {
		one, two := pair(t, "move")
		balance(one)
		one.rebalance("B")
		two.rebalance("B")
		one.wantOwners("A>B")
		two.wantOwners("A")
		moves := one.preview(ops.Scenario{})
		if !slices.ContainsFunc(moves, func(m string) bool { return strings.Contains(m, "the totals of the processes") }) {
			t.Errorf("the preview says %v", moves)
		}
		events, err := ops.New(one.c).Events().List(t.Context(), ops.EventFilter{TaskType: one.task, Kind: ops.EventTotals}, 10)
		one.must(err)
		if len(events) != 1 || events[0].Actor != one.uuid("A") || !strings.HasPrefix(events[0].Reason, "1 share is rounded up") {
			t.Errorf("events %+v", events)
		}
		one.release("A", one.handover("0", "B"))
		balance(one)
		one.rebalance("B")
		two.rebalance("B")
		one.wantOwners("B")
		two.wantOwners("A")
	})
	t.Run("P15 one server, once per audit interval", func(t *testing.T) {
		one, _ := pair(t, "turn")
		balance(one)
		version := one.readInt("SELECT version FROM schedule_environment WHERE own_sign = 'turn'")
		if version != 1 {
			t.Errorf("the version is %d after one move, want 1", version)
		}
		one.exec("UPDATE schedule_server SET rounded_up = FALSE WHERE own_sign = 'turn'")
		one.must(one.c.Roster().Planner(one.task, one.uuid("B")).BalanceTotals(t.Context()))
		if n := one.readInt("SELECT COUNT(*) FROM schedule_server WHERE own_sign = 'turn' AND rounded_up"); n != 0 {
			t.Errorf("a server balances right after another")
		}
	})
	t.Run("P15 of two servers that balance at the same time, one writes", func(t *testing.T) {
		one, _ := pair(t, "race")
		planner := one.c.Roster().Planner(one.task, one.uuid("A"))
		first, err := planner.ChooseRoundingUp(t.Context())
		one.must(err)
		one.exec("UPDATE schedule_environment SET balanced_at = NULL WHERE own_sign = 'race'")
		second, err := planner.ChooseRoundingUp(t.Context())
		one.must(err)
		one.must(planner.WriteRoundingUp(t.Context(), first))
		one.exec("UPDATE schedule_server SET rounded_up = FALSE WHERE own_sign = 'race'")
		one.exec("UPDATE schedule_task_running SET membership_version = membership_version - 1 WHERE task_type = '%s'", one.task)
		one.must(planner.WriteRoundingUp(t.Context(), second))
		if n := one.readInt("SELECT COUNT(*) FROM schedule_server WHERE own_sign = 'race' AND rounded_up"); n != 0 {
			t.Errorf("both write")
		}
	})
	t.Run("P15 a task type that has changed meanwhile stays as it is", func(t *testing.T) {
		one, _ := pair(t, "changed")
		planner := one.c.Roster().Planner(one.task, one.uuid("A"))
		choice, err := planner.ChooseRoundingUp(t.Context())
		one.must(err)
		join(one, "C")
		one.must(planner.WriteRoundingUp(t.Context(), choice))
		if n := one.readInt("SELECT COUNT(*) FROM schedule_server WHERE own_sign = 'changed' AND rounded_up"); n != 0 {
			t.Errorf("a choice is written after another server has joined")
		}
	})
	t.Run("P15 a server that an operator pauses is not rounded up any more", func(t *testing.T) {
		one, _ := pair(t, "pause")
		balance(one)
		one.rebalance("B")
		one.release("A", one.handover("0", "B"))
		one.must(one.c.Roster().Operator("ann").PauseServer(t.Context(), one.uuid("B"), true))
		one.wantOwners("B>A")
		one.release("B", one.handover("0", "A"))
		one.must(one.c.Roster().Operator("ann").PauseServer(t.Context(), one.uuid("B"), false))
		one.wantOwners("A")
	})
}
