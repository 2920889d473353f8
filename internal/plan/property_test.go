package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
)

// drawRoster draws any roster, also one that only an edit by hand can make.
func drawRoster(t *rapid.T) ([]plan.Queue, []plan.Server, int) {
	live := servers("A", "B", "C", "D", "E", "F")[:rapid.IntRange(0, 6).Draw(t, "servers")]
	for i := range live {
		live[i].Eligible = rapid.IntRange(0, 4).Draw(t, "eligible") > 0
	}
	name := rapid.SampledFrom([]string{"", "A", "B", "C", "D", "E", "F", "dead"})
	queues := numbered(0, rapid.IntRange(0, 30).Draw(t, "queues"))
	for i := range queues {
		queues[i].Owner, queues[i].Requester = name.Draw(t, "cur"), name.Draw(t, "req")
		queues[i].Epoch = int64(rapid.IntRange(0, 9).Draw(t, "epoch"))
		queues[i].Removing = rapid.IntRange(0, 9).Draw(t, "removing") == 0
	}
	return queues, live, rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "limit")
}

// owned counts the queues by owner.
func owned(queues []plan.Queue) map[string]int {
	held := map[string]int{}
	for _, q := range queues {
		held[q.Owner]++
	}
	return held
}

// P8 holds over arbitrary rosters.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues, live, limit := drawRoster(t)
		changes := plan.Plan(queues, live, limit)
		after := apply(t, queues, changes)

		alive, eligible := map[string]bool{}, map[string]bool{}
		for _, s := range live {
			alive[s.UUID] = true
			if s.Eligible {
				eligible[s.UUID] = true
			}
		}
		checkOwners(t, queues, after, alive, eligible)
		checkRemoving(t, after, alive)
		staying := slices.DeleteFunc(slices.Clone(after), func(q plan.Queue) bool { return q.Removing })
		checkBalance(t, release(staying, ""), eligible, alive, limit)
		checkMoves(t, staying, eligible, limit)

		if again := plan.Plan(after, live, limit); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		settled := release(after, "")
		if again := plan.Plan(settled, live, limit); len(again) > 0 {
			t.Fatalf("after the moves are done, planning again changes %+v", again)
		}
		shuffled := plan.Plan(rapid.Permutation(queues).Draw(t, "rows"), rapid.Permutation(live).Draw(t, "live"), limit)
		if diff := cmp.Diff(changes, shuffled); diff != "" {
			t.Fatalf("the order of the input matters:\n%s", diff)
		}
	})
}

// checkOwners checks that live owners keep their queues, dead owners lose theirs, and requests make sense (P5).
func checkOwners(t *rapid.T, before, after []plan.Queue, alive, eligible map[string]bool) {
	for i, q := range after {
		if was := before[i].Owner; alive[was] && q.Owner != was {
			t.Fatalf("queue %s was taken from the live owner %s", q.ID, was)
		}
		if q.Owner != "" && !alive[q.Owner] {
			t.Fatalf("queue %s stays with the dead owner %s", q.ID, q.Owner)
		}
		if q.Requester != "" && (!eligible[q.Requester] || q.Requester == q.Owner || q.Owner == "") {
			t.Fatalf("queue %s: bad request %+v", q.ID, q)
		}
	}
}

// checkRemoving checks that a queue that is being removed has no requester and no dead owner (N2).
func checkRemoving(t *rapid.T, after []plan.Queue, alive map[string]bool) {
	for _, q := range after {
		if q.Removing && (q.Requester != "" || q.Owner != "" && !alive[q.Owner]) {
			t.Fatalf("queue %s is being removed: %+v", q.ID, q)
		}
	}
}

// checkBalance checks the balance after all owners have handed over.
func checkBalance(t *rapid.T, settled []plan.Queue, eligible, alive map[string]bool, limit int) {
	if len(eligible) == 0 {
		return
	}
	held := owned(settled)
	least, most, room := len(settled), 0, false
	for s := range eligible {
		least, most = min(least, held[s]), max(most, held[s])
		room = room || limit == 0 || held[s] < limit
	}
	if limit == 0 && most-least > 1 {
		t.Fatalf("the largest and the smallest server differ by %d queues: %v", most-least, held)
	}
	if room && held[""] > 0 {
		t.Fatalf("%d queues have no owner although a server has room: %v", held[""], held)
	}
	for s := range maps.Keys(alive) {
		if room && !eligible[s] && held[s] > 0 {
			t.Fatalf("%s is not eligible and keeps %d queues although a server has room", s, held[s])
		}
	}
}

// checkMoves checks that the plan requests as few queues as any plan that balances. It does so without a limit only.
func checkMoves(t *rapid.T, after []plan.Queue, eligible map[string]bool, limit int) {
	if len(eligible) == 0 || limit > 0 {
		return
	}
	held := owned(after)
	byHeld := slices.SortedFunc(maps.Keys(eligible), func(a, b string) int { return held[b] - held[a] })
	least := 0
	for s, n := range held {
		if !eligible[s] {
			least += n
		}
	}
	floor, ceilings := len(after)/len(eligible), len(after)%len(eligible)
	for i, s := range byHeld {
		quota := floor
		if i < ceilings {
			quota++
		}
		least += max(0, held[s]-quota)
	}
	moves := 0
	for _, q := range after {
		if q.Requester != "" {
			moves++
		}
	}
	if moves != least {
		t.Fatalf("%d moves, the least is %d: %v", moves, least, held)
	}
}

// MinMoves returns the number of queues that get another owner, queues without an owner included.
func TestMinMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues, live, limit := drawRoster(t)
		for i := range queues {
			queues[i].Removing = false
		}
		moves := 0
		settled := release(apply(t, queues, plan.Plan(queues, live, limit)), "")
		for i, q := range settled {
			if q.Owner != "" && q.Owner != queues[i].Owner {
				moves++
			}
		}
		if got := plan.MinMoves(queues, live, limit); got != moves {
			t.Fatalf("MinMoves = %d, but the plan gives %d queues another owner", got, moves)
		}
	})
}
