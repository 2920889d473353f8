package centertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// newerPlanner is a version of the planner's rules that this program does not know.
const newerPlanner = plan.Version + 1

// testPlannerVersions checks who plans while the servers know different rules.
func testPlannerVersions(t *testing.T, c *center.Center) {
	inForce := func(r *fixture) int64 {
		return r.readInt("SELECT planner_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
	}
	setInForce := func(r *fixture, version int) {
		r.exec("UPDATE schedule_task_running SET planner_version = %d WHERE task_type = '%s'", version, r.task)
	}
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
	t.Run("P11 newer rules come into force when all servers know them", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.register("B")
		knows(r, newerPlanner, "B")
		asNewer(r, "B")
		if v := inForce(r); v != plan.Version {
			t.Errorf("version %d is in force while a server knows only %d", v, plan.Version)
		}
		r.wantOwners("A", "A>B")
		knows(r, newerPlanner, "A")
		r.register("C")
		knows(r, newerPlanner, "C")
		asNewer(r, "C")
		if v := inForce(r); v != newerPlanner {
			t.Errorf("version %d is in force, and all servers know %d", v, newerPlanner)
		}
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventPlanner}, 10)
		r.must(err)
		want := fmt.Sprintf("planner version %d is in force, after %d", newerPlanner, plan.Version)
		if len(events) == 0 || events[0].Actor != r.uuid("C") || events[0].Reason != want {
			t.Errorf("events %+v, want %q first", events, want)
		}
	})
	t.Run("P11 a server that does not know the rules does not plan", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		setInForce(r, newerPlanner)
		knows(r, newerPlanner, "A")
		r.register("B")
		r.rebalance("B")
		r.wantOwners("A", "A")
		r.wantFinding(fmt.Sprintf("does not know planner version %d, which is in force, and does not plan", newerPlanner))
		asNewer(r, "A")
		r.wantOwners("A", "A>B")
	})
	t.Run("P11 a server that does not know the rules leaves its queues to nobody", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		setInForce(r, newerPlanner)
		knows(r, newerPlanner, "A")
		epoch := r.epoch("1")
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantOwners("A", "-")
		if after := r.epoch("1"); after != epoch+1 {
			t.Errorf("the epoch went from %d to %d, want one more", epoch, after)
		}
		asNewer(r, "A")
		r.wantOwners("A", "A")
	})
	t.Run("P11 versions that were edited stop no plan", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		knows(r, newerPlanner+1, "A", "B")
		r.wantFinding(fmt.Sprintf("all workers say that they know planner version %d, but version %d is in force", newerPlanner+1, plan.Version))
		r.exec("UPDATE schedule_queue SET cur_server = NULL, req_server = NULL, epoch = epoch + 1 WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE task_type = '%s'", r.task)
		_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
		r.must(err)
		r.wantOwners("A", "B")
		if v := r.readInt("SELECT planner_version FROM schedule_server WHERE uuid = '%s'", r.uuid("A")); v != plan.Version || inForce(r) != plan.Version {
			t.Errorf("the row of A says version %d, and version %d is in force", v, inForce(r))
		}
	})
	t.Run("P11 older rules come back when no server knows the newer ones", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		setInForce(r, newerPlanner)
		r.join("A")
		r.wantOwners("A", "A")
		if v := inForce(r); v != plan.Version {
			t.Errorf("version %d is in force, and the only server knows %d", v, plan.Version)
		}
	})
	t.Run("P11 a program does not plan by rules older than it knows", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.register("A")
		knows(r, plan.OldestVersion-1, "A")
		setInForce(r, plan.OldestVersion-1)
		r.register("B")
		r.rebalance("B")
		r.wantOwners("-", "-")
		if v := inForce(r); v != plan.OldestVersion-1 {
			t.Errorf("version %d is in force while a server knows only %d", v, plan.OldestVersion-1)
		}
		knows(r, plan.Version, "A")
		r.rebalance("B")
		r.wantOwners("A", "B")
	})
}

// wantFinding checks that the doctor finds something about the task type.
func (r *taskType) wantFinding(text string) {
	r.Helper()
	findings, err := ops.New(r.c).Diagnose(r.Context(), r.task)
	r.must(err)
	for _, f := range findings {
		if strings.Contains(f.Text, text) {
			return
		}
	}
	r.Errorf("the doctor finds %+v, want %q", findings, text)
}
