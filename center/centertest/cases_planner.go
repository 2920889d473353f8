package centertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// newerPlanner is a version of the planner's rules that this program does not know.
const newerPlanner = plan.Version + 1

// testPlannerVersions checks who plans while the servers know different rules.
func testPlannerVersions(t *testing.T, c *center.Center) {
	knows := func(r *fixture, version int, names ...string) {
		for _, name := range names {
			r.exec("UPDATE schedule_server SET planner_version = %d WHERE uuid = '%s'", version, r.uuid(name))
		}
	}
	// asNewer rebalances as a server whose program knows the newer version.
	asNewer := func(r *fixture, name string) {
		newer := *c.Roster()
		newer.PlannerVersion = newerPlanner
		_, err := newer.Planner(r.task, r.uuid(name)).Rebalance(t.Context(), roster.RebalanceOptions{})
		r.must(err)
	}
	t.Run("P11 the servers of the oldest version plan", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.register("B")
		knows(r, newerPlanner, "B")
		asNewer(r, "B")
		r.wantOwners("A", "A")
		r.wantFinding(fmt.Sprintf("%s knows planner version %d, and %s version %d; only the oldest ones plan",
			ops.ServerName(r.uuid("A")), plan.Version, ops.ServerName(r.uuid("B")), newerPlanner))
		r.rebalance("A")
		r.wantOwners("A", "A>B")
	})
	t.Run("P11 newer servers plan when no older one lives", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		knows(r, newerPlanner, "A")
		r.register("B")
		knows(r, newerPlanner, "B")
		asNewer(r, "B")
		r.wantOwners("A", "A>B")
	})
	t.Run("P11 a newer server leaves its queues to nobody", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		knows(r, newerPlanner, "B")
		epoch := r.epoch("1")
		newer := *c.Roster()
		newer.PlannerVersion = newerPlanner
		r.must(newer.Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantOwners("A", "-")
		if after := r.epoch("1"); after != epoch+1 {
			t.Errorf("the epoch went from %d to %d, want one more", epoch, after)
		}
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
	t.Run("P11 a version that was edited stops no plan", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.register("B")
		knows(r, newerPlanner, "B") // so it does, and the row of A says an older version than its program knows
		asNewer(r, "A")
		r.wantOwners("A", "A>B")
	})
}

// wantFinding checks that the doctor finds something about the task type.
func (r *taskType) wantFinding(text string) {
	r.Helper()
	findings, err := doctor.Diagnose(r.Context(), ops.New(r.c), r.task)
	r.must(err)
	for _, f := range findings {
		if strings.Contains(f.Text, text) {
			return
		}
	}
	r.Errorf("the doctor finds %+v, want %q", findings, text)
}
