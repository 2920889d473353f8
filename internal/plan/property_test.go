package plan_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// drawRoster draws any roster, also one that only an edit by hand can make.
func drawRoster(t *rapid.T) *plantest.Roster {
	r := &plantest.Roster{Limits: plan.Limits{QueuesPerServer: rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "limit")}}
	r.Servers = servers("A", "B", "C", "D", "E", "F")[:rapid.IntRange(0, 6).Draw(t, "servers")]
	for i := range r.Servers {
		r.Servers[i].Eligible = rapid.IntRange(0, 4).Draw(t, "eligible") > 0
	}
	if rapid.Bool().Draw(t, "weighted") {
		for i := range r.Servers {
			r.Servers[i].Weight = rapid.SampledFrom([]int{0, 1, 1, 2, 3, 10, plan.MaxWeight}).Draw(t, "weight")
		}
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
	if rapid.IntRange(0, 1).Draw(t, "hung") == 1 {
		drawHung(t, r)
	}
	if rapid.Bool().Draw(t, "labelled") {
		drawLabels(t, r)
	}
	if rapid.Bool().Draw(t, "totals") {
		drawElsewhere(t, r)
	}
	if rapid.IntRange(0, 3).Draw(t, "pinned") == 0 {
		for i := range r.Queues {
			pin := rapid.SampledFrom([]string{"", "", "zone=a", "disk=ssd,zone=b"}).Draw(t, "pin")
			r.Queues[i].Pin, _ = plan.ParseSelector(pin)
		}
	}
	return r
}

// drawElsewhere draws what the processes have of other task types (P15).
func drawElsewhere(t *rapid.T, r *plantest.Roster) {
	for i := range r.Servers {
		r.Servers[i].Elsewhere = rapid.IntRange(0, 5).Draw(t, "elsewhere")
	}
}

// drawLabels draws labels, a rule which servers may have queues, and whether their zones share the queues (P14).
func drawLabels(t *rapid.T, r *plantest.Roster) {
	for i := range r.Servers {
		r.Servers[i].Labels = plan.Labels{}
		if zone := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"); zone != "" {
			r.Servers[i].Labels["zone"] = zone
		}
		if rapid.Bool().Draw(t, "ssd") {
			r.Servers[i].Labels["disk"] = "ssd"
		}
	}
	r.Limits.Spread = rapid.SampledFrom([]string{"", "zone"}).Draw(t, "spread")
	if rapid.IntRange(0, 2).Draw(t, "require") == 0 {
		r.Limits.Require, _ = plan.ParseSelector("disk=ssd")
	}
	if rapid.IntRange(0, 2).Draw(t, "prefer") == 0 {
		r.Limits.Prefer, _ = plan.ParseSelector("zone=a")
	}
}

// drawHung draws hung queues, for some servers most queues, and also queues that do not exist.
func drawHung(t *rapid.T, r *plantest.Roster) {
	for i := range r.Servers {
		one := rapid.SampledFrom([]int{0, 2, 10, 50}).Draw(t, "hung of")
		for id := range 32 {
			if one > 0 && rapid.IntRange(1, one).Draw(t, "hangs") == 1 {
				r.Servers[i].HungQueues = append(r.Servers[i].HungQueues, strconv.Itoa(id))
			}
		}
	}
}

// drawCrowded draws a roster with little room, in which few servers may get a queue.
func drawCrowded(t *rapid.T) *plantest.Roster {
	r := &plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(1, 9).Draw(t, "queues"))}
	r.Limits.QueuesPerServer = rapid.IntRange(1, 3).Draw(t, "limit")
	r.Join([]string{"A", "B", "C", "D"}[:rapid.IntRange(1, 4).Draw(t, "servers")]...)
	weighted := rapid.Bool().Draw(t, "weighted")
	for i := range r.Servers {
		s := &r.Servers[i]
		s.Host, s.Weight, s.Eligible = s.UUID, 1, rapid.IntRange(0, 7).Draw(t, "eligible") > 0
		if weighted {
			s.Weight = rapid.IntRange(0, 4).Draw(t, "weight")
		}
	}
	name := rapid.SampledFrom([]string{"", "A", "A", "B", "C", "D"})
	for i := range r.Queues {
		r.Queues[i].Owner, r.Queues[i].Requester = name.Draw(t, "owner"), name.Draw(t, "requester")
		r.Queues[i].Pin = drawHosts(t)
	}
	switch rapid.IntRange(0, 3).Draw(t, "more") {
	case 0:
		drawHung(t, r)
	case 1:
		drawLabels(t, r)
		drawElsewhere(t, r)
	}
	return r
}

// P7, P8: no plan gives a server queues beyond its limit, however little room there is.
func TestPlanKeepsToTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawCrowded(t)
		before.Limits.Servers = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "max servers")
		if rapid.Bool().Draw(t, "by load") {
			byLoad(before, drawLoads(t, before))
		}
		r := before.Clone()
		rebalance(t, r)
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v: %v", again, r.Rows())
		}
		r.ReleaseAll("")
		checkLimit(t, before, r)
		settle(t, r)
		checkLimit(t, before, r)
		if why := plantest.Unsettled(r.Queues, r.Servers, r.Limits); why != "" && r.Limits.Servers == 0 {
			t.Fatalf("%s: %v", why, r.Rows())
		}
	})
}

// P8 and P9 hold over arbitrary rosters.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawRoster(t)
		changes := before.Plan()
		r := before.Clone()
		rebalance(t, r)

		live, eligible := map[string]bool{}, map[string]bool{}
		for _, s := range r.Servers {
			live[s.UUID] = true
			if s.Eligible && r.Limits.Require.Matches(s) {
				eligible[s.UUID] = true
			}
		}
		checkOwners(t, before.Queues, r.Queues, live, eligible)
		checkRemoving(t, r.Queues, live)
		checkHung(t, changes, r)
		staying := r.Clone()
		staying.Servers, staying.Limits.Require = slices.Clone(staying.Servers), plan.Selector{}
		for i, s := range staying.Servers {
			staying.Servers[i].Eligible = eligible[s.UUID] // a server without the labels is like one that is not eligible (P14)
		}
		staying.Queues = slices.DeleteFunc(staying.Queues, func(q plan.Queue) bool { return q.Removing })
		checkMoves(t, staying, eligible)
		staying.ReleaseAll("")
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		r.ReleaseAll("")
		checkBalance(t, staying, live, eligible)
		checkLimit(t, before, r)
		settle(t, r)
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

// settle plans until nothing changes. All moves are done: so planning again changes nothing, with the exceptions of P8.
func settle(t *rapid.T, r *plantest.Roster) {
	rounds := 0
	for changes := r.Plan(); len(changes) > 0; changes = r.Plan() {
		granted := slices.ContainsFunc(changes, func(c plan.Change) bool { return c.OldOwner == "" && c.Owner != "" })
		waited := granted && r.Limits.Loads != nil && r.Limits.QueuesPerServer > 0
		chosen := r.Limits.Servers > 0 && len(hungOn(r)) > 0
		totals := slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Rule == plan.Totals })
		if !waited && !chosen && !totals {
			t.Fatalf("after the hand-overs, planning again changes %+v: %v", changes, r.Rows())
		}
		if rounds++; rounds > len(r.Queues) {
			t.Fatalf("after %d rounds, planning again changes %+v: %v", rounds, changes, r.Rows())
		}
		rebalance(t, r)
		r.ReleaseAll("")
	}
}

// checkLimit checks that no server has got queues beyond max_queues_per_server.
func checkLimit(t *rapid.T, before, after *plantest.Roster) {
	count := func(r *plantest.Roster) map[string]int {
		n := map[string]int{}
		for _, q := range r.Queues {
			if !q.Removing && q.Owner != "" {
				n[q.Owner]++
			}
		}
		return n
	}
	was := count(before)
	for s, n := range count(after) {
		if limit := after.Limits.QueuesPerServer; limit > 0 && n > max(limit, was[s]) {
			t.Fatalf("%s had %d queues and has %d, more than %d", s, was[s], n, limit)
		}
	}
}

// checkBalance checks the balance after all owners have handed over.
func checkBalance(t *rapid.T, settled *plantest.Roster, live, eligible map[string]bool) {
	if len(eligible) == 0 {
		return
	}
	limit, owned := settled.Limits.QueuesPerServer, settled.Owned()
	if why := plantest.Unsettled(settled.Queues, settled.Servers, settled.Limits); why != "" {
		t.Fatal(why)
	}
	if len(hungOn(settled)) > 0 {
		return
	}
	checkShares(t, settled)
	room := false
	for s := range eligible {
		room = room || limit == 0 || owned[s] < limit
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

// weightsOf returns the weights of the eligible servers: 0 for those that lack a label of prefer, if others have a
// weight. The weights are alike if none has one.
func weightsOf(servers []plan.Server, prefer plan.Selector) (weights map[string]int, sum int) {
	weights = map[string]int{}
	preferred := slices.ContainsFunc(servers, func(s plan.Server) bool { return s.Eligible && s.Weight > 0 && prefer.Matches(s) })
	for _, s := range servers {
		if !s.Eligible {
			continue
		}
		weights[s.UUID] = s.Weight
		if preferred && !prefer.Matches(s) {
			weights[s.UUID] = 0
		}
		sum += weights[s.UUID]
	}
	if sum == 0 {
		for s := range weights {
			weights[s] = 1
		}
		sum = len(weights)
	}
	return weights, sum
}

// checkShares checks that the servers own queues in proportion to their weights, within one queue (P2). With a limit,
// those that are below it do so among themselves, and a server of weight 0 has queues only if all others are full.
func checkShares(t *rapid.T, settled *plantest.Roster) {
	limit, owned := settled.Limits.QueuesPerServer, settled.Owned()
	weights, _ := weightsOf(settled.Servers, settled.Limits.Prefer)
	full := func(s string) bool { return limit > 0 && owned[s] >= limit }
	for a, wa := range weights {
		for b, wb := range weights {
			if !full(b) && unfair(owned[a], wa, owned[b], wb) {
				t.Fatalf("%s and %s with the weights %d and %d have %d and %d queues", a, b, wa, wb, owned[a], owned[b])
			}
		}
	}
}

// unfair reports whether a server with so many queues and this weight should give one to the other: no share, and so no
// rounding of shares, gives it so many.
func unfair(queues, weight, other, otherWeight int) bool {
	switch {
	case weight == 0 && otherWeight == 0:
		return queues > other+1
	case weight == 0:
		return queues > 0
	}
	return otherWeight > 0 && (queues-1)*otherWeight >= (other+1)*weight
}

// hungOn returns the eligible servers that must not get a queue, by queue: calls of it hang, or they lack a label of
// its pin.
func hungOn(r *plantest.Roster) map[string]map[string]bool {
	hung := map[string]map[string]bool{}
	bar := func(id string, s plan.Server) {
		if s.Eligible && hung[id] == nil {
			hung[id] = map[string]bool{}
		}
		if s.Eligible {
			hung[id][s.UUID] = true
		}
	}
	for _, s := range r.Servers {
		for _, id := range s.HungQueues {
			bar(id, s)
		}
		for _, q := range r.Queues {
			if !q.Pin.Matches(s) {
				bar(q.ID, s)
			}
		}
	}
	return hung
}

// checkHung checks that the plan gives no queue to a server on which a call of it hangs, and requests none for it (P9).
func checkHung(t *rapid.T, changes []plan.Change, r *plantest.Roster) {
	hung := hungOn(r)
	for _, c := range changes {
		if c.ChangesOwner() && hung[c.QueueID][c.Owner] || hung[c.QueueID][c.Requester] {
			t.Fatalf("a call of queue %s hangs on its new owner or requester: %+v", c.QueueID, c)
		}
	}
}

// Hung queues whose owners may keep them are spread, too: a server that joins gets a share of them.
func TestPlanSpreadsHungQueues(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(0, 9)}
	r.Join("A", "B")
	for i := range r.Queues {
		r.Servers[0].HungQueues = append(r.Servers[0].HungQueues, r.Queues[i].ID)
	}
	rebalance(t, &r)
	r.Join("C")
	rebalance(t, &r)
	r.ReleaseAll("")
	if diff := cmp.Diff(map[string]int{"B": 5, "C": 4}, r.Owned()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// checkMoves checks that the plan requests as few queues as any plan that balances: each server has its exact share
// rounded down or up. It does so for plans without a limit, hung queues, zones and totals only.
// TestPlanAgainstAllAssignments does so for zones.
func checkMoves(t *rapid.T, after *plantest.Roster, eligible map[string]bool) {
	totals := slices.ContainsFunc(after.Servers, func(s plan.Server) bool { return s.Elsewhere > 0 })
	if len(eligible) == 0 || after.Limits.QueuesPerServer > 0 || after.Limits.Spread != "" || len(hungOn(after)) > 0 || totals {
		return
	}
	owned := after.Owned()
	weights, sum := weightsOf(after.Servers, after.Limits.Prefer)
	least, ceilings, surplus := 0, len(after.Queues), 0
	for s, n := range owned {
		if !eligible[s] {
			least += n
		}
	}
	for s, weight := range weights {
		floor := len(after.Queues) * weight / sum
		ceilings -= floor
		least += max(0, owned[s]-floor)
		if owned[s] > floor && len(after.Queues)*weight%sum > 0 {
			surplus++
		}
	}
	least -= min(ceilings, surplus) // a server that is rounded up keeps one more
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

// moved returns how many queues the changes give another owner, at once or by requests. Queues without an owner count.
func moved(changes []plan.Change) (n int) {
	for _, c := range changes {
		if c.Requester != "" || c.Owner != "" && c.ChangesOwner() {
			n++
		}
	}
	return n
}

// Of all assignments that give each server its exact share rounded down or up, none moves fewer queues than the plan.
func TestPlanAgainstAllAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(1, 6).Draw(t, "queues"))}
		r.Join([]string{"A", "B", "C", "D"}[:rapid.IntRange(1, 4).Draw(t, "servers")]...)
		drawLabels(t, &r)
		for i := range r.Servers {
			r.Servers[i].Weight = rapid.IntRange(0, 4).Draw(t, "weight")
		}
		for i := range r.Queues {
			r.Queues[i].Owner = rapid.SampledFrom([]string{"", "A", "B", "C", "D"}).Draw(t, "owner")
		}
		may := slices.DeleteFunc(slices.Clone(r.Servers), func(s plan.Server) bool { return !r.Limits.Require.Matches(s) })
		if len(may) == 0 {
			return
		}
		weights, sum := weightsOf(may, r.Limits.Prefer)
		least := len(r.Queues) + 1 // moves
		owned := map[string]int{}
		var assign func(queue, moves int)
		assign = func(queue, moves int) {
			if queue < len(r.Queues) {
				for s := range weights {
					owned[s]++
					moved := moves
					if r.Queues[queue].Owner != s {
						moved++
					}
					assign(queue+1, moved)
					owned[s]--
				}
				return
			}
			for s, weight := range weights {
				if share := len(r.Queues) * weight; owned[s]*sum <= share-sum || owned[s]*sum >= share+sum {
					return
				}
			}
			zoneOwned, zoneWeight := map[string]int{}, map[string]int{}
			for _, s := range may {
				zoneOwned[s.Labels["zone"]] += owned[s.UUID]
				zoneWeight[s.Labels["zone"]] += weights[s.UUID]
			}
			for zone, weight := range zoneWeight {
				if share := len(r.Queues) * weight; r.Limits.Spread != "" && (zoneOwned[zone]*sum <= share-sum || zoneOwned[zone]*sum >= share+sum) {
					return
				}
			}
			least = min(least, moves)
		}
		assign(0, 0)
		if got := moved(r.Plan()); got != least {
			t.Fatalf("the plan moves %d queues, the least is %d: %+v", got, least, r)
		}
	})
}
