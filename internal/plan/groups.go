package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// group is a set of rows that the same servers may get. The pin of a row (P14) and the calls of it that hang (P9)
// decide which servers these are. Rows of a group can stand in for each other. So with a thousand queues that are
// pinned to one of three zones, a plan looks at three cases and not at a thousand.
type group struct {
	servers []int  // the positions of the servers, ascending
	barred  string // for each server that gets queues: 1 if it must not get the rows
	rows    []int  // ascending
}

// setGroups divides the rows into groups. The group with the fewest servers comes first: it has the least choice.
func setGroups(r *roster) {
	hung := map[string][]int{} // the servers on which a call of a queue hangs
	for s, server := range r.working() {
		for _, id := range server.HungQueues {
			hung[id] = append(hung[id], s)
		}
	}
	r.hung = len(hung) > 0
	type rule struct{ pin, hung string }
	byRule, byBarred := map[rule]*group{}, map[string]*group{} // so that each pin is compared with each server once
	r.groupOf = make([]*group, len(r.rows))
	var last rule
	var g *group
	for i, row := range r.rows {
		k := rule{pin: row.Pin.text}
		if r.hung && hung[row.ID] != nil {
			k.hung = fmt.Sprint(hung[row.ID])
		}
		if g == nil || k != last {
			last, g = k, byRule[k]
		}
		if g == nil {
			g = newGroup(r, row.Pin, hung[row.ID])
			if same := byBarred[g.barred]; same != nil {
				g = same
			} else {
				r.groups = append(r.groups, g)
			}
			byRule[k], byBarred[g.barred] = g, g
		}
		g.rows, r.groupOf[i] = append(g.rows, i), g
	}
	slices.SortStableFunc(r.groups, func(a, b *group) int { return cmp.Compare(len(a.servers), len(b.servers)) })
	r.restricted = len(r.groups) > 0 && len(r.groups[0].servers) < len(r.weights)
}

// newGroup returns the group of the rows that have the pin and whose calls hang on the servers hung.
func newGroup(r *roster, pin Selector, hung []int) *group {
	g := &group{servers: make([]int, 0, len(r.weights))}
	barred := make([]byte, len(r.weights))
	for s, server := range r.working() {
		if !pin.Matches(server) || slices.Contains(hung, s) {
			barred[s] = 1
		} else {
			g.servers = append(g.servers, s)
		}
	}
	g.barred = string(barred)
	return g
}

// bars reports whether a server that gets queues must not get the rows.
func (g *group) bars(s int) bool { return g.barred[s] != 0 }

// index returns the place of a server in the list of the group's servers, or -1.
func (g *group) index(server int) int {
	if server < len(g.servers) && g.servers[server] == server {
		return server // all servers before it are in the list, too
	}
	if k, there := slices.BinarySearch(g.servers, server); there {
		return k
	}
	return -1
}

// places are what a plan divides the rows of a group among: the group's servers, and the owners that must not keep rows
// of it. These keep them all the same where no other server has room (P7).
type places struct {
	*group
	unfit     []int // these owners, ascending
	ownerless int   // how many rows have no owner, and are to get one
}

// placesOf returns the places of a group.
func (r *roster) placesOf(g *group) places {
	p := places{group: g}
	for _, i := range g.rows {
		if owner := r.rows[i].owner; owner == none {
			p.ownerless++
		} else if k, there := slices.BinarySearch(p.unfit, owner); !there && p.index(owner) < 0 {
			p.unfit = slices.Insert(p.unfit, k, owner)
		}
	}
	return p
}

// place returns the place of a server, or -1: first the group's servers, then the other owners.
func (p *places) place(server int) int {
	if k := p.index(server); k >= 0 {
		return k
	}
	if k, there := slices.BinarySearch(p.unfit, server); there {
		return len(p.servers) + k
	}
	return -1
}

// server returns the server at a place.
func (p *places) server(k int) int {
	if k < len(p.servers) {
		return p.servers[k]
	}
	return p.unfit[k-len(p.servers)]
}
