package plan

import (
	"cmp"
	"slices"
)

// roster is what a plan reads: the rows of the queues that it assigns, and the servers.
type roster struct {
	limits     Limits
	rows       []row          // in natural order of the ids
	servers    []Server       // the live servers: first those that get queues, the oldest first, then the others
	position   map[string]int // of the servers, by uuid
	weights    []int          // of the servers that get queues
	weight     int            // their sum
	zones      []int          // of the servers that get queues: numbers from 0; all 0 if the queues are not spread (P14)
	groups     []*group       // the rows by the servers that may get them, those with the fewest servers first
	groupOf    []*group       // of the rows
	restricted bool           // some server must not get some row
	hung       bool           // calls of a queue hang (P9)
	preferred  bool           // a server with a weight has the labels of the setting prefer (P14)
}

// row is a queue as it was read, and where the plan puts it. A change is made from one row, so that it never compares
// the rows of two queues.
type row struct {
	*Queue
	owner     int // position in servers, or none
	requester int // position in servers, or none
	rule      Rule
}

// none is the position of no server.
const none = -1

// newRoster sorts the queues by id and the servers by register_time and uuid (P1). It returns the queues that are
// removed (N2) or reserved (P13) apart: they are not assigned.
func newRoster(queues []Queue, servers []Server, limits Limits) (r *roster, unassigned []row) {
	r = &roster{limits: limits, rows: make([]row, 0, len(queues))}
	servers = slices.SortedFunc(slices.Values(servers), byAge)
	r.preferred = limits.prefer(servers)
	names := newReturning(servers, limits)
	owned := make(map[string]int, len(servers))
	for _, i := range order(queues) {
		w := row{Queue: &queues[i], owner: none, requester: none}
		if w.Removing || names.waits(w.Queue) {
			unassigned = append(unassigned, w)
			continue
		}
		if limits.choose() {
			owned[cmp.Or(names.returned(w.Queue), w.Owner)]++
		}
		r.rows = append(r.rows, w)
	}
	setServers(r, servers, r.chosen(servers, owned, len(names.absent)))
	for i := range unassigned {
		unassigned[i].owner = r.at(unassigned[i].Owner)
	}
	setOwners(r, names)
	setGroups(r)
	return r, unassigned
}

// setOwners notes the owners and requesters of the rows. A server that has returned gets its queues back within the
// limits (P13).
func setOwners(r *roster, names returning) {
	has := make([]int, len(r.servers))
	for i := range r.rows {
		w := &r.rows[i]
		if w.owner = r.at(w.Owner); w.owner == none {
			w.rule = Unowned
			continue
		}
		w.requester = r.at(w.Requester)
		has[w.owner]++
	}
	for i := range r.rows {
		back := r.at(names.returned(r.rows[i].Queue))
		if back != none && back < len(r.weights) && within(has[back], r.limits.QueuesPerServer) {
			r.rows[i].owner = back
			has[back]++
		}
	}
}

// byAge compares servers by register_time and uuid (P1).
func byAge(a, b Server) int {
	return cmp.Or(a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
}

// mayOwn reports whether a server may get queues, as far as its state and require say so (P14).
func (l Limits) mayOwn(s Server) bool { return l.Forbids(&Queue{}, s) == Stays }

// prefer gives weight 0 to the servers that lack a label of the setting prefer, so that they become a reserve (P2,
// P14). It does so only if a server with a weight has the labels, and reports whether there is one.
func (l Limits) prefer(servers []Server) bool {
	preferred := slices.ContainsFunc(servers, func(s Server) bool {
		return l.mayOwn(s) && s.Weight > 0 && l.Prefer.Matches(s)
	})
	for i, s := range servers {
		if preferred && !l.Prefer.Matches(s) {
			servers[i].Weight = 0
		}
	}
	return preferred
}

// choose reports whether the limits choose which servers get queues.
func (l Limits) choose() bool { return l.InFlight > 0 || l.Servers > 0 || l.ServersPerHost > 0 }

// chosen returns the servers that get queues, the oldest first. The limits choose the servers with the largest weights
// (P10, P12). Among equals, the servers with most queues come first, so that few queues move, then those whose
// processes have fewer queues elsewhere (P15), and then the older ones. If the queues came before the weights, planning
// again would change something: a light server that has given its last queue to a heavy one would lose its place to
// another server, which then gets queues. A server that pins or hung calls keep from every queue takes no place.
// absent servers, which return soon, keep their places (P13).
func (r *roster) chosen(servers []Server, owned map[string]int, absent int) (list []Server) {
	l := r.limits
	servers = slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return !l.mayOwn(s) })
	if !l.choose() {
		return servers
	}
	servers = slices.DeleteFunc(servers, func(s Server) bool { return !r.mayGetSome(s) })
	slices.SortStableFunc(servers, func(a, b Server) int {
		return cmp.Or(b.Weight-a.Weight, owned[b.UUID]-owned[a.UUID], a.Elsewhere-b.Elsewhere)
	})
	ofHost := map[string]int{}
	for _, s := range servers {
		n := len(list) + absent
		if within(n, l.InFlight) && within(n, l.Servers) && within(ofHost[s.Host], l.ServersPerHost) {
			list = append(list, s)
			ofHost[s.Host]++
		}
	}
	slices.SortFunc(list, byAge)
	return list
}

// mayGetSome reports whether a server may get one of the rows. It compares the server with each pin once.
func (r *roster) mayGetSome(s Server) bool {
	lacks := map[string]bool{}
	return slices.ContainsFunc(r.rows, func(w row) bool {
		if lacks[w.Pin.text] {
			return false
		}
		rule := r.limits.Forbids(w.Queue, s)
		lacks[w.Pin.text] = rule == Pin
		return rule == Stays
	})
}

// within reports whether there is room for one more within a limit; 0 is no limit.
func within(n, limit int) bool { return limit == 0 || n < limit }

// MaxWeight is the greatest weight of a server. With more, products of weights and numbers of queues would not fit.
const MaxWeight = 1000

// setServers notes the servers: first those that are chosen to get queues, then the others, which stand by or may own
// none. If no chosen server has a weight, all count alike.
func setServers(r *roster, servers, chosen []Server) {
	r.servers, r.position = slices.Grow(chosen, len(servers)-len(chosen)), make(map[string]int, len(servers))
	for i, s := range chosen {
		r.position[s.UUID] = i
		r.weights = append(r.weights, min(max(0, s.Weight), MaxWeight))
		r.weight += r.weights[i]
	}
	if r.weight == 0 {
		r.weights, r.weight = slices.Repeat([]int{1}, len(chosen)), len(chosen)
	}
	r.zones = zones(chosen, r.limits.Spread)
	for _, s := range servers {
		if _, works := r.position[s.UUID]; !works {
			r.position[s.UUID] = len(r.servers)
			r.servers = append(r.servers, s)
		}
	}
}

// at returns the position of a live server, or none.
func (r *roster) at(uuid string) int {
	if s, live := r.position[uuid]; live {
		return s
	}
	return none
}

// uuid returns the uuid of the server at a position, "" for none.
func (r *roster) uuid(s int) string {
	if s == none {
		return ""
	}
	return r.servers[s].UUID
}

// working returns the servers that get queues.
func (r *roster) working() []Server { return r.servers[:len(r.weights)] }

// mayGet reports whether a server gets queues, and may get this one (P9, P14).
func (r *roster) mayGet(row, s int) bool {
	return s != none && s < len(r.weights) && !r.groupOf[row].bars(s)
}

// holder returns the position of the server that has the row, or none if it gets no queues or must not get the row: the
// owner, or with loads the server to which the owner hands the row over.
func (r *roster) holder(row int) int {
	if to := r.rows[row].requester; r.limits.Loads != nil && r.mayGet(row, to) {
		return to
	}
	return r.keeper(row)
}

// keeper returns the position of the row's owner, or none if it gets no queues or must not get the row.
func (r *roster) keeper(row int) int {
	if s := r.rows[row].owner; r.mayGet(row, s) {
		return s
	}
	return none
}

// holders returns the holder of each row.
func (r *roster) holders() []int {
	list := make([]int, len(r.rows))
	for i := range list {
		list[i] = r.holder(i)
	}
	return list
}

// elsewhere returns how many queues of other task types the server's process has, for its weight (P15).
func (r *roster) elsewhere(s int) fraction {
	return fraction{r.servers[s].Elsewhere, max(1, r.weights[s])}
}
