package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

func TestShareOutCases(t *testing.T) {
	share := func(uuid string, queues, granted, target int) plan.Share {
		return plan.Share{UUID: uuid, Queues: queues, Granted: granted, Target: target}
	}
	for _, c := range []struct {
		name         string
		limit        int
		before, want []plan.Share
	}{
		{
			"the first server gets all calls", 3,
			[]plan.Share{share("A", 4, 0, 0)},
			[]plan.Share{share("A", 4, 3, 3)},
		},
		{
			"a second server waits until the first has lowered its share", 3,
			[]plan.Share{share("A", 2, 3, 3), share("B", 2, 0, 0)},
			[]plan.Share{share("A", 2, 3, 2), share("B", 2, 0, 1)},
		},
		{
			"then it gets its own", 3,
			[]plan.Share{share("A", 2, 2, 2), share("B", 2, 0, 1)},
			[]plan.Share{share("A", 2, 2, 2), share("B", 2, 1, 1)},
		},
		{
			"a server without queues gets nothing", 3,
			[]plan.Share{share("A", 4, 0, 0), share("B", 0, 0, 0)},
			[]plan.Share{share("A", 4, 3, 3), share("B", 0, 0, 0)},
		},
		{
			"in proportion to the queues", 10,
			[]plan.Share{share("A", 6, 0, 0), share("B", 3, 0, 0), share("C", 1, 0, 0)},
			[]plan.Share{share("A", 6, 5, 5), share("B", 3, 3, 3), share("C", 1, 2, 2)},
		},
		{
			"fewer calls than servers: most queues first", 1,
			[]plan.Share{share("A", 1, 0, 0), share("B", 2, 0, 0)},
			[]plan.Share{share("A", 1, 0, 0), share("B", 2, 1, 1)},
		},
		{
			"a server without queues comes first", 4,
			[]plan.Share{share("A", 2, 1, 2), share("B", 2, 0, 2), share("C", 0, 2, 0)},
			[]plan.Share{share("A", 2, 1, 2), share("B", 2, 1, 2), share("C", 0, 2, 0)},
		},
		{
			"a new limit: nobody gets more before all have lowered theirs", 2,
			[]plan.Share{share("A", 1, plan.NoLimit, plan.NoLimit), share("B", 1, 0, plan.NoLimit)},
			[]plan.Share{share("A", 1, plan.NoLimit, 1), share("B", 1, 0, 1)},
		},
		{
			"no limit", 0,
			[]plan.Share{share("A", 1, 2, 1), share("B", 0, 0, 1)},
			[]plan.Share{share("A", 1, plan.NoLimit, plan.NoLimit), share("B", 0, plan.NoLimit, plan.NoLimit)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan.ShareOut(c.limit, c.before)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// P10 holds over arbitrary rows: targets sum to the limit where there are queues, nothing is lowered, and the sum of
// what is granted rises to the limit at most.
func TestShareOutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		before := make([]plan.Share, rapid.IntRange(0, 8).Draw(t, "servers"))
		granted := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 7, plan.NoLimit})
		for i := range before {
			before[i] = plan.Share{UUID: string(rune('A' + i)), Queues: rapid.IntRange(0, 5).Draw(t, "queues"), Granted: granted.Draw(t, "granted"), Target: granted.Draw(t, "target")}
		}
		after := plan.ShareOut(limit, before)
		was, now, wanted, working := 0, 0, 0, 0
		for i, s := range after {
			was, now, wanted = was+before[i].Granted, now+s.Granted, wanted+s.Target
			switch {
			case s.Granted < before[i].Granted:
				t.Fatalf("%s was lowered: %+v", s.UUID, after)
			case s.Granted > before[i].Granted && s.Granted > s.Target:
				t.Fatalf("%s was raised beyond its target: %+v", s.UUID, after)
			case s.Queues == 0 && s.Target > 0:
				t.Fatalf("%s has no queues: %+v", s.UUID, after)
			case s.Queues > 0:
				working++
			}
		}
		for _, s := range after {
			if working <= limit && s.Queues > 0 && s.Target == 0 {
				t.Fatalf("%s gets no call: %+v", s.UUID, after)
			}
			if now < limit && s.Granted < s.Target {
				t.Fatalf("%s waits although calls are free: %+v", s.UUID, after)
			}
		}
		if now > max(was, limit) || working > 0 && wanted != limit {
			t.Fatalf("granted %d (before: %d), wanted %d, the limit is %d: %+v", now, was, wanted, limit, after)
		}
		if again := plan.ShareOut(limit, after); !slices.Equal(again, after) {
			t.Fatalf("sharing out again changes %+v to %+v", after, again)
		}
	})
}

// unbar lets each server get each queue.
func unbar(r *plantest.Roster) {
	for i := range r.Servers {
		r.Servers[i].HungQueues = nil
	}
	for i := range r.Queues {
		r.Queues[i].Pin = plan.Selector{}
	}
}

// With fewer calls than servers, so many servers get all queues, and a plan moves as few queues as it can (P10).
func TestPlanOfFewCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawRoster(t)
		before.Limits = plan.Limits{InFlight: rapid.IntRange(1, 4).Draw(t, "in flight")}
		unbar(before)
		r := before.Clone()
		rebalance(t, r)
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		weights, sum := weightsOf(r.Servers, plan.Selector{})
		eligible := len(weights)
		for _, weight := range weights {
			if weight*eligible != sum {
				return // the rest is for servers that are alike
			}
		}
		r.ReleaseAll("")
		r.Queues = slices.DeleteFunc(r.Queues, func(q plan.Queue) bool { return q.Removing })
		owned := r.Owned()
		if unowned := owned[""]; unowned > 0 && eligible > 0 {
			t.Fatalf("%d queues have no owner: %v", unowned, owned)
		}
		if len(owned) > r.Limits.InFlight && eligible > 0 {
			t.Fatalf("%d servers own queues, with %d calls in flight: %v", len(owned), r.Limits.InFlight, owned)
		}
		for _, n := range owned {
			if least := len(r.Queues) / r.Limits.InFlight; eligible >= r.Limits.InFlight && (n < least || n > least+1) {
				t.Fatalf("%v is not balanced", owned)
			}
		}
		settle(t, r)
	})
}

// A server that stands by takes nothing when it joins, and takes over when one of the others has gone.
func TestStandbyTakesOver(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 4), Limits: plan.Limits{InFlight: 2}}
	r.Join("A", "B")
	rebalance(t, &r)
	before := r.Rows()
	r.Join("C")
	rebalance(t, &r)
	if diff := cmp.Diff(before, r.Rows()); diff != "" {
		t.Errorf("queues move to a server that stands by (-before +after):\n%s", diff)
	}
	r.Remove("A")
	rebalance(t, &r)
	if diff := cmp.Diff(map[string]int{"B": 2, "C": 2}, r.Owned()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With fewer servers than could, so many get all queues, and no host has more of them than it may (P12).
func TestPlanOfFewServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoster(t)
		unbar(r)
		r.Limits = plan.Limits{Servers: rapid.IntRange(0, 4).Draw(t, "servers"), ServersPerHost: rapid.IntRange(0, 2).Draw(t, "per host")}
		eligible := map[string]string{} // the hosts
		for i := range r.Servers {
			s := &r.Servers[i]
			s.Host = rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host")
			if s.Eligible {
				eligible[s.UUID] = s.Host
			}
		}
		rebalance(t, r)
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		r.ReleaseAll("")
		r.Queues = slices.DeleteFunc(r.Queues, func(q plan.Queue) bool { return q.Removing })
		owned, ofHost := r.Owned(), map[string]int{}
		for s := range owned {
			ofHost[eligible[s]]++
		}
		for host, n := range ofHost {
			if len(eligible) > 0 && r.Limits.ServersPerHost > 0 && n > r.Limits.ServersPerHost {
				t.Fatalf("%d servers of %s own queues: %v", n, host, owned)
			}
		}
		if len(eligible) > 0 && (owned[""] > 0 || r.Limits.Servers > 0 && len(owned) > r.Limits.Servers) {
			t.Fatalf("with limits %+v: %v", r.Limits, owned)
		}
		settle(t, r)
	})
}

// The limits leave out no more servers than they must.
func TestStandbyOfAHost(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 6), Limits: plan.Limits{Servers: 3, ServersPerHost: 2}}
	for _, uuid := range []string{"A", "B", "C", "D", "E"} {
		r.Join(uuid)
		r.Servers[len(r.Servers)-1].Host = map[string]string{"D": "h2", "E": "h2"}[uuid] // the others are of one host
		rebalance(t, &r)
		r.ReleaseAll("")
	}
	if diff := cmp.Diff(map[string]int{"A": 2, "B": 2, "D": 2}, r.Owned()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Remove("A")
	rebalance(t, &r)
	if diff := cmp.Diff(map[string]int{"B": 2, "C": 2, "D": 2}, r.Owned()); diff != "" {
		t.Errorf("A is gone (-want +got):\n%s", diff)
	}
}
