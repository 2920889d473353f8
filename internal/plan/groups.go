package plan

import (
	"cmp"
	"slices"
)

// group is the rows that the same servers that get queues may get. The servers that may get a row are told apart by its
// pin (P14) and by calls of it that hang (P9). Rows of a group can stand in for each other, so that there are as many
// cases to look at as there are pins, and not as there are rows.
type group struct {
	servers []int // the positions of the servers, ascending
	rows    []int // ascending
}

// bar notes which servers that get queues must not get a row: those that lack a label of its pin (P14), and those on
// which a call of it hangs (P9).
func (p *planning) bar() {
	servers := p.working()
	p.barred = make([][]bool, len(p.rows))
	pins := map[string][]bool{} // rows with the same pin share their set
	for i, row := range p.rows {
		if row.Pin.all() {
			continue
		}
		set, there := pins[row.Pin.text]
		if !there {
			set = make([]bool, len(servers))
			for s, server := range servers {
				set[s] = !row.Pin.Matches(server)
			}
			pins[row.Pin.text] = set
		}
		if slices.Contains(set, true) {
			p.barred[i], p.restricted = set, true
		}
	}
	p.barHung(servers)
}

// barHung notes the servers on which calls hang.
func (p *planning) barHung(servers []Server) {
	hung := map[string][]int{}
	for s, server := range servers {
		for _, id := range server.HungQueues {
			hung[id] = append(hung[id], s)
		}
	}
	p.hung = len(hung) > 0
	if !p.hung {
		return
	}
	for i, row := range p.rows {
		if list := hung[row.ID]; len(list) > 0 {
			set := make([]bool, len(servers))
			copy(set, p.barred[i])
			for _, s := range list {
				set[s] = true
			}
			p.barred[i], p.restricted = set, true
		}
	}
}

// groups returns the rows by the servers that may get them. The group with the fewest servers comes first: it has the
// least choice.
func (p *planning) groups() []*group {
	var list []*group
	byServers := map[string]*group{}
	bySet := map[*bool]*group{} // so that each set of a pin is compared once
	for i, set := range p.barred {
		var first *bool
		if set != nil {
			first = &set[0]
		}
		g := bySet[first]
		if g == nil {
			servers := p.allowed(set)
			key := serversKey(servers)
			if g = byServers[key]; g == nil {
				g = &group{servers: servers}
				byServers[key] = g
				list = append(list, g)
			}
			bySet[first] = g
		}
		g.rows = append(g.rows, i)
	}
	slices.SortStableFunc(list, func(a, b *group) int { return cmp.Compare(len(a.servers), len(b.servers)) })
	return list
}

// allowed returns the positions of the servers that get queues that are not in the set.
func (p *planning) allowed(set []bool) []int {
	servers := make([]int, 0, len(p.weights))
	for s := range p.weights {
		if set == nil || !set[s] {
			servers = append(servers, s)
		}
	}
	return servers
}

// serversKey returns the list as a key of a map.
func serversKey(servers []int) string {
	key := make([]byte, 0, 3*len(servers))
	for _, s := range servers {
		key = append(key, byte(s), byte(s>>8), byte(s>>16))
	}
	return string(key)
}

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
