package plan

import (
	"cmp"
	"math"
	"slices"
)

// Loads make a plan even the loads of the servers and not their numbers of queues (P16).
type Loads struct {
	// Of are the loads of the queues, by id, in executors that a queue needs. A queue without one counts as the average
	// of the others. Each queue counts as baseLoad more.
	Of map[string]float64
	// Start is how much more than its part the busiest server must have before anything moves: 0.25 for a quarter.
	Start float64
	// Stop is how much more it may have in the end. It is less than Start, so that small changes of the loads move
	// nothing.
	Stop float64
	// Budget is the most moves that only even loads; negative: any number. A move does not count if a rule makes it
	// necessary, or a server that is new or gone.
	Budget int
}

// The Start and Stop with which servers plan.
const (
	LoadStart = 0.25
	LoadStop  = 0.15
)

// baseLoad is the load of a queue without work. Of two servers, the one with fewer such queues gets the next one. It is
// too small to count beside work.
const baseLoad = 0.001

// Loads are rounded to loadUnit and at most maxLoad, so that their sums are exact: the order of additions does not
// matter.
const (
	loadUnit = 1.0 / 1024
	maxLoad  = 1e6
)

// leastBusy is a load at which a server has so little to do that nothing moves because of it.
const leastBusy = 0.1

// mostLevel bounds evenParts.level, in multiples of evenParts.least.
const mostLevel = 1.5

// leastGain says by how much a move must help if the server that gets the queue exceeds its bound: with the queue, it
// must be a tenth less busy than the other server was. With less, loads that vary would move queues to and fro.
const leastGain = 0.1

// LoadResult is what a plan by load does to the loads.
type LoadResult struct {
	// Before and After are the loads of the servers that get queues, by their uuids: after the hand-overs under way,
	// and after all moves.
	Before, After map[string]float64
	// Fair is the load that a server with the weight 1 would have if queues could be divided.
	Fair float64
	// Incomplete says that nothing moves to even the loads, because too many of them are not known. It is false if none is
	// known: then all queues count alike.
	Incomplete bool
	// TooLarge are the queues that are larger than the part of a server by more than Start, the largest first: no plan
	// evens their loads.
	TooLarge []string
}

// loadBalancing evens the loads of a roster (P16). It begins with the rows where they are after the hand-overs under
// way.
type loadBalancing struct {
	tally
	evenParts
	load   []float64 // of the rows
	sorted []int     // the rows, by load
	at     []int     // of the rows: the position of the server that is to own it, or none

	sums []float64 // of the servers
	mine [][]int   // of the servers: their rows, by load

	before []float64 // of the servers: the sums in the beginning
	joins  []bool    // of the servers: whether the server is new, or had no rows in the beginning

	incomplete bool  // some loads are known, and over a tenth of the loads of rows with owners are not
	budget     int   // moves that are left; negative: any number
	zoneMost   []int // of the zones: their parts of the rows, rounded up
}

func newLoadBalancing(r *roster) *loadBalancing {
	n := len(r.weights)
	b := &loadBalancing{
		tally: newTally(r), load: loadsOf(r), sorted: make([]int, len(r.rows)), at: r.holders(),
		sums: make([]float64, n), mine: make([][]int, n), budget: r.limits.Loads.Budget,
	}
	for i := range b.sorted {
		b.sorted[i] = i
	}
	slices.SortFunc(b.sorted, b.byLoad)
	b.evenParts = partsOf(b.load, b.sorted, r.weights, r.weight)
	for _, zone := range b.zoneHas {
		b.zoneMost = append(b.zoneMost, (len(r.rows)*zone.weight+r.weight-1)/r.weight)
	}
	owned, measured := 0, 0
	for _, i := range b.sorted {
		if s := b.at[i]; s != none {
			b.mine[s] = append(b.mine[s], i)
		}
		if s := b.bearer(i); s != none {
			b.add(i, s, 1)
		}
		if r.rows[i].owner != none {
			owned++
			if _, known := r.limits.Loads.Of[r.rows[i].ID]; known {
				measured++
			}
		}
	}
	b.incomplete = measured > 0 && measured*10 < owned*9
	b.before = slices.Clone(b.sums)
	for s, mine := range b.mine {
		b.joins = append(b.joins, len(mine) == 0 || r.servers[s].New)
	}
	b.rank()
	return b
}

// rule implements measure.
func (b *loadBalancing) rule(from, to int) Rule {
	zone := b.zones[from]
	switch {
	case zone != b.zones[to] && b.zoneHas[zone].queues >= b.zoneMost[zone]:
		return Spread
	case b.joins[to]:
		return Idle
	}
	return Load
}

// result returns what the plan does to the loads. It is nil for a plan by the numbers of queues.
func (b *loadBalancing) result() *LoadResult {
	if b == nil {
		return nil
	}
	r := &LoadResult{map[string]float64{}, map[string]float64{}, b.fair, b.incomplete, nil}
	for s := range b.weights {
		r.Before[b.uuid(s)], r.After[b.uuid(s)] = b.before[s], b.sums[s]
	}
	if len(b.weights) == 0 {
		return r
	}
	most := max(leastBusy, b.fair*float64(slices.Max(b.weights))) * (1 + b.limits.Loads.Start)
	for _, row := range b.sorted {
		if b.load[row] > most {
			r.TooLarge = append(r.TooLarge, b.rows[row].ID)
		}
	}
	return r
}

// add adds a row to what a server has, or with -1 takes it from it.
func (b *loadBalancing) add(row, s, n int) {
	b.sums[s] += float64(n) * b.load[row]
	b.count(s, n)
}

// put gives a row to a server, or to none.
func (b *loadBalancing) put(row, s int) {
	if from := b.at[row]; from != none {
		i, _ := slices.BinarySearchFunc(b.mine[from], row, b.byLoad)
		b.mine[from] = slices.Delete(b.mine[from], i, i+1)
	}
	if old := b.bearer(row); old != none {
		b.change(old, func() { b.add(row, old, -1) })
	}
	if b.at[row] = s; s != none {
		i, _ := slices.BinarySearchFunc(b.mine[s], row, b.byLoad)
		b.mine[s] = slices.Insert(b.mine[s], i, row)
	}
	if next := b.bearer(row); next != none {
		b.change(next, func() { b.add(row, next, 1) })
	}
}

// bearer returns the server whose load and number of queues the row counts in, or none. That is the server that is to
// own it. Until one is found, it is the owner, if that gets queues: it keeps the row, although it must not get it.
func (b *loadBalancing) bearer(row int) int {
	if s := b.at[row]; s != none {
		return s
	}
	if owner := b.rows[row].owner; owner < len(b.weights) {
		return owner
	}
	return none
}

// byLoad compares rows: the largest load first, then the natural order.
func (b *loadBalancing) byLoad(i, j int) int { return cmp.Or(cmp.Compare(b.load[j], b.load[i]), i-j) }

// rank sorts the servers by what they have: the takers by zone and weight, the givers in one list.
func (b *loadBalancing) rank() {
	type kind struct{ weight, zone int }
	b.takers = newRanking(len(b.has), func(s int) kind { return kind{b.weights[s], b.zones[s]} }, func(s, t int) int {
		return cmp.Or(compareTrue(b.hasRoom(s), b.hasRoom(t)), b.compareIdle(s, t, 0))
	})
	b.givers = newRanking(len(b.has), func(int) int { return 0 }, func(s, t int) int {
		return cmp.Or(cmp.Compare(b.busy(t, s, 0), b.busy(s, t, 0)), s-t)
	})
}

// compareIdle puts the server first that will have less load for its weight if it gets so much more, then the one that
// has fewer rows, then the one whose process has less of other task types, and then the older one.
func (b *loadBalancing) compareIdle(s, t int, more float64) int {
	v, w := max(1, b.weights[s]), max(1, b.weights[t])
	return cmp.Or(
		cmp.Compare(b.busy(s, t, more), b.busy(t, s, more)),
		fraction{b.has[s].queues, v}.compare(fraction{b.has[t].queues, w}),
		b.elsewhere(s).compare(b.elsewhere(t)),
		s-t)
}

// busy returns how busy a server is if it gets so much more load, for a comparison with another server: its load times
// the weight of the other one. A load divided by its own weight would not be exact.
func (b *loadBalancing) busy(s, other int, more float64) float64 {
	return (b.sums[s] + more) * float64(max(1, b.weights[other]))
}

// idlest returns the accepted server with room that will have the least load for its weight if it gets the row, or
// none. It leaves out the row's own server, and servers that must not get the row.
func (b *loadBalancing) idlest(row int, accept func(s int) bool) int {
	best := none
	for s := range b.takers.first(b.groupOf[row], b.at[row]) {
		if accept(s) && b.hasRoom(s) && (best == none || b.compareIdle(s, best, b.load[row]) < 0) {
			best = s
		}
	}
	return best
}

// loadsOf returns the loads of the rows. If none is known, all are alike.
func loadsOf(r *roster) []float64 {
	list := make([]float64, len(r.rows))
	var known float64
	var unknown []int
	for i, row := range r.rows {
		load, ok := r.limits.Loads.Of[row.ID]
		if !ok {
			unknown = append(unknown, i)
			continue
		}
		list[i] = usable(load)
		known += list[i]
	}
	average := 1.0
	if n := len(r.rows) - len(unknown); n > 0 {
		average = known / float64(n)
	}
	for _, i := range unknown {
		list[i] = rounded(average)
	}
	return list
}

// usable returns a load that can be added up. A load that is no number counts as none.
func usable(load float64) float64 {
	if math.IsNaN(load) {
		load = 0
	}
	return rounded(baseLoad + min(max(0, load), maxLoad))
}

func rounded(load float64) float64 { return math.Round(load/loadUnit) * loadUnit }

// evenParts are the parts of a server with the weight 1, if the loads were divided evenly. Of the loads 8, 1, 1, 1 and
// 1, two servers have a fair part of 6 each. But one of them must have the 8, so that only 4 are left for the other
// one: its part is 4 (least). Some server has a load of 8 anyway, so little is gained by moving queues away from
// another one that has less. But no server should have more than one and a half times its part because of a large queue
// elsewhere. So a server has too much only beyond 6 (level).
type evenParts struct {
	fair  float64 // of the whole load
	least float64 // without the queues that are larger than the part of a server, and the servers that they fill
	level float64 // beyond it a server has too much: what the largest queue needs, from fair to mostLevel times least
}

// partsOf returns the parts. The rows are sorted by load, and weight is the sum of the weights.
func partsOf(load []float64, rows, weights []int, weight int) (p evenParts) {
	var rest float64
	for _, l := range load {
		rest += l
	}
	if len(rows) == 0 || weight == 0 {
		return p
	}
	p.fair = rest / float64(weight)
	weights = slices.SortedFunc(slices.Values(weights), func(a, b int) int { return b - a })
	for i, row := range rows { // a large queue fills the heaviest server that is left
		if weight == 0 || load[row]*float64(weight) <= rest*float64(weights[i])*(1+1e-9) {
			break
		}
		rest -= load[row]
		weight -= weights[i]
	}
	if weight > 0 {
		p.least = rest / float64(weight)
	}
	p.level = max(p.fair, min(load[rows[0]]/float64(weights[0]), mostLevel*p.least))
	return p
}
