package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// fleet is some task types with their servers. The uuid of a server is that of its process, which has one server for
// each task type that it serves.
type fleet struct{ tasks []*plantest.Roster }

// newFleet returns task types with so many queues each.
func newFleet(queues ...int) (f fleet) {
	for _, n := range queues {
		f.tasks = append(f.tasks, &plantest.Roster{Queues: plantest.Numbered(0, n)})
	}
	return f
}

// settle plans and hands over, one task type after the other, until nothing moves. It returns how many queues moved
// from one live server to another.
func (f fleet) settle(t rapid.TB) (moves int) {
	t.Helper()
	for round, changed := 0, true; changed; round++ {
		if round > 20 {
			t.Fatalf("queues move without end: %v", f.totals())
		}
		changed = false
		for _, r := range f.tasks {
			f.countElsewhere(r)
			for _, c := range r.Plan() {
				changed = true
				if c.Requester != "" {
					moves++
				}
			}
			rebalance(t, r)
			if again := r.Plan(); len(again) > 0 {
				t.Fatalf("planning again changes %+v", again)
			}
			r.ReleaseAll("")
		}
	}
	return moves
}

// countElsewhere notes what the processes of a task type have of the others.
func (f fleet) countElsewhere(r *plantest.Roster) {
	totals, owned := f.totals(), r.Owned()
	for i, s := range r.Servers {
		r.Servers[i].Elsewhere = totals[s.UUID] - owned[s.UUID]
	}
}

// totals returns how many queues each process has.
func (f fleet) totals() map[string]int {
	totals := map[string]int{}
	for _, r := range f.tasks {
		owned := r.Owned()
		for _, s := range r.Servers {
			totals[s.UUID] += owned[s.UUID]
		}
	}
	return totals
}

// spread returns the difference between the largest and the smallest total.
func (f fleet) spread() int {
	least, most := math.MaxInt, 0
	for _, n := range f.totals() {
		least, most = min(least, n), max(most, n)
	}
	return most - least
}

// join makes a process serve task types.
func (f fleet) join(process string, serves func(task int) bool) {
	for i, r := range f.tasks {
		if serves(i) {
			r.Join(process)
			r.Servers[len(r.Servers)-1].Host = process
		}
	}
}

// kill ends a process.
func (f fleet) kill(process string) {
	for _, r := range f.tasks {
		r.Remove(process)
	}
}

func all(int) bool { return true }

// fewest returns how many queues move at least until the totals of the live processes are within one queue.
func (f fleet) fewest() (moves int) {
	totals, sum := []int{}, 0
	for _, n := range f.totals() {
		totals, sum = append(totals, n), sum+n
	}
	slices.SortFunc(totals, func(a, b int) int { return b - a })
	for i, n := range totals {
		target := sum / len(totals)
		if i < sum%len(totals) {
			target++
		}
		moves += max(0, n-target)
	}
	return moves
}

// P15: a process that joins gets its part of many task types of few queues each, and what a lost process had goes to all
// others: the totals are within one queue after each step.
func TestTotalsOfManyTaskTypes(t *testing.T) {
	for _, tasks := range []int{20, 50} {
		for _, queues := range []int{1, 7} {
			t.Run(fmt.Sprintf("%d task types of %d queues", tasks, queues), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					f := newFleet(slices.Repeat([]int{queues}, tasks)...)
					live := []string{}
					for step := range rapid.IntRange(6, 10).Draw(t, "steps") {
						if len(live) == 6 || len(live) > 2 && rapid.Bool().Draw(t, "lost") {
							i := rapid.IntRange(0, len(live)-1).Draw(t, "process")
							f.kill(live[i])
							live = slices.Delete(live, i, i+1)
						} else {
							live = append(live, fmt.Sprintf("P%02d", step))
							f.join(live[len(live)-1], all)
						}
						f.settle(t)
						if f.spread() > 1 {
							t.Fatalf("the totals are %v", f.totals())
						}
					}
				})
			})
		}
	}
}

// P8, P15: hardly more queues move than must, so that each task type is even, and the totals are. The task types are
// planned in any order.
func TestTotalsMoveFewQueues(t *testing.T) {
	for _, queues := range []int{1, 2, 4, 7} {
		random, moves, fewest := rand.New(rand.NewPCG(1, uint64(queues))), 0, 0
		for range 20 {
			f := newFleet(slices.Repeat([]int{queues}, 20)...)
			for n := 1; n <= 6; n++ {
				f.join(fmt.Sprint("P", n), all)
				random.Shuffle(len(f.tasks), func(i, j int) { f.tasks[i], f.tasks[j] = f.tasks[j], f.tasks[i] })
				if n > 1 {
					fewest += max(f.fewest(), len(f.tasks)*(queues/n))
				}
				moves += f.settle(t)
			}
		}
		if moves > fewest+fewest/25 {
			t.Errorf("%d queues each: %d moves, at least %d are needed", queues, moves, fewest)
		}
	}
}

// The totals are within one queue if all processes serve task types of any sizes.
func TestTotalsOfAnySizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(rapid.SliceOfN(rapid.IntRange(0, 9), 1, 8).Draw(t, "queues")...)
		for p := range rapid.IntRange(1, 6).Draw(t, "processes") {
			f.join(fmt.Sprint("P", p), all)
			f.settle(t)
			if f.spread() > 1 {
				t.Fatalf("the totals are %v", f.totals())
			}
		}
	})
}

// Plans of one task type after the other come to an end, whatever the processes serve, whatever they may own, and
// whatever their weights.
func TestTotalsComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleet{}
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			r := drawRoster(t)
			r.Limits.Servers = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "max servers")
			f.tasks = append(f.tasks, r)
		}
		f.settle(t)
	})
}

// Of the servers whose shares may be rounded up, none that is has more of all task types than the average, and than one
// that is not.
func TestPlanEvensTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(1, 9).Draw(t, "queues"))}
		r.Join([]string{"A", "B", "C", "D"}[:rapid.IntRange(2, 4).Draw(t, "servers")]...)
		drawElsewhere(t, r)
		for i := range r.Servers {
			r.Servers[i].Weight = rapid.IntRange(1, 3).Draw(t, "weight")
		}
		for i := range r.Queues {
			r.Queues[i].Owner = rapid.SampledFrom([]string{"", "A", "B", "C", "D"}).Draw(t, "owner")
		}
		for range 2 {
			rebalance(t, r)
			r.ReleaseAll("")
		}
		owned, queues, weight := r.Owned(), len(r.Queues), 0
		sum := queues
		for _, s := range r.Servers {
			weight, sum = weight+s.Weight, sum+s.Elsewhere
		}
		if sum == queues {
			return // no process has queues of other task types
		}
		for _, a := range r.Servers {
			for _, b := range r.Servers {
				up, down := owned[a.UUID]*weight > queues*a.Weight, owned[b.UUID]*weight < queues*b.Weight
				hasA, hasB := a.Elsewhere+owned[a.UUID], b.Elsewhere+owned[b.UUID]
				above := hasA*weight > sum*a.Weight
				if up && down && above && (2*hasA-1)*b.Weight > (2*hasB+1)*a.Weight {
					t.Fatalf("%s has %d queues of all task types, %s has %d: %v", a.UUID, hasA, b.UUID, hasB, r.Rows())
				}
			}
		}
	})
}

// Zones keep their parts of the queues, although the totals would be more even (P14).
func TestTotalsKeepZones(t *testing.T) {
	f := newFleet(2, 4)
	f.tasks[0].Limits.Spread = "zone"
	for _, p := range []struct{ process, zone string }{{"A", "a"}, {"B", "a"}, {"C", "b"}, {"D", "b"}} {
		f.join(p.process, func(task int) bool { return task == 0 || p.zone == "a" })
		spread := f.tasks[0].Servers
		spread[len(spread)-1].Labels = plan.Labels{"zone": p.zone}
	}
	f.settle(t)
	zones, owned := map[string]int{}, f.tasks[0].Owned()
	for _, s := range f.tasks[0].Servers {
		zones[s.Labels["zone"]] += owned[s.UUID]
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, zones); diff != "" {
		t.Errorf("the totals are %v (-want +got):\n%s", f.totals(), diff)
	}
}

// P15: task types with pinned queues take part. Four task types have three queues each, of which A must have the first:
// B gets both others of two of them.
func TestTotalsOfPinnedQueues(t *testing.T) {
	f := newFleet(3, 3, 3, 3)
	for _, r := range f.tasks {
		r.Queues[0].Pin, _ = plan.ParseSelector("host=A")
	}
	f.join("A", all)
	f.settle(t)
	f.join("B", all)
	moves := f.settle(t)
	if diff := cmp.Diff(map[string]int{"A": 6, "B": 6}, f.totals()); diff != "" || moves != 6 {
		t.Errorf("%d moves (-want +got):\n%s", moves, diff)
	}
}

// P15: a process that joins gets its part of many task types of one queue, also if only some servers may get them.
func TestTotalsWithinAPin(t *testing.T) {
	f := newFleet(2, 2, 2, 2, 2, 2)
	for _, r := range f.tasks {
		r.Queues[0].Pin, r.Queues[1].Pin = labels("host=A|B"), labels("host=C|D|E")
	}
	for _, process := range []string{"A", "C", "B", "D", "E"} {
		f.join(process, all)
		f.settle(t)
	}
	if diff := cmp.Diff(map[string]int{"A": 3, "B": 3, "C": 2, "D": 2, "E": 2}, f.totals()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
