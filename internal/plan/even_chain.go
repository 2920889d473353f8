package plan

import (
	"cmp"
	"maps"
	"slices"
)

// improve moves a row along a chain that makes the servers more even. It reports whether there was one.
func (e *evening) improve() bool {
	givers := e.givers()
	best, second := e.lowest()
	for _, zone := range slices.Sorted(maps.Keys(givers)) {
		e.search++ // what a server that has more could not improve, one that has less cannot either
		for _, from := range givers[zone] {
			other := best[0]
			if e.zones != nil && other >= 0 && e.zones[other] == zone {
				other = second
			}
			if !e.gains(from, other) && (e.zones == nil || !e.gains(from, best[1+zone])) {
				break
			}
			if e.seen[from] == e.search {
				continue
			}
			e.seen[from], e.via[from] = e.search, slot{}
			if to := e.reach([]int{from}, func(s int) bool { return e.gain(from, s) > 0 }); to >= 0 {
				e.shift(from, to)
				return true
			}
		}
	}
	return false
}

func (e *evening) gains(from, to int) bool { return to >= 0 && e.gain(from, to) > 0 }

// givers returns the servers that have rows, by zone, those with the most for their weights first.
func (e *evening) givers() map[int][]int {
	byZone := map[int][]int{}
	for s, n := range e.total {
		if n > 0 {
			byZone[e.zoneOf(s)] = append(byZone[e.zoneOf(s)], s)
		}
	}
	for _, list := range byZone {
		slices.SortStableFunc(list, func(s, t int) int {
			w, v := e.weights[s], e.weights[t]
			return cmp.Or(compareTrue(e.exceeds(s), e.exceeds(t)), compareTrue(w == 0, v == 0),
				(2*e.total[t]-1)*max(1, w)-(2*e.total[s]-1)*max(1, v))
		})
	}
	return byZone
}

// lowest returns the server that should get the next row, of all servers and then of each zone, and the one of another
// zone than the first is in; -1 for none with room.
func (e *evening) lowest() (best []int, second int) {
	best = slices.Repeat([]int{-1}, 1+max(1, len(e.zoneSums)))
	for s := range e.total {
		if at := 1 + e.zoneOf(s); e.hasRoom(s) && (best[at] < 0 || e.compareTakers(s, best[at]) < 0) {
			best[at] = s
		}
	}
	second = -1
	for _, s := range best[1:] {
		switch {
		case s < 0:
		case best[0] < 0 || e.compareTakers(s, best[0]) < 0:
			best[0], second = s, best[0]
		case second < 0 || e.compareTakers(s, second) < 0:
			second = s
		}
	}
	return best, second
}

// makeRoom gives a row of the group to a server that is full, and moves a row of it, by a chain, to a server that has
// room.
func (e *evening) makeRoom(g *groupShare) bool {
	e.search++
	to := e.reach(e.enter(g, -1, nil), func(int) bool { return true })
	if to < 0 {
		return false
	}
	e.shift(-1, to)
	return true
}

// enter notes that the search has reached a group, by way of one of its servers. It appends the servers that are
// reached so.
func (e *evening) enter(g *groupShare, from int, at []int) []int {
	if g.seen == e.search {
		return at
	}
	g.seen, g.from = e.search, from
	for k, s := range g.servers {
		if e.seen[s] != e.search {
			e.seen[s], e.via[s] = e.search, slot{g, k}
			at = append(at, s)
		}
	}
	return at
}

// reach follows all chains from the servers. It returns the server at the end of one that should rather get a row than
// others, among those with room that are accepted, or -1. The chains have the fewest steps.
func (e *evening) reach(at []int, accept func(s int) bool) int {
	best := -1
	for i := 0; i < len(at); i++ {
		s := at[i]
		if e.via[s].group != nil && e.hasRoom(s) && accept(s) && (best < 0 || e.compareTakers(s, best) < 0) {
			best = s
		}
		for _, slot := range e.slots[s] {
			if slot.group.n[slot.at] > 0 {
				at = e.enter(slot.group, slot.at, at)
			}
		}
	}
	return best
}

// shift moves a row along the chain that ends with a server, from its end on. from is the server with which it begins,
// or -1 if it begins with a row that has no server.
func (e *evening) shift(from, to int) {
	for s := to; s != from; {
		via := e.via[s]
		e.give(via.group, via.at, 1)
		if via.group.from < 0 {
			return
		}
		e.give(via.group, via.group.from, -1)
		s = via.group.servers[via.group.from]
	}
}

// choose moves a row that any server may get to a server that is to be rounded up, from one of the same weight and zone
// that is rounded up and is not to be (P15). It does so for each such server, and reports whether there was one. The
// plan is as even as before.
func (e *evening) choose() (chose bool) {
	free := e.groups[len(e.groups)-1]
	if len(free.servers) < len(e.total) || !slices.ContainsFunc(e.working(), func(s Server) bool { return s.RoundedUp }) {
		return false
	}
	type kind struct{ zone, weight, total int }
	up := map[kind][]int{}
	for s, n := range e.total {
		if !e.servers[s].RoundedUp && free.n[s] > 0 {
			k := kind{e.zoneOf(s), e.weights[s], n}
			up[k] = append(up[k], s)
		}
	}
	for s, n := range e.total {
		k := kind{e.zoneOf(s), e.weights[s], n + 1}
		if list := up[k]; e.servers[s].RoundedUp && e.hasRoom(s) && len(list) > 0 {
			up[k] = list[1:]
			e.give(free, list[0], -1)
			e.give(free, s, 1)
			chose = true
		}
	}
	return chose
}
