package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// P8: each change names the first rule in rank that breaks if the queue stays where it is.
func TestPlanNamesItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoster(t)
		r.Limits.Servers = rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "max servers")
		checkRules(t, r)
	})
}

// P8, P16: a plan by load does so, too.
func TestPlanByLoadNamesItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoster(t)
		r.Limits.Servers = rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "max servers")
		loads := map[string]float64{}
		for _, q := range r.Queues {
			loads[q.ID] = rapid.SampledFrom([]float64{0.5, 1, 1, 2, 10}).Draw(t, "load")
		}
		byLoad(r, loads)
		for i := range r.Servers {
			r.Servers[i].New = rapid.IntRange(0, 3).Draw(t, "new") == 0
		}
		checkRules(t, r)
	})
}

// checkRules checks the rules of a roster's plan against those that break.
func checkRules(t *rapid.T, r *plantest.Roster) {
	result := plan.Plan(r.Queues, r.Servers, r.Limits)
	moves := slices.Concat(result.Changes, result.Stands)
	for _, c := range moves {
		q, want := r.Queue(c.QueueID), plan.Stays
		switch {
		case q.Removing && c.Owner == "":
			want = plan.Removed
		case q.Removing:
		case c.Owner == "":
			want = plantest.Obstacle(r, *q)
		case c.Requester != "" || c.ChangesOwner():
			want = plantest.Broken(r, moves, c)
			if want == plan.Stays {
				t.Fatalf("%+v: no rule breaks if the queue stays: %+v", c, r)
			}
		}
		if c.Rule != want {
			t.Fatalf("%+v: the rule is %q, want %q: %+v", c, c.Rule, want, r)
		}
	}
	for id, w := range result.Waiting {
		if want := plantest.Obstacle(r, *r.Queue(id)); w.Rule != want {
			t.Fatalf("queue %s waits for %q, want %q: %+v", id, w.Rule, want, r)
		}
	}
}
