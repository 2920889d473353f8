package plan

import "slices"

// chains looks for chains of moves: each server of a chain gives a row to the next one.
type chains struct {
	flow   *flow
	search int    // the number of the present search
	seen   []int  // of the servers: the last search that reached it
	via    []slot // of the servers: the group whose row it takes in that search
}

// improve moves a row along a chain for whose ends gain is more than 0. It reports whether there was one.
func (c *chains) improve(gain func(from, to int) int) bool {
	f := c.flow
	var takers []int // the first one of each zone
	for _, list := range f.takers.kinds {
		if f.hasRoom(list[0]) {
			takers = append(takers, list[0])
		}
	}
	slices.SortFunc(takers, f.takers.compare)
	for zone, givers := range f.givers.kinds {
		best := f.takers.kinds[zone][:1] // the first takers of the zone and of the others
		if i := slices.IndexFunc(takers, func(s int) bool { return f.zones[s] != zone }); i >= 0 {
			best = []int{best[0], takers[i]}
		}
		c.search++ // one for all givers of the zone: what could not help a server that has more cannot help this one
		for _, from := range givers {
			gains := func(to int) bool { return f.hasRoom(to) && gain(from, to) > 0 }
			if f.has[from].queues == 0 || c.seen[from] == c.search {
				continue
			}
			if !slices.ContainsFunc(best, gains) {
				break
			}
			c.seen[from], c.via[from] = c.search, slot{}
			if to := c.reach([]int{from}, gains); to != none {
				c.shift(from, to)
				return true
			}
		}
	}
	return false
}

// makeRoom gives a row of the group to a server that is full, and moves a row of it, by a chain, to a server that has
// room.
func (c *chains) makeRoom(g *split) bool {
	c.search++
	to := c.reach(c.enter(g, -1, nil), c.flow.hasRoom)
	if to == none {
		return false
	}
	c.shift(none, to)
	return true
}

// reach follows all chains from the servers, and finds those with the fewest steps. Of the accepted servers at their
// ends, it returns the one that should get a row first, or none.
func (c *chains) reach(at []int, accept func(s int) bool) int {
	best := none
	for i := 0; i < len(at); i++ {
		s := at[i]
		if c.via[s].split != nil && accept(s) && (best == none || c.flow.compareTakers(s, best) < 0) {
			best = s
		}
		for _, slot := range c.flow.slots[s] {
			if slot.n[slot.at] > 0 {
				at = c.enter(slot.split, slot.at, at)
			}
		}
	}
	return best
}

// enter notes that the search has reached a group, by way of one of its servers. It appends the servers that are
// reached so.
func (c *chains) enter(g *split, from int, at []int) []int {
	if g.seen == c.search {
		return at
	}
	g.seen, g.from = c.search, from
	for k, s := range g.servers {
		if c.seen[s] != c.search {
			c.seen[s], c.via[s] = c.search, slot{g, k}
			at = append(at, s)
		}
	}
	return at
}

// shift moves a row along the chain that ends with a server, from its end on. from is the server with which it begins,
// or none if it begins with a row that has no server.
func (c *chains) shift(from, to int) {
	for s := to; s != from; {
		via := c.via[s]
		c.flow.give(via.split, via.at, 1)
		if via.from < 0 {
			return
		}
		c.flow.give(via.split, via.from, -1)
		s = via.server(via.from)
	}
}
