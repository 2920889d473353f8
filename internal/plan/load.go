package plan

import (
	"cmp"
	"math"
	"slices"
)

// LoadOptions are the options of ByLoad.
type LoadOptions struct {
	// Start is how much more than its fair part the busiest server must have before anything moves: 0.25 for a quarter.
	Start float64
	// Stop is how much more it may have in the end. It is less than Start, so that small changes of the loads move nothing.
	Stop float64
	// Budget is the most moves; negative: any number.
	Budget int
}

// LoadMove is a queue that goes to another server, because of its load.
type LoadMove struct {
	QueueID  string
	From, To string
	Load     float64
}

// LoadPlan is the result of ByLoad.
type LoadPlan struct {
	Moves []LoadMove
	// Loads are those of the servers that may own queues, before and after the moves, by their uuids.
	Before, After map[string]float64
	// Fair is the part of the load that a server with the weight 1 would have if queues could be divided.
	Fair float64
	// Largest is the largest load of a queue: no server that owns it has less.
	Largest float64
}

// ByLoad computes which queues should move so that the servers have equal loads for their weights. The loads are by queue, in
// any unit; a queue without one counts as the average of the others. ByLoad moves nothing while the busiest server is within
// Start of what is possible. Otherwise it moves queues until it is within Stop, the fewest that it finds: from the busiest
// server, the smallest queue that is enough, or else the largest one that another server has room for.
//
// The moves obey the rules of Plan for the limits, labels, pins and calls that hang; they do not keep the numbers of queues
// equal. Each move makes the busier of its two servers less busy, so that with the same loads, planning again after the moves
// moves nothing. Servers that are not eligible, and queues without an owner, are for Plan.
func ByLoad(queues []Queue, servers []Server, limits Limits, loads map[string]float64, o LoadOptions) LoadPlan {
	b := newLoadBalancing(queues, servers, limits, loads)
	result := LoadPlan{Before: b.byServer(), Fair: b.fair, Largest: b.largest}
	if b.fair > 0 && b.excess(b.busiest(nil), o.Start) > 0 {
		for o.Budget < 0 || len(result.Moves) < o.Budget {
			move, ok := b.next(o.Stop)
			if !ok {
				break
			}
			result.Moves = append(result.Moves, move)
		}
	}
	result.Moves = merged(result.Moves)
	result.After = b.byServer()
	return result
}

// merged returns one move for each queue that moved several times, and none for a queue that is back.
func merged(moves []LoadMove) (list []LoadMove) {
	for _, m := range moves {
		at := slices.IndexFunc(list, func(have LoadMove) bool { return have.QueueID == m.QueueID })
		if at < 0 {
			list = append(list, m)
			continue
		}
		list[at].To = m.To
	}
	return slices.DeleteFunc(list, func(m LoadMove) bool { return m.From == m.To })
}

// loadBalancing is one computation of ByLoad.
type loadBalancing struct {
	*planning
	owner   []int     // of the rows: the position of the eligible owner, or -1
	load    []float64 // of the rows
	sums    []float64 // of the eligible servers
	counts  []int
	fair    float64
	largest float64
}

func newLoadBalancing(queues []Queue, servers []Server, limits Limits, loads map[string]float64) *loadBalancing {
	b := &loadBalancing{planning: newPlanning(queues, servers, limits)}
	n := len(b.eligible)
	b.owner, b.load, b.sums, b.counts = b.targets(), make([]float64, len(b.rows)), make([]float64, n), make([]int, n)
	var known float64
	measured := 0
	for _, row := range b.rows {
		if load, ok := loads[row.ID]; ok {
			known += usable(load)
			measured++
		}
	}
	var total float64
	for i, row := range b.rows {
		load, ok := loads[row.ID]
		if b.load[i] = usable(load); !ok && measured > 0 {
			b.load[i] = known / float64(measured)
		}
		if s := b.owner[i]; s >= 0 {
			b.sums[s] += b.load[i]
			b.counts[s]++
			total += b.load[i]
			b.largest = max(b.largest, b.load[i])
		}
	}
	if b.weight > 0 {
		b.fair = total / float64(b.weight)
	}
	return b
}

// usable returns a load that can be added up: 0 for one that is none.
func usable(load float64) float64 {
	if math.IsNaN(load) || math.IsInf(load, 0) || load < 0 {
		return 0
	}
	return load
}

// targets returns for each row the eligible server that owns it after the hand-overs under way, or -1.
func (p *planning) targets() []int {
	list := make([]int, len(p.rows))
	for i, row := range p.rows {
		list[i] = -1
		for _, uuid := range []string{row.Owner, row.Requester} {
			if s, ok := p.position[uuid]; ok && row.Owner != "" {
				list[i] = s
			}
		}
	}
	return list
}

func (b *loadBalancing) byServer() map[string]float64 {
	loads := make(map[string]float64, len(b.eligible))
	for s, uuid := range b.eligible {
		loads[uuid] = b.sums[s]
	}
	return loads
}

// bound returns the load that a server may have: its fair part, or that of the largest queue, and a part more.
func (b *loadBalancing) bound(s int, more float64) float64 {
	return max(b.fair*float64(b.weights[s]), b.largest) * (1 + more)
}

// excess returns how much load a server has beyond its bound. Without a server it is 0.
func (b *loadBalancing) excess(s int, more float64) float64 {
	if s < 0 {
		return 0
	}
	return b.sums[s] - b.bound(s, more)
}

// busiest returns the server with the greatest load for what it may have, or -1.
func (b *loadBalancing) busiest(without map[int]bool) int {
	most := -1
	for s := range b.sums {
		if !without[s] && (most < 0 || b.sums[s]*b.bound(most, 0) > b.sums[most]*b.bound(s, 0)) {
			most = s
		}
	}
	return most
}

// next makes the next move, if there is one.
func (b *loadBalancing) next(stop float64) (move LoadMove, ok bool) {
	stuck := map[int]bool{} // busy servers none of whose queues can go anywhere
	for {
		from := b.busiest(stuck)
		excess := b.excess(from, stop)
		if excess <= 0 {
			return LoadMove{}, false
		}
		if row, to := b.choose(from, excess, stop); row >= 0 {
			b.sums[from], b.sums[to] = b.sums[from]-b.load[row], b.sums[to]+b.load[row]
			b.counts[from], b.counts[to] = b.counts[from]-1, b.counts[to]+1
			b.owner[row] = to
			return LoadMove{b.rows[row].ID, b.eligible[from], b.eligible[to], b.load[row]}, true
		}
		stuck[from] = true
	}
}

// choose returns the queue of a server that should move, and where to, or -1.
func (b *loadBalancing) choose(from int, excess, stop float64) (row, to int) {
	var mine []int
	for i, s := range b.owner {
		if s == from && b.load[i] > 0 {
			mine = append(mine, i)
		}
	}
	slices.SortStableFunc(mine, func(i, j int) int { // those that are enough, the smallest first; then the others, the largest first
		return cmp.Or(compareTrue(b.load[i] >= excess, b.load[j] >= excess), b.compareSize(i, j, excess))
	})
	for _, fits := range []bool{true, false} { // at last, a move that helps though the other server gets beyond its bound
		for _, i := range mine {
			if s := b.leastBusy(i, from, stop, fits); s >= 0 {
				return i, s
			}
		}
	}
	return -1, -1
}

func (b *loadBalancing) compareSize(i, j int, excess float64) int {
	if b.load[i] >= excess {
		return cmp.Compare(b.load[i], b.load[j])
	}
	return cmp.Compare(b.load[j], b.load[i])
}

// leastBusy returns the server with the least load for its part that may get the row, or -1. If it must fit, the server stays
// within its bound; if not, it is less busy afterwards than the server that gives the queue has been.
func (b *loadBalancing) leastBusy(row, from int, stop float64, fits bool) int {
	least := -1
	for s := range b.sums {
		after := b.sums[s] + b.load[row]
		switch {
		case s == from || b.weights[s] == 0 || b.bars(b.rows[row].ID, s) || !b.hasRoom(b.counts[s]):
		case fits && after > b.bound(s, stop), !fits && after/b.bound(s, 0) >= 0.99*b.sums[from]/b.bound(from, 0):
		case least < 0 || b.sums[s]/b.bound(s, 0) < b.sums[least]/b.bound(least, 0):
			least = s
		}
	}
	return least
}
