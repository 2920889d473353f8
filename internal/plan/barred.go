package plan

import (
	"cmp"
	"slices"
)

// bar notes which eligible servers must not get a queue: those that lack a label of its pin (P14), and those on which a call
// of it hangs (P9).
func (p *planning) bar(servers []Server) {
	p.barred = map[string][]bool{}
	pins := map[string][]bool{} // queues with the same pin share their set
	for _, row := range p.rows {
		if row.Pin.all() {
			continue
		}
		set, there := pins[row.Pin.text]
		if !there {
			set = make([]bool, len(servers))
			for i, s := range servers {
				set[i] = !row.Pin.Matches(s)
			}
			pins[row.Pin.text] = set
		}
		if slices.Contains(set, true) {
			p.barred[row.ID] = set
		}
	}
	for i, s := range servers {
		for _, id := range s.HungQueues {
			p.hung = true
			set := make([]bool, len(servers))
			copy(set, p.barred[id])
			set[i] = true
			p.barred[id] = set
		}
	}
}

// bars reports whether an eligible server must not get the queue.
func (p *planning) bars(id string, server int) bool {
	set := p.barred[id]
	return set != nil && set[server]
}

// barredRows returns the number of rows that some eligible server must not get.
func (p *planning) barredRows() (n int) {
	if len(p.barred) == 0 {
		return 0
	}
	for _, row := range p.rows {
		if p.barred[row.ID] != nil {
			n++
		}
	}
	return n
}

// assignBarred assigns the queues that some eligible server must not get (P9, P14). It does so before all other queues: they
// can go to any server, and so balance what this leaves uneven. An owner keeps its own up to its share. It keeps more,
// within its limit, only where no server that may get them has less for its weight. assignBarred returns how many of these
// queues each server gets.
func (p *planning) assignBarred(assigned []string, owners []int) (load []int) {
	load = make([]int, len(p.eligible))
	if len(p.barred) == 0 {
		return load
	}
	give := func(i, s int) {
		assigned[i] = p.eligible[s]
		load[s]++
	}
	var surplus, ownerless, others []int
	for i, s := range owners {
		switch {
		case p.barred[p.rows[i].ID] == nil:
		case s >= 0 && p.hasRoom(load[s]):
			give(i, s)
			if load[s] > p.share(s) {
				surplus = append(surplus, i)
			}
		case p.rows[i].Owner == "":
			ownerless = append(ownerless, i)
		default:
			others = append(others, i)
		}
	}
	for _, i := range append(ownerless, others...) {
		if s := p.leastLoaded(i, load); s >= 0 {
			give(i, s)
		} else if own, ok := p.position[p.rows[i].Owner]; ok {
			load[own]++ // it keeps the queue, because no server may get it
		}
	}
	for _, i := range surplus {
		load[owners[i]]--
		s := p.leastLoaded(i, load)
		if s < 0 || !p.lighter(s, owners[i], load) {
			s = owners[i]
		}
		give(i, s)
	}
	return load
}

// hasRoom reports whether a server with the load may get one more queue.
func (p *planning) hasRoom(load int) bool { return within(load, p.maxPerServer) }

// share returns the server's share of all queues, rounded up.
func (p *planning) share(s int) int {
	return (len(p.rows)*p.weights[s] + p.weight - 1) / p.weight
}

// lighter reports whether server a has less for its weight than server b after one more queue.
func (p *planning) lighter(a, b int, load []int) bool {
	return cmp.Or(cmp.Compare((load[a]+1)*p.weights[b], (load[b]+1)*p.weights[a]), cmp.Compare(load[a], load[b])) < 0
}

// leastLoaded returns the server with the least load for its weight that may get the row and has room, or -1. Among equals
// it is the first at or after the position of the row.
func (p *planning) leastLoaded(row int, load []int) int {
	least, n := -1, len(load)
	barred := p.barred[p.rows[row].ID] // the caller has one
	for k := range n {
		s := (row + k) % n
		if !barred[s] && p.hasRoom(load[s]) && (least < 0 || p.lighter(s, least, load)) {
			least = s
		}
	}
	return least
}

// settled returns what assign returns in the end, if each of its results becomes the roster that it is called on.
// Without barred queues that is its first result. With them, each further result evens out their loads,
// until nothing changes.
func (p *planning) settled() []string {
	if p.loads != nil {
		return p.assignByLoad()
	}
	assigned := p.assign()
	if len(p.barred) == 0 {
		return assigned
	}
	next := *p
	next.rows = slices.Clone(p.rows)
	for range p.rows { // a bound: each further result makes the sum of the squared loads, each by its weight, smaller
		for i, server := range assigned {
			if server != "" {
				next.rows[i].Owner = server
			}
		}
		again := next.assign()
		if slices.Equal(again, assigned) {
			break
		}
		assigned = again
	}
	return assigned
}

// plannedMoves returns the number of queues that get another owner.
func (p *planning) plannedMoves() (moves int) {
	was := slices.Clone(p.rows)
	p.assignOwnerless()
	p.request()
	for i, row := range p.rows {
		if row.Requester != "" || row.Owner != "" && row.Owner != was[i].Owner {
			moves++
		}
	}
	return moves
}
