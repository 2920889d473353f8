package centertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// testStandby checks the limits of the servers that own queues.
func testStandby(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4, MaxServers: 2, MaxServersPerHost: 1})
	host := func(name, host string) {
		r.exec("UPDATE schedule_server SET host_name = '%s' WHERE uuid = '%s'", host, r.uuid(name))
	}
	t.Run("P12 servers beyond the limits stand by", func(t *testing.T) {
		r.join("A")
		r.register("B")
		host("B", "host-A") // of A
		r.rebalance("B")
		r.wantOwners("A", "A", "A", "A")
		r.join("C")
		r.wantOwners("A", "A>C", "A", "A>C")
		r.release("A", r.handover("1", "C"), r.handover("3", "C"))
		r.join("D")
		r.wantOwners("A", "C", "A", "C")
		p, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{Add: 1})
		r.must(err)
		if len(p.Moves) > 0 {
			t.Errorf("one server more: moves %+v, want none", p.Moves)
		}
	})
	t.Run("P12 they take over", func(*testing.T) {
		r.makeSilent("A")
		r.rebalanceExpiring("C")
		r.wantOwners("B", "C", "B", "C")
		r.setLimits(0, 0)
		r.rebalance("C")
		r.wantOwners("B", "C", "B", "C>D")
	})
}

// setLimits sets max_servers and max_servers_per_host.
func (r *fixture) setLimits(servers, ofHost int) {
	r.Helper()
	settings, err := ops.New(r.c).Tasks().Settings(r.Context(), r.task)
	r.must(err)
	settings.MaxServers, settings.MaxServersPerHost = servers, ofHost
	diff, err := ops.New(r.c).Tasks().Compare(r.Context(), r.task, settings)
	r.must(err)
	r.must(ops.New(r.c).Tasks().Apply(r.Context(), diff, "test"))
}

func testWeight(t *testing.T, c *center.Center) {
	t.Run("P2 queues follow the weights with the fewest moves", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		before := r.readInt("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.must(c.Roster().Operator("ann").SetWeight(t.Context(), r.uuid("B"), 3))
		if after := r.readInt("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task); after != before+1 {
			t.Errorf("the membership version went from %d to %d, want one more: a plan is due", before, after)
		}
		r.rebalance("A")
		r.wantOwners("A", "B", "A>B", "B")
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventWeight}, 10)
		r.must(err)
		if len(events) != 1 || events[0].Actor != "ann" || events[0].Reason != "its weight is 3" {
			t.Errorf("events %+v, want one of the weight", events)
		}
	})
	t.Run("P2 a server without a weight stands by until the others are gone", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.join("B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().Operator("test").SetWeight(t.Context(), r.uuid("B"), 0))
		r.rebalance("A")
		r.wantOwners("A", "B>A")
		r.release("B", r.handover("1", "A"))
		r.makeSilent("A")
		r.rebalanceExpiring("B")
		r.wantOwners("B", "B")
	})
	t.Run("a preview has other weights", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		p, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{Weights: map[string]int{r.uuid("A"): 0}})
		r.must(err)
		if p.Moved() != 2 || p.Moves[0].Rule != "weight" {
			t.Errorf("%+v, want 2 moves because A has weight 0", p.Moves)
		}
		r.rebalance("A")
		r.wantOwners("A", "B", "A", "B")
	})
	t.Run("an error of a weight names the cause", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		for _, weight := range []int{-1, ops.MaxWeight + 1} {
			if err := c.Roster().Operator("test").SetWeight(t.Context(), r.uuid("A"), weight); err == nil || !strings.Contains(err.Error(), "must be between 0 and 1000") {
				t.Errorf("weight %d: error %v, want the rule", weight, err)
			}
			if _, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{Weights: map[string]int{r.uuid("A"): weight}}); err == nil {
				t.Errorf("preview of weight %d: no error", weight)
			}
		}
		if err := c.Roster().Operator("test").SetWeight(t.Context(), "nobody", 1); !errors.Is(err, center.ErrGone) {
			t.Errorf("an unknown server: error %v, want ErrGone", err)
		}
	})
}
