package plan

import (
	"cmp"
	"slices"
)

// roster is what a plan reads: the rows of the queues that it assigns, and the servers.
type roster struct {
	limits  Limits
	rows    []row    // in natural order of the ids
	servers []Server // the live servers: first those that get queues, the oldest first, then the others
	weights []int    // of the servers that get queues
	weight  int      // their sum
	zones   []int    // of the servers that get queues; nil: the queues are not spread (P14)
	barred  [][]bool // of the rows: which of the servers that get queues must not get it (P9, P14); nil: none
}

// planning is one computation of a plan. Its methods are the steps of the planner (P1 to P16).
type planning struct {
	*roster
	unassigned []row          // the queues that are removed (N2) or reserved (P13), in natural order of the ids
	position   map[string]int // of the servers, by uuid
	preferred  bool           // a server with a weight has the labels of the setting prefer (P14)
	restricted bool           // some row is barred from some server
	hung       bool           // calls of a queue hang (P9)
	measure    measure        // says why the rows of the last pass move
}

// measure is what a plan makes even: shares, evening or loadBalancing.
type measure interface {
	// rule returns the first rule in rank, from Spread on, that breaks if a row stays with one server and does not go
	// to another one, which has no less weight than 1 if the first one has.
	rule(from, to int) Rule
	// size returns how many rows a server gets.
	size(s int) int
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

// newPlanning sorts the queues by id (P1) and the servers by register_time and uuid.
func newPlanning(queues []Queue, servers []Server, limits Limits) *planning {
	p := &planning{roster: &roster{limits: limits, rows: make([]row, 0, len(queues))}}
	servers = slices.Clone(servers)
	p.prefer(servers)
	names := newReturning(servers, p.mayOwn)
	owned := make(map[string]int, len(servers))
	for _, i := range order(queues) {
		r := row{Queue: &queues[i], requester: none}
		if r.Removing || names.waits(r.Queue) {
			p.unassigned = append(p.unassigned, r)
			continue
		}
		if limits.choose() {
			owned[cmp.Or(names.returned(r.Queue), r.Owner)]++
		}
		p.rows = append(p.rows, r)
	}
	p.choose(servers, owned, len(names.absent))
	p.zones = zones(p.working(), limits.Spread)
	for i := range p.unassigned {
		p.unassigned[i].owner = p.at(p.unassigned[i].Owner)
	}
	for i := range p.rows {
		r := &p.rows[i]
		if r.owner = p.at(r.Owner); r.owner == none {
			r.owner, r.rule = p.at(names.returned(r.Queue)), Unowned
		}
		if r.owner != none {
			r.requester = p.at(r.Requester)
		}
	}
	p.bar()
	return p
}

// at returns the position of a live server, or none.
func (p *planning) at(uuid string) int {
	if s, live := p.position[uuid]; live {
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

// holder returns the position of the server that has the row, or none if it gets no queues or must not get the row: the
// owner, or with loads the server to which the owner hands the row over.
func (r *roster) holder(row int) int {
	w := r.rows[row]
	if r.limits.Loads != nil && r.mayGet(row, w.requester) {
		return w.requester
	}
	if r.mayGet(row, w.owner) {
		return w.owner
	}
	return none
}

// mayGet reports whether a server gets queues, and may get this one (P9, P14).
func (r *roster) mayGet(row, s int) bool { return s != none && s < len(r.weights) && !r.bars(row, s) }

// bars reports whether one of the servers that get queues must not get the row.
func (r *roster) bars(row, s int) bool { return r.barred[row] != nil && r.barred[row][s] }

// zoneOf returns the zone of a server; without zones, all are in one.
func (r *roster) zoneOf(s int) int {
	if r.zones == nil {
		return 0
	}
	return r.zones[s]
}

// mayOwn reports whether a server may get queues, as far as its state and require say so (P14).
func (p *planning) mayOwn(s Server) bool { return s.Eligible && p.limits.Require.Matches(s) }

// prefer takes their weights from the servers that lack a label of the setting prefer, if a server that has a weight
// has it: they become a reserve (P2, P14).
func (p *planning) prefer(servers []Server) {
	matches := p.limits.Prefer.Matches
	p.preferred = slices.ContainsFunc(servers, func(s Server) bool { return p.mayOwn(s) && s.Weight > 0 && matches(s) })
	for i, s := range servers {
		if p.preferred && !matches(s) {
			servers[i].Weight = 0
		}
	}
}

// choose sorts the servers: first those that get queues, the oldest first, then the others, which stand by or may own
// none. The limits choose the heaviest, among equals those that own most queues, so that few queues move, then those
// whose processes have fewer queues elsewhere (P15), and then the older ones (P10, P12). If the queues came before the
// weights, a light server that has given its last queue to a heavy one would make room for a server that then gets
// queues: planning again would change something.
func (p *planning) choose(servers []Server, owned map[string]int, absent int) {
	slices.SortFunc(servers, byAge)
	working := make([]Server, 0, len(servers))
	for _, s := range servers {
		if p.mayOwn(s) {
			working = append(working, s)
		}
	}
	if p.limits.choose() {
		working = p.limits.chosen(working, owned, absent)
	}
	p.position = make(map[string]int, len(servers))
	add := func(s Server) {
		s.RoundedUp = s.RoundedUp && !p.limits.choose()
		p.position[s.UUID] = len(p.servers)
		p.servers = append(p.servers, s)
	}
	for _, s := range working {
		add(s)
	}
	p.weigh(working)
	for _, s := range servers {
		if _, works := p.position[s.UUID]; !works {
			add(s)
		}
	}
}

// choose reports whether the limits choose which servers get queues.
func (l Limits) choose() bool { return l.InFlight > 0 || l.Servers > 0 || l.ServersPerHost > 0 }

// chosen returns the servers that get queues. absent servers, which return soon, keep their places (P13).
func (l Limits) chosen(servers []Server, owned map[string]int, absent int) (list []Server) {
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

// within reports whether there is room for one more within a limit; 0 is no limit.
func within(n, limit int) bool { return limit == 0 || n < limit }

// byAge compares servers by register_time and uuid (P1).
func byAge(a, b Server) int {
	return cmp.Or(a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
}

// assignOwnerless gives each queue without a live owner to the server to which it is assigned. It takes no queue from a
// live owner (P5).
func (p *planning) assignOwnerless() {
	if p.limits.Loads != nil {
		p.grantByLoad()
		return
	}
	for gave := true; gave; {
		gave = false
		for i, s := range p.assign() {
			if p.rows[i].owner == none && s != none {
				p.grant(i, s)
				// A server can be over its limit then, and what it is to give makes room.
				gave = p.restricted && p.limits.QueuesPerServer > 0
			}
		}
	}
}

// grant gives a row that has no owner to a server.
func (p *planning) grant(row, s int) { p.rows[row].owner, p.rows[row].rule = s, Unowned }

// request writes a request for each queue that belongs to another server than its owner, with the rule that moves it,
// and withdraws every other request (P5).
func (p *planning) request() {
	for i, to := range p.settled() {
		r, from := &p.rows[i], p.holder(i)
		r.requester = none
		if to == r.owner || to == none || r.owner == none {
			continue
		}
		if from == to || from == none { // it is on its way, or its owner may not keep it
			from = r.owner
		}
		r.requester, r.rule = to, p.ruleOf(r.Queue, from, to)
	}
}

// settled returns for each row the position of the server that should own it in the end, or none, as assign does.
func (p *planning) settled() []int {
	if p.limits.Loads != nil {
		return p.assignByLoad()
	}
	return p.assign()
}

// assign returns for each row the position of the server that should own it, or none if no server has room: the owner
// then keeps the queue, even an owner that is over its limit or may not own queues (P7).
func (p *planning) assign() []int {
	assigned := slices.Repeat([]int{none}, len(p.rows))
	if len(p.weights) == 0 {
		return assigned
	}
	owners := holders(p.roster)
	for _, q := range p.quotas(owners) {
		q.keep(assigned, owners)
		p.assignRest(assigned, q)
	}
	return assigned
}

// quota is how many rows of a group each of its servers should get.
type quota struct {
	*group
	room []int // of the group's servers: how many more rows it gets; in the beginning all that it should get
}

// quotas returns the quotas of the rows. While any server may get any row, all rows are one group, and the quotas are
// the shares of the servers (P2).
func (p *planning) quotas(owners []int) []quota {
	if p.restricted {
		return p.evenQuotas(owners)
	}
	all := &group{p.allowed(nil), make([]int, len(p.rows))}
	for i := range all.rows {
		all.rows[i] = i
	}
	return []quota{{all, p.exactShares(owners)}}
}

// keep assigns to each server its own queues, up to its quota: first the queues at its own round-robin position, then
// the others in order (P3).
func (q quota) keep(assigned, owners []int) {
	n := len(q.servers)
	for _, ownPosition := range []bool{true, false} {
		for _, i := range q.rows {
			if owners[i] == none || assigned[i] != none {
				continue
			}
			if k := q.index(owners[i]); (i%n == k) == ownPosition && q.room[k] > 0 {
				assigned[i] = owners[i]
				q.room[k]--
			}
		}
	}
}

// assignRest assigns the other rows of the group, each to the server of its position, or to the next one below its
// quota (P4). Where the limits leave room for some queues only, a queue without an owner comes before a queue whose
// owner has too many.
func (p *planning) assignRest(assigned []int, q quota) {
	open := newVacancies(q.room)
	for _, ownerless := range []bool{true, false} {
		for _, i := range q.rows {
			if assigned[i] != none || (p.rows[i].owner == none) != ownerless {
				continue
			}
			k := open.from(i % max(1, len(q.servers)))
			if k < 0 {
				return
			}
			assigned[i] = q.servers[k]
			open.take(k)
		}
	}
}

// holders returns the holder of each row.
func holders(r *roster) []int {
	list := make([]int, len(r.rows))
	for i := range list {
		list[i] = r.holder(i)
	}
	return list
}
