package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// drawRoster draws any roster, also one that only an edit by hand can make.
func drawRoster(t *rapid.T) *plantest.Roster {
	r := &plantest.Roster{MaxPerServer: rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "limit")}
	r.Servers = servers("A", "B", "C", "D", "E", "F")[:rapid.IntRange(0, 6).Draw(t, "servers")]
	for i := range r.Servers {
		r.Servers[i].Eligible = rapid.IntRange(0, 4).Draw(t, "eligible") > 0
	}
	name := rapid.SampledFrom([]string{"", "A", "B", "C", "D", "E", "F", "dead"})
	r.Queues = plantest.Numbered(0, rapid.IntRange(0, 30).Draw(t, "queues"))
	if rapid.Bool().Draw(t, "named") {
		ids := rapid.Permutation(oddIDs).Draw(t, "ids")
		for i := range r.Queues {
			r.Queues[i].ID = ids[i]
		}
	}
	for i := range r.Queues {
		q := &r.Queues[i]
		q.Owner, q.Requester = name.Draw(t, "owner"), name.Draw(t, "requester")
		q.Epoch = int64(rapid.IntRange(0, 9).Draw(t, "epoch"))
		q.Removing = rapid.IntRange(0, 9).Draw(t, "removing") == 0
	}
	return r
}

// P8 holds over arbitrary rosters.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawRoster(t)
		changes := before.Plan()
		r := before.Clone()
		rebalance(t, r)

		live, eligible := map[string]bool{}, map[string]bool{}
		for _, s := range r.Servers {
			live[s.UUID] = true
			if s.Eligible {
				eligible[s.UUID] = true
			}
		}
		checkOwners(t, before.Queues, r.Queues, live, eligible)
		checkRemoving(t, r.Queues, live)
		staying := r.Clone()
		staying.Queues = slices.DeleteFunc(staying.Queues, func(q plan.Queue) bool { return q.Removing })
		checkMoves(t, staying, eligible)
		staying.ReleaseAll("")
		checkBalance(t, staying, live, eligible)

		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		r.ReleaseAll("")
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("after the hand-overs, planning again changes %+v", again)
		}
		before.Queues, before.Servers = rapid.Permutation(before.Queues).Draw(t, "rows"), rapid.Permutation(before.Servers).Draw(t, "live")
		if diff := cmp.Diff(changes, before.Plan()); diff != "" {
			t.Fatalf("the order of the input matters:\n%s", diff)
		}
	})
}

// checkOwners checks that live owners keep their queues, dead owners lose theirs, and requests make sense (P5).
func checkOwners(t *rapid.T, before, after []plan.Queue, live, eligible map[string]bool) {
	for i, q := range after {
		if was := before[i].Owner; live[was] && q.Owner != was {
			t.Fatalf("queue %s was taken from the live owner %s", q.ID, was)
		}
		if q.Owner != "" && !live[q.Owner] {
			t.Fatalf("queue %s stays with the dead owner %s", q.ID, q.Owner)
		}
		if q.Requester != "" && (!eligible[q.Requester] || q.Requester == q.Owner || q.Owner == "") {
			t.Fatalf("queue %s: bad request %+v", q.ID, q)
		}
	}
}

// checkRemoving checks that a queue that is being removed has no requester and no dead owner (N2).
func checkRemoving(t *rapid.T, after []plan.Queue, live map[string]bool) {
	for _, q := range after {
		if q.Removing && (q.Requester != "" || q.Owner != "" && !live[q.Owner]) {
			t.Fatalf("queue %s is being removed: %+v", q.ID, q)
		}
	}
}

// checkBalance checks the balance after all owners have handed over.
func checkBalance(t *rapid.T, settled *plantest.Roster, live, eligible map[string]bool) {
	if len(eligible) == 0 {
		return
	}
	limit, owned := settled.MaxPerServer, settled.Owned()
	least, most, room := len(settled.Queues), 0, false
	for s := range eligible {
		least, most = min(least, owned[s]), max(most, owned[s])
		room = room || limit == 0 || owned[s] < limit
	}
	if limit == 0 && most-least > 1 {
		t.Fatalf("the largest and the smallest server differ by %d queues: %v", most-least, owned)
	}
	if room && owned[""] > 0 {
		t.Fatalf("%d queues have no owner although a server has room: %v", owned[""], owned)
	}
	for s := range live {
		if room && !eligible[s] && owned[s] > 0 {
			t.Fatalf("%s is not eligible and keeps %d queues although a server has room", s, owned[s])
		}
	}
}

// checkMoves checks that the plan requests as few queues as any plan that balances. It does so without a limit only.
func checkMoves(t *rapid.T, after *plantest.Roster, eligible map[string]bool) {
	if len(eligible) == 0 || after.MaxPerServer > 0 {
		return
	}
	owned := after.Owned()
	byOwned := slices.SortedFunc(maps.Keys(eligible), func(a, b string) int { return owned[b] - owned[a] })
	least := 0
	for s, n := range owned {
		if !eligible[s] {
			least += n
		}
	}
	floor, ceilings := len(after.Queues)/len(eligible), len(after.Queues)%len(eligible)
	for i, s := range byOwned {
		quota := floor
		if i < ceilings {
			quota++
		}
		least += max(0, owned[s]-quota)
	}
	moves := 0
	for _, q := range after.Queues {
		if q.Requester != "" {
			moves++
		}
	}
	if moves != least {
		t.Fatalf("%d moves, the least is %d: %v", moves, least, owned)
	}
}

// MinMoves returns the number of queues that get another owner, queues without an owner included.
func TestMinMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawRoster(t)
		for i := range before.Queues {
			before.Queues[i].Removing = false
		}
		r := before.Clone()
		rebalance(t, r)
		r.ReleaseAll("")
		moves := 0
		for i, q := range r.Queues {
			if q.Owner != "" && q.Owner != before.Queues[i].Owner {
				moves++
			}
		}
		if got := plan.MinMoves(before.Queues, before.Servers, before.MaxPerServer); got != moves {
			t.Fatalf("MinMoves = %d, but the plan gives %d queues another owner", got, moves)
		}
	})
}
