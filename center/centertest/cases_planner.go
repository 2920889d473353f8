package centertest

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// testPlannerVersions checks who plans while the servers know different rules. Version 1 is that of this program.
func testPlannerVersions(t *testing.T, c *center.Center) {
	inForce := func(r *fixture) int64 {
		return r.readInt("SELECT planner_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
	}
	knows := func(r *fixture, version int, names ...string) {
		for _, name := range names {
			r.exec("UPDATE schedule_server SET planner_version = %d WHERE uuid = '%s'", version, r.uuid(name))
		}
	}
	// asNewer rebalances as a server whose program knows version 2.
	asNewer := func(r *fixture, name string) {
		newer := *c.Roster()
		newer.PlannerVersion = 2
		_, err := newer.Planner(r.task, r.uuid(name)).Rebalance(t.Context(), roster.RebalanceOptions{})
		r.must(err)
	}
	t.Run("P11 newer rules come into force when all servers know them", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.register("B")
		knows(r, 2, "B")
		asNewer(r, "B")
		if v := inForce(r); v != 1 {
			t.Errorf("version %d is in force while a server knows only 1", v)
		}
		r.wantOwners("A", "A>B")
		knows(r, 2, "A")
		r.register("C")
		knows(r, 2, "C")
		asNewer(r, "C")
		if v := inForce(r); v != 2 {
			t.Errorf("version %d is in force, and all servers know 2", v)
		}
		events, err := c.Events().List(t.Context(), center.EventFilter{TaskType: r.task, Kind: center.EventPlanner}, 10)
		r.must(err)
		if len(events) != 1 || events[0].Actor != r.uuid("C") || events[0].Reason != "planner version 2 is in force, after 1" {
			t.Errorf("events %+v, want one of the version", events)
		}
	})
	t.Run("P11 a server that does not know the rules does not plan", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.exec("UPDATE schedule_task_running SET planner_version = 2 WHERE task_type = '%s'", r.task)
		knows(r, 2, "A")
		r.register("B")
		r.rebalance("B")
		r.wantOwners("A", "A")
		r.wantFinding("does not know planner version 2, which is in force, and does not plan")
		asNewer(r, "A")
		r.wantOwners("A", "A>B")
	})
	t.Run("P11 a server that does not know the rules leaves its queues to nobody", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.exec("UPDATE schedule_task_running SET planner_version = 2 WHERE task_type = '%s'", r.task)
		knows(r, 2, "A")
		epoch := r.epoch("1")
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantOwners("A", "-")
		if after := r.epoch("1"); after != epoch+1 {
			t.Errorf("the epoch went from %d to %d, want one more", epoch, after)
		}
		asNewer(r, "A")
		r.wantOwners("A", "A")
	})
	t.Run("P11 older rules come back when no server knows the newer ones", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.exec("UPDATE schedule_task_running SET planner_version = 2 WHERE task_type = '%s'", r.task)
		r.join("A")
		r.wantOwners("A", "A")
		if v := inForce(r); v != 1 {
			t.Errorf("version %d is in force, and the only server knows 1", v)
		}
	})
}

// wantFinding checks that the doctor finds something about the task type.
func (r *taskType) wantFinding(text string) {
	r.Helper()
	findings, err := r.c.Diagnose(r.Context(), r.task)
	r.must(err)
	for _, f := range findings {
		if strings.Contains(f.Text, text) {
			return
		}
	}
	r.Errorf("the doctor finds %+v, want %q", findings, text)
}
