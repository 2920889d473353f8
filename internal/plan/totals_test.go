package plan_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// fleet is some task types with their servers, one for each process that serves the task type.
type fleet struct{ tasks []*plantest.Roster }

// input returns the fleet as BalanceTotals takes it.
func (f fleet) input() (list []plan.Task) {
	for i, r := range f.tasks {
		list = append(list, plan.Task{Name: fmt.Sprint("T", i), Queues: r.Queues, Servers: r.Servers, Limits: r.Limits})
	}
	return list
}

// balance does what BalanceTotals says, with the plans and the hand-overs, and returns how many queues moved.
func (f fleet) balance(t rapid.TB) (moves int) {
	result := plan.BalanceTotals(f.input())
	for i, r := range f.tasks {
		if uuids, changed := result[fmt.Sprint("T", i)]; changed {
			roundUp(r, uuids)
		}
	}
	return f.settle(t)
}

// roundUp sets RoundedUp of these servers, and of no other.
func roundUp(r *plantest.Roster, uuids []string) {
	for i := range r.Servers {
		r.Servers[i].RoundedUp = slices.Contains(uuids, r.Servers[i].UUID)
	}
}

// settle plans and hands over, and returns how many queues moved.
func (f fleet) settle(t rapid.TB) (moves int) {
	for _, r := range f.tasks {
		moves += moved(r.Plan())
		rebalance(t, r)
		r.ReleaseAll("")
	}
	return moves
}

// totals returns how many queues each process has.
func (f fleet) totals() map[string]int {
	totals := map[string]int{}
	for _, r := range f.tasks {
		for _, s := range r.Servers {
			totals[s.Process] += r.Owned()[s.UUID]
		}
	}
	return totals
}

// sum returns the sum of the squared totals, each divided by the weight of its process.
func sum(totals, weights map[string]int) (sum float64) {
	for process, n := range totals {
		sum += float64(n*n) / float64(weights[process])
	}
	return sum
}

// join makes a process serve task types.
func (f fleet) join(process string, weight int, serves func(task int) bool) {
	for i, r := range f.tasks {
		if serves(i) {
			r.Join(process)
			r.Servers[len(r.Servers)-1].Process, r.Servers[len(r.Servers)-1].Weight = process, weight
		}
	}
}

func all(int) bool { return true }

// BalanceTotals reaches the smallest sum of the squared totals of all choices of the shares that are rounded up. If all
// processes serve all task types alike, no choice with that sum moves fewer queues.
func TestTotalsAgainstAllChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleet{}
		for range rapid.IntRange(1, 4).Draw(t, "tasks") {
			f.tasks = append(f.tasks, &plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(1, 5).Draw(t, "queues"))})
		}
		alike := rapid.Bool().Draw(t, "alike")
		weights := map[string]int{}
		for _, process := range []string{"A", "B", "C", "D"}[:rapid.IntRange(1, 4).Draw(t, "processes")] {
			weights[process] = 1
			serves := all
			if !alike {
				weights[process] = rapid.IntRange(1, 3).Draw(t, "weight")
				serves = func(int) bool { return rapid.IntRange(0, 3).Draw(t, "serves") > 0 }
			}
			f.join(process, weights[process], serves)
			f.settle(t)
		}
		least, fewest := math.Inf(1), 0
		totals := f.totals()
		var choose func(task, moves int)
		choose = func(task, moves int) {
			if task == len(f.tasks) {
				switch s := sum(totals, weights); {
				case s < least-1e-9:
					least, fewest = s, moves
				case s < least+1e-9:
					fewest = min(fewest, moves)
				}
				return
			}
			for _, shares := range allShares(f.tasks[task]) {
				owned, more := f.tasks[task].Owned(), 0
				for server, n := range shares {
					totals[server] += n - owned[server]
					more += max(0, n-owned[server])
				}
				choose(task+1, moves+more)
				for server, n := range shares {
					totals[server] -= n - owned[server]
				}
			}
		}
		choose(0, 0)
		before := f.totals()
		moves := f.balance(t)
		if got := sum(f.totals(), weights); got > least+1e-9 {
			t.Fatalf("totals %v, then %v: the sum is %v, the least is %v", before, f.totals(), got, least)
		}
		if alike && moves != fewest {
			t.Fatalf("totals %v, then %v: %d moves, the fewest are %d", before, f.totals(), moves, fewest)
		}
		if again := plan.BalanceTotals(f.input()); len(again) > 0 {
			t.Fatalf("balancing again changes %v", again)
		}
		if alike && !plan.TotalsBalanced(f.totals(), weights) {
			t.Fatalf("%v are not even", f.totals())
		}
	})
}

// allShares returns all assignments of numbers of queues that give each server its exact share rounded down or up.
func allShares(r *plantest.Roster) (list []map[string]int) {
	weights, sum := weightsOf(r.Servers, plan.Selector{})
	var choose func(server, left int, shares map[string]int)
	choose = func(server, left int, shares map[string]int) {
		if server == len(r.Servers) {
			if left == 0 {
				list = append(list, maps.Clone(shares))
			}
			return
		}
		uuid := r.Servers[server].UUID
		share := len(r.Queues) * weights[uuid]
		for n := share / sum; n*sum < share+sum && n <= left; n++ {
			shares[uuid] = n
			choose(server+1, left-n, shares)
		}
	}
	if len(r.Servers) == 0 {
		return []map[string]int{{}}
	}
	choose(0, len(r.Queues), map[string]int{})
	return list
}

// BalanceTotals keeps each task type balanced, and keeps what zones share (P14), in any fleet. The order of its input
// does not matter, and balancing twice changes nothing.
func TestTotalsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleet{}
		weights := map[string]int{}
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			r := drawRoster(t)
			for i := range r.Servers {
				r.Servers[i].Process = r.Servers[i].UUID
				weights[r.Servers[i].UUID] = 1
				r.Servers[i].Elsewhere = 0
			}
			f.tasks = append(f.tasks, r)
		}
		f.settle(t)
		input := f.input()
		result := plan.BalanceTotals(input)
		for i := range input {
			input[i].Queues, input[i].Servers = rapid.Permutation(input[i].Queues).Draw(t, "rows"), rapid.Permutation(input[i].Servers).Draw(t, "live")
		}
		if diff := cmp.Diff(result, plan.BalanceTotals(rapid.Permutation(input).Draw(t, "order"))); diff != "" {
			t.Fatalf("the order of the input matters:\n%s", diff)
		}
		for i, r := range f.tasks {
			uuids, changed := result[fmt.Sprint("T", i)]
			if !changed {
				continue
			}
			before := zonesOf(r)
			roundUp(r, uuids)
			rebalance(t, r)
			r.ReleaseAll("")
			after := zonesOf(r)
			for zone, n := range before {
				if r.Limits.Spread != "" && (after[zone] > n+1 || after[zone] < n-1) {
					t.Fatalf("the zones had %v, and have %v", before, after)
				}
			}
			for _, s := range r.Servers {
				if slices.Contains(uuids, s.UUID) && r.Owned()[s.UUID] == 0 {
					t.Fatalf("the share of %s is to be rounded up, and it has nothing: %v", s.UUID, r.Owned())
				}
			}
		}
		if again := plan.BalanceTotals(f.input()); len(again) > 0 {
			t.Fatalf("balancing again changes %v", again)
		}
	})
}

// zonesOf returns how many queues each zone has.
func zonesOf(r *plantest.Roster) map[string]int {
	owned, zones := r.Owned(), map[string]int{}
	for _, s := range r.Servers {
		zones[s.Labels["zone"]] += owned[s.UUID]
	}
	return zones
}

// Processes that start one after the other have totals within one queue, and no queue moves in vain.
func TestTotalsOfManyTaskTypes(t *testing.T) {
	for _, queues := range []int{1, 4, 7} {
		for _, processes := range []int{3, 10} {
			t.Run(fmt.Sprint(queues, " queues on ", processes), func(t *testing.T) {
				f := fleet{}
				for range 20 {
					f.tasks = append(f.tasks, &plantest.Roster{Queues: plantest.Numbered(0, queues)})
				}
				for p := range processes {
					f.join(fmt.Sprint("P", p), 1, all)
					f.settle(t)
				}
				f.balance(t)
				least, most := math.MaxInt, 0
				for _, n := range f.totals() {
					least, most = min(least, n), max(most, n)
				}
				if most > least+1 {
					t.Errorf("the totals are %v", f.totals())
				}
				if moves := f.balance(t); moves > 0 {
					t.Errorf("%d queues move once more", moves)
				}
			})
		}
	}
}

// A task type whose calls hang, or that is fixed, counts and stays as it is.
func TestTotalsLeavesFixedTasks(t *testing.T) {
	f := fleet{[]*plantest.Roster{{Queues: plantest.Numbered(0, 1)}, {Queues: plantest.Numbered(0, 1)}}}
	f.join("A", 1, all)
	f.settle(t)
	f.join("B", 1, all)
	f.settle(t)
	input := f.input()
	input[0].Fixed, input[1].Servers[0].HungQueues = true, []string{"0"}
	if got := plan.BalanceTotals(input); len(got) > 0 {
		t.Errorf("BalanceTotals changes %v", got)
	}
	input[1].Servers[0].HungQueues = nil
	if diff := cmp.Diff(map[string][]string{"T1": {"B"}}, plan.BalanceTotals(input)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A process gives a queue to another, which gives one of another task type to a third: no single move would help.
func TestTotalsMoveByWayOfOthers(t *testing.T) {
	f := fleet{[]*plantest.Roster{{Queues: plantest.Numbered(0, 1)}, {Queues: plantest.Numbered(0, 1)}, {Queues: plantest.Numbered(0, 1)}}}
	f.join("A", 1, func(task int) bool { return task != 1 })
	f.settle(t)
	f.join("B", 1, func(task int) bool { return task != 2 })
	f.settle(t)
	f.join("C", 1, func(task int) bool { return task == 1 })
	f.settle(t)
	if diff := cmp.Diff(map[string]int{"A": 2, "B": 1, "C": 0}, f.totals()); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	if moves := f.balance(t); moves != 2 {
		t.Errorf("%d moves, want 2", moves)
	}
	if diff := cmp.Diff(map[string]int{"A": 1, "B": 1, "C": 1}, f.totals()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Zones keep their parts of the queues, although the totals would be more even (P14).
func TestTotalsKeepZones(t *testing.T) {
	f := fleet{[]*plantest.Roster{{Queues: plantest.Numbered(0, 2), Limits: plan.Limits{Spread: "zone"}}, {Queues: plantest.Numbered(0, 4)}}}
	for process, zone := range map[string]string{"A": "a", "B": "a", "C": "b", "D": "b"} {
		f.join(process, 1, func(task int) bool { return task == 0 || zone == "a" })
		spread := f.tasks[0].Servers
		spread[len(spread)-1].Labels = plan.Labels{"zone": zone}
	}
	f.settle(t)
	if got := plan.BalanceTotals(f.input()); len(got) > 0 {
		t.Errorf("%v are to be rounded up; the totals are %v", got, f.totals())
	}
}

// P15: task types with pinned queues take part. Four task types have three queues each, of which A must have the first:
// B gets the second one of two of them.
func TestTotalsOfPinnedQueues(t *testing.T) {
	f := fleet{}
	for range 4 {
		r := &plantest.Roster{Queues: plantest.Numbered(0, 3)}
		r.Queues[0].Pin, _ = plan.ParseSelector("host=A")
		f.tasks = append(f.tasks, r)
	}
	f.join("A", 1, all)
	f.join("B", 1, all)
	for _, r := range f.tasks {
		for i := range r.Servers {
			r.Servers[i].Host = r.Servers[i].Process
		}
	}
	f.settle(t)
	if diff := cmp.Diff(map[string]int{"A": 8, "B": 4}, f.totals()); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	moves := f.balance(t)
	if diff := cmp.Diff(map[string]int{"A": 6, "B": 6}, f.totals()); diff != "" || moves != 2 {
		t.Errorf("%d moves (-want +got):\n%s", moves, diff)
	}
	if again := plan.BalanceTotals(f.input()); len(again) > 0 {
		t.Errorf("balancing again changes %v", again)
	}
}
