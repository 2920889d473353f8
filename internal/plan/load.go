package plan

import (
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

// mostLevel bounds how much more than its part, without the queues that are too large, a server may have because of
// such a queue of another one.
const mostLevel = 1.5

// leastGain is the part by which the server that gets a queue must be less busy then than the other one was, unless it
// stays within its bound. With less, loads that vary would move queues to and fro.
const leastGain = 0.1

// LoadResult is what a plan by load does to the loads.
type LoadResult struct {
	// Before and After are the loads of the servers that get queues, by their uuids, without and with the queues that
	// move only to even them.
	Before, After map[string]float64
	// Fair is the load that a server with the weight 1 would have if queues could be divided.
	Fair float64
	// Incomplete says that nothing moves to even the loads, because those of some queues are known, and those of too
	// many are not.
	Incomplete bool
	// Uneven says that a server has more than Start allows before queues move to even the loads.
	Uneven bool
	// TooLarge are the queues that are larger than the part of a server by more than Start, the largest first: no plan
	// evens their loads.
	TooLarge []string
}

// loadBalancing is a computation by loads over the rows of a plan (P16). It has over 30 methods: each pass and each of
// its rules is one. They have a file for each pass, and all change the same places and sums.
type loadBalancing struct {
	*planning
	at   []int     // of the rows: the position of the server that is to own it, or -1
	load []float64 // of the rows

	owned, measured int // rows with an owner, and how many of their loads are known

	sums       []float64 // of the eligible servers
	count      []int     // of the eligible servers: their rows, as far as they take room
	mine       [][]int   // of the eligible servers: their rows, by load
	idle       *idle
	idleBefore []bool    // of the servers: whether the server is new, or had no queues
	before     []float64 // of the servers: the sums before queues move only to even the loads
	wasUneven  bool
	budget     int // moves that are left; negative: any number

	zoneRows []int // of the zones: how many rows their servers have
	zoneMost []int // of the zones: their parts, rounded up

	fair  float64 // with the weight 1, the part of the whole load
	least float64 // the same, without the queues that are too large and the servers that they fill
	level float64 // the same, if it is at least what the largest queue needs, up to mostLevel
}

// newLoadBalancing puts each row where it is after the hand-overs under way.
func newLoadBalancing(p *planning) *loadBalancing {
	n := len(p.weights)
	b := &loadBalancing{
		planning: p, at: p.targets(), sums: make([]float64, n), count: make([]int, n), mine: make([][]int, n), budget: p.limits.Loads.Budget}
	for s, zone := range p.zones {
		if zone == len(b.zoneRows) {
			b.zoneRows, b.zoneMost = append(b.zoneRows, 0), append(b.zoneMost, 0)
		}
		b.zoneMost[zone] += p.weights[s]
	}
	for zone, weight := range b.zoneMost {
		b.zoneMost[zone] = (len(p.rows)*weight + p.weight - 1) / p.weight
	}
	b.load = p.loadsOf()
	rows := b.sortedRows()
	for _, i := range rows {
		if s := b.at[i]; s >= 0 {
			b.mine[s] = append(b.mine[s], i)
			b.add(i, s, 1)
		}
		if p.rows[i].owner == none {
			continue
		}
		b.owned++
		if _, known := p.limits.Loads.Of[p.rows[i].ID]; known {
			b.measured++
		}
	}
	for s, mine := range b.mine {
		b.idleBefore = append(b.idleBefore, len(mine) == 0 || b.servers[s].New)
	}
	b.idle = newIdle(b)
	b.findParts(rows)
	return b
}

// size implements measure.
func (b *loadBalancing) size(s int) int { return b.count[s] }

// rule implements measure.
func (b *loadBalancing) rule(from, to int) Rule {
	switch {
	case b.zones != nil && b.zones[from] != b.zones[to] && b.zoneRows[b.zones[from]] >= b.zoneMost[b.zones[from]]:
		return Spread
	case b.idleBefore[to]:
		return Idle
	}
	return Load
}

// sortedRows returns all rows, by load.
func (b *loadBalancing) sortedRows() []int {
	rows := make([]int, len(b.rows))
	for i := range rows {
		rows[i] = i
	}
	slices.SortFunc(rows, b.byLoad)
	return rows
}

// add adds a row to the sums of a server, or with -1 takes it from them.
func (b *loadBalancing) add(row, s, n int) {
	b.sums[s] += float64(n) * b.load[row]
	b.count[s] += n
	if b.zones != nil {
		b.zoneRows[b.zones[s]] += n
	}
}

// put gives a row to a server, or to none if s is -1.
func (b *loadBalancing) put(row, s int) {
	if from := b.at[row]; from >= 0 {
		b.mine[from] = b.remove(b.mine[from], row)
		b.add(row, from, -1)
		b.idle.changed(from)
	}
	if b.at[row] = s; s >= 0 {
		b.mine[s] = b.insert(b.mine[s], row)
		b.add(row, s, 1)
		b.idle.changed(s)
	}
}

// targets returns for each row the eligible server that owns it after the hand-overs under way, or -1 if none may.
func (p *planning) targets() []int {
	list := p.owners()
	for i := range p.rows {
		if s := p.holder(i); s != p.rows[i].owner {
			list[i] = s
		}
	}
	return list
}

// holder returns where a row is: with its owner, or if loads are evened, with the server to which the owner hands it
// over.
func (p *planning) holder(row int) int {
	r := p.rows[row]
	if s := r.requester; p.limits.Loads != nil && s != none && s < len(p.weights) && !p.bars(row, s) {
		return s
	}
	return r.owner
}

// loadsOf returns the loads of the rows. Without any that is known, all are alike.
func (p *planning) loadsOf() []float64 {
	list := make([]float64, len(p.rows))
	var known float64
	var unknown []int
	for i, row := range p.rows {
		load, ok := p.limits.Loads.Of[row.ID]
		if !ok {
			unknown = append(unknown, i)
			continue
		}
		list[i] = usable(load)
		known += list[i]
	}
	average := 1.0
	if n := len(p.rows) - len(unknown); n > 0 {
		average = known / float64(n)
	}
	for _, i := range unknown {
		list[i] = rounded(average)
	}
	return list
}

// usable returns a load that can be added up. One that is no number counts as none.
func usable(load float64) float64 {
	if math.IsNaN(load) {
		load = 0
	}
	return rounded(baseLoad + min(max(0, load), maxLoad))
}

func rounded(load float64) float64 { return math.Round(load/loadUnit) * loadUnit }

// result returns what the plan does to the loads. It is nil for a plan by the numbers of queues.
func (b *loadBalancing) result() *LoadResult {
	if b == nil {
		return nil
	}
	r := &LoadResult{map[string]float64{}, map[string]float64{}, b.fair, b.incomplete(), b.wasUneven, b.tooLarge()}
	for s := range b.weights {
		r.Before[b.uuid(s)], r.After[b.uuid(s)] = b.before[s], b.sums[s]
	}
	return r
}

// byLoad compares rows: the largest load first, then the natural order.
func (b *loadBalancing) byLoad(i, j int) int {
	if b.load[i] == b.load[j] {
		return i - j
	}
	return compareTrue(b.load[i] > b.load[j], b.load[j] > b.load[i])
}
