package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// P14: pins take part in the balance. Four queues are pinned to zone a and belong to a1; a2 of the same zone joins.
func TestPlanEvensPinnedQueues(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 4)}
	r.Join("a1", "b1")
	for i := range r.Servers {
		r.Servers[i].Labels = plan.Labels{"zone": r.Servers[i].UUID[:1]}
	}
	for i := range r.Queues {
		r.Queues[i].Pin, _ = plan.ParseSelector("zone=a")
	}
	rebalance(t, &r)
	r.Join("a2")
	r.Servers[2].Labels = plan.Labels{"zone": "a"}
	rebalance(t, &r)
	r.ReleaseAll("")
	if diff := cmp.Diff(map[string]int{"a1": 2, "a2": 2}, r.Owned()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// P14: where no single move helps, a chain does. a1 has two queues that only a1 and b1 may get, b1 has one that b1 and
// c1 may get, and c1 has none: queue 0 goes to b1, and queue 2 to c1.
func TestPlanEvensByAChain(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 3)}
	r.Join("a1", "b1", "c1")
	for i, q := range []struct{ owner, pin string }{{"a1", "host=a1|b1"}, {"a1", "host=a1|b1"}, {"b1", "host=b1|c1"}} {
		r.Queues[i].Owner = q.owner
		r.Queues[i].Pin, _ = plan.ParseSelector(q.pin)
		r.Servers[i].Host = r.Servers[i].UUID
	}
	rebalance(t, &r)
	if diff := cmp.Diff([]string{"a1>b1", "a1", "b1>c1"}, r.Rows()); diff != "" {
		if diff := cmp.Diff([]string{"a1", "a1>b1", "b1>c1"}, r.Rows()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// drawRestricted draws a small roster of which some servers may not get some queues.
func drawRestricted(t *rapid.T) *plantest.Roster {
	r := &plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(1, 6).Draw(t, "queues"))}
	r.Join([]string{"A", "B", "C", "D"}[:rapid.IntRange(1, 4).Draw(t, "servers")]...)
	weighted := rapid.Bool().Draw(t, "weighted")
	for i := range r.Servers {
		r.Servers[i].Host = r.Servers[i].UUID
		r.Servers[i].Weight = 1
		if weighted {
			r.Servers[i].Weight = rapid.IntRange(0, 4).Draw(t, "weight")
		}
	}
	for i := range r.Queues {
		r.Queues[i].Owner = rapid.SampledFrom([]string{"", "A", "A", "B", "C", "D"}).Draw(t, "owner")
		r.Queues[i].Pin = drawHosts(t)
	}
	return r
}

// drawHosts draws a pin to some of the hosts A to D, or none.
func drawHosts(t *rapid.T) (pin plan.Selector) {
	if hosts := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C", "D"}), 0, 3, rapid.ID).Draw(t, "pin"); len(hosts) > 0 {
		pin, _ = plan.ParseSelector("host=" + strings.Join(hosts, "|"))
	}
	return pin
}

// evenness is what a plan of restricted queues makes small, the first first (P14).
type evenness struct {
	unserved   int // queues whose server may not own them
	weightless int // queues of servers without a weight, while others have one
	squares    int // the sum of the squares, divided by the weights, times 12
	moves      int
}

func (e evenness) less(other evenness) bool {
	return slices.Compare([]int{e.unserved, e.weightless, e.squares, e.moves}, []int{other.unserved, other.weightless, other.squares, other.moves}) < 0
}

// evennessOf measures an assignment of the roster's queues.
func evennessOf(r *plantest.Roster, owners []string) (e evenness) {
	weights, _ := weightsOf(r.Servers, plan.Selector{})
	owned := map[string]int{}
	for i, q := range r.Queues {
		at := slices.IndexFunc(r.Servers, func(s plan.Server) bool { return s.UUID == owners[i] })
		if at < 0 || !q.Pin.Matches(r.Servers[at]) {
			e.unserved++
		}
		if at >= 0 {
			owned[owners[i]]++
		}
		if at >= 0 && q.Owner != owners[i] {
			e.moves++
		}
	}
	for uuid, n := range owned {
		if weights[uuid] == 0 {
			e.weightless += n
		}
		e.squares += 12 * n * n / max(1, weights[uuid])
	}
	return e
}

// P8: of all assignments, none serves more queues, is more even, or is as even with fewer moves.
func TestPlanOfRestrictedQueuesAgainstAllAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawRestricted(t)
		if len(hungOn(before)) == 0 {
			return // any server may get any queue
		}
		var best *evenness
		owners := make([]string, len(before.Queues))
		var assign func(i int)
		assign = func(i int) {
			if i == len(owners) {
				if e := evennessOf(before, owners); best == nil || e.less(*best) {
					best = &e
				}
				return
			}
			some := false
			for _, s := range before.Servers {
				if before.Queues[i].Pin.Matches(s) {
					owners[i], some = s.UUID, true
					assign(i + 1)
				}
			}
			if !some { // it stays with a live owner
				owners[i] = ""
				if slices.ContainsFunc(before.Servers, func(s plan.Server) bool { return s.UUID == before.Queues[i].Owner }) {
					owners[i] = before.Queues[i].Owner
				}
				assign(i + 1)
			}
		}
		assign(0)
		r := before.Clone()
		rebalance(t, r)
		got := make([]string, len(r.Queues))
		for i, q := range r.Queues {
			if got[i] = q.Owner; q.Requester != "" {
				got[i] = q.Requester
			}
		}
		if e := evennessOf(before, got); e != *best {
			t.Fatalf("the plan %v has %+v, the best has %+v: %v", got, e, *best, before.Rows())
		}
	})
}

// P8, P14: after all hand-overs no chain of moves is left that makes the servers more even within their rules.
func TestPlanLeavesNoChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoster(t)
		rebalance(t, r)
		r.ReleaseAll("")
		if why := plantest.Unsettled(r.Queues, r.Servers, r.Limits); why != "" {
			t.Fatalf("%s: %v", why, r.Rows())
		}
	})
}

// P12, P14: the only server that meets the pin stands by. No server is swapped in for it; the queue says which rules it
// waits for.
func TestPinnedQueueWhoseServerStandsBy(t *testing.T) {
	for want, limits := range map[string]plan.Limits{
		"max_servers: 2, pin: zone=b":   {Servers: 2},
		"max_in_flight: 2, pin: zone=b": {InFlight: 2},
		"pin: zone=b":                   {Servers: 2, Require: labels("zone=a")},
	} {
		r := plantest.Roster{Queues: plantest.Numbered(0, 3), Limits: limits}
		r.Join("A", "B", "C")
		for i, zone := range []string{"a", "a", "b"} {
			r.Servers[i].Labels = plan.Labels{"zone": zone}
		}
		r.Queues[0].Owner, r.Queues[1].Owner, r.Queues[2].Pin = "A", "B", labels("zone=b")
		rebalance(t, &r)
		if diff := cmp.Diff([]string{"A", "B", "-"}, r.Rows()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
		if got := plan.Plan(r.Queues, r.Servers, r.Limits).Waiting["2"].Text; got != want {
			t.Errorf("the queue waits for %q, want %q", got, want)
		}
	}
}

// P14: four queues are pinned to two of 40 hosts. The plan looks at these two, and not at all servers in order.
func TestPlanOfQueuesPinnedToHosts(t *testing.T) {
	for name, prepare := range map[string]func(*plantest.Roster){
		"by number": func(*plantest.Roster) {},
		"by load":   func(r *plantest.Roster) { byLoad(r, nil) },
	} {
		r := plantest.Roster{Queues: plantest.Numbered(0, 4)}
		for i := range 40 {
			r.Join(fmt.Sprint("S", i))
			r.Servers[i].Host, r.Servers[i].Weight = r.Servers[i].UUID, 1
		}
		for i := range r.Queues {
			r.Queues[i].Pin = labels("host=S30|S31")
		}
		prepare(&r)
		rebalance(t, &r)
		if diff := cmp.Diff(map[string]int{"S30": 2, "S31": 2}, r.Owned()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func labels(text string) plan.Selector {
	s, err := plan.ParseSelector(text)
	if err != nil {
		panic(err)
	}
	return s
}

// P8, P14: A gets one queue of C. C keeps the other: with B, in a zone of its own, the servers would be no more even.
// (Per weight, the zones have 2/3 and 0 queues, or 1/3 and 1: the sum of the squares times the weights is 4/3 in both.)
func TestPlanMovesNoRowForNothing(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 2), Limits: plan.Limits{Spread: "zone"}}
	r.Join("A", "B", "C")
	for i, weight := range []int{2, 1, 1} {
		r.Servers[i].Host, r.Servers[i].Weight = r.Servers[i].UUID, weight
	}
	r.Servers[1].Labels = plan.Labels{"zone": "a"}
	r.Queues[0].Owner = "C"
	r.Queues[1].Owner, r.Queues[1].Pin = "C", labels("host=B|C")
	rebalance(t, &r)
	if diff := cmp.Diff([]string{"C>A", "C"}, r.Rows()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// P7, P15: B has more queues than its limit, because none of the others has room. The process of C has fewer queues of
// all task types, and gets none of them all the same.
func TestPlanEvensTotalsWithinTheLimit(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 5), Limits: plan.Limits{QueuesPerServer: 2}}
	r.Join("B", "C")
	r.Servers[0].HungQueues, r.Servers[0].Elsewhere = []string{"0"}, 9
	want := []string{"C", "C", "B", "B", "B"}
	for i, owner := range want {
		r.Queues[i].Owner = owner
	}
	rebalance(t, &r)
	if diff := cmp.Diff(want, r.Rows()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// P7: a queue that no server may take stays with its owner, and takes the room of another queue there.
func TestPlanCountsAQueueThatNoServerMayTake(t *testing.T) {
	for _, other := range []string{"", "B"} {
		for _, loads := range []map[string]float64{nil, {"0": 1, "1": 1}} {
			r := plantest.Roster{Queues: plantest.Numbered(0, 2), Limits: plan.Limits{QueuesPerServer: 1}}
			r.Join("A", "B")
			r.Queues[0].Owner, r.Queues[1].Owner = "A", other
			r.Queues[0].Pin, _ = plan.ParseSelector("zone=gone")
			r.Servers[1].HungQueues = []string{"1"} // only A may get queue 1
			if loads != nil {
				byLoad(&r, loads)
			}
			if changes := r.Plan(); len(changes) > 0 {
				t.Errorf("queue 1 with %q, loads %v: changes %+v, want none", other, loads, changes)
			}
		}
	}
}
