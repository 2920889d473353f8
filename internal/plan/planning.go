package plan

import (
	"cmp"
	"slices"
)

// planning is one computation of a plan. Its methods are the passes of the planner (P1 to P16) over the same rows.
type planning struct {
	rows         []row // the queues to assign, in natural order of the ids
	unassigned   []row // the queues that are not assigned, because they are removed (N2) or reserved (P13), in the same order
	absent       int   // the servers for which queues are reserved, and that are not there (P13)
	eligible     []string
	weights      []int          // of the eligible servers
	weight       int            // their sum
	position     map[string]int // of an eligible server in eligible
	live         map[string]bool
	barred       [][]bool // of the rows: the positions of the eligible servers that must not get it (P9, P14); nil: none
	restricted   bool     // some row is barred from some eligible server
	hung         bool     // calls of a queue hang (P9)
	zones        []int    // of the eligible servers; nil: the queues are not spread (P14)
	roundedUp    []bool   // of the eligible servers: those whose shares are rounded up first (P15)
	isNew        []bool   // of the eligible servers: whether it registered a short time ago (P16)
	elsewhere    []int    // of the eligible servers: the queues of other task types (P15)
	maxPerServer int
	loads        *Loads // nil: the numbers of queues are balanced (P16)
	evened       []bool // of the rows: whether assignByLoad moves the row only to even the loads
}

// row is a queue as the plan leaves it, together with the queue as it was read. A change has both, so that it never
// compares the rows of two queues.
type row struct {
	Queue
	old    *Queue
	byLoad bool // the request only evens loads (P16)
}

// newPlanning sorts the queues by id (P1) and the servers by register_time and uuid.
func newPlanning(queues []Queue, servers []Server, limits Limits) *planning {
	p := &planning{
		position:     make(map[string]int, len(servers)),
		live:         make(map[string]bool, len(servers)),
		maxPerServer: limits.QueuesPerServer,
		loads:        limits.Loads,
	}
	servers = slices.Clone(servers)
	for i, s := range servers {
		p.live[s.UUID] = true
		servers[i].Eligible = s.Eligible && limits.Require.Matches(s)
	}
	prefer(servers, limits.Prefer)
	names := newReturning(servers)
	p.rows = make([]row, 0, len(queues))
	for _, row := range sorted(queues) {
		switch {
		case row.Removing, names.waits(row.Queue):
			p.unassigned = append(p.unassigned, row)
		default:
			if uuid := names.returned(row.Queue); uuid != "" {
				row.Owner = uuid
			}
			p.rows = append(p.rows, row)
		}
	}
	p.absent = len(names.absent)
	working := p.working(servers, limits)
	p.weigh(working)
	p.zones = zones(working, limits.Spread)
	for _, s := range working {
		p.position[s.UUID] = len(p.eligible)
		p.roundedUp = append(p.roundedUp, s.RoundedUp && !limits.choose())
		p.elsewhere = append(p.elsewhere, s.Elsewhere)
		p.isNew = append(p.isNew, s.New)
		p.eligible = append(p.eligible, s.UUID)
	}
	p.bar(working)
	return p
}

// prefer takes their weights from the servers that lack a label of prefer, if one that has a weight has them: they become a
// reserve (P2, P14).
func prefer(servers []Server, selector Selector) {
	if selector.all() || !slices.ContainsFunc(servers, func(s Server) bool { return s.Eligible && s.Weight > 0 && selector.Matches(s) }) {
		return
	}
	for i, s := range servers {
		if !selector.Matches(s) {
			servers[i].Weight = 0
		}
	}
}

// working returns the servers that may get queues, the oldest first. The limits choose the heaviest, among equals
// those that own most queues, so that few queues move, then those whose processes have fewer queues elsewhere (P15), and then the
// older ones (P10, P12). The others stand by. If the
// queues came before the weights, a light server that has given its last queue to a heavy one would make room for a
// server that then gets queues: planning again would change something.
func (p *planning) working(servers []Server, limits Limits) []Server {
	eligible := slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return !s.Eligible })
	slices.SortFunc(eligible, byAge)
	if !limits.choose() {
		return eligible
	}
	owned := make(map[string]int, len(p.live))
	for _, row := range p.rows {
		owned[row.Owner]++
	}
	slices.SortStableFunc(eligible, func(a, b Server) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(owned[b.UUID], owned[a.UUID]), cmp.Compare(a.Elsewhere, b.Elsewhere))
	})
	var chosen []Server
	ofHost := map[string]int{}
	for _, s := range eligible {
		if within(len(chosen)+p.absent, limits.InFlight) && within(len(chosen)+p.absent, limits.Servers) && within(ofHost[s.Host], limits.ServersPerHost) {
			chosen = append(chosen, s)
			ofHost[s.Host]++
		}
	}
	slices.SortFunc(chosen, byAge)
	return chosen
}

// choose reports whether the limits choose which servers get queues.
func (l Limits) choose() bool { return l.InFlight > 0 || l.Servers > 0 || l.ServersPerHost > 0 }

// within reports whether there is room for one more within a limit; 0 is no limit.
func within(n, limit int) bool { return limit == 0 || n < limit }

// byAge compares servers by register_time and uuid (P1).
func byAge(a, b Server) int {
	return cmp.Or(a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
}

// assignOwnerless gives each queue without a live owner to the server to which it is assigned, or clears its owner. It
// takes no queue from a live owner (P5).
func (p *planning) assignOwnerless() {
	for i := range p.rows {
		if !p.live[p.rows[i].Owner] {
			p.rows[i].Owner = ""
		}
	}
	if p.loads != nil {
		p.grantByLoad()
		return
	}
	for gave := true; gave; {
		gave = false
		for i, server := range p.assign() {
			if p.rows[i].Owner == "" && server != "" {
				p.rows[i].Owner = server
				gave = p.restricted && p.maxPerServer > 0 // a server is over its limit then, and what it was to give makes room
			}
		}
	}
}

// request writes a request for each queue that belongs to another server than its owner, and withdraws every other
// request (P5).
func (p *planning) request() {
	for i, server := range p.settled() {
		row := &p.rows[i]
		row.Requester = ""
		if server != row.Owner && row.Owner != "" {
			row.Requester = server
			row.byLoad = p.evened != nil && p.evened[i]
		}
	}
}

// finishUnassigned clears what the queues that are not assigned must not have: a requester, and an owner that is dead
// (N2).
func (p *planning) finishUnassigned() {
	for i := range p.unassigned {
		row := &p.unassigned[i]
		row.Requester = ""
		if !p.live[row.Owner] {
			row.Owner = ""
		}
	}
}

// settled returns for each row the server that should own it in the end, or "", as assign does.
func (p *planning) settled() []string {
	if p.loads != nil {
		return p.assignByLoad()
	}
	return p.assign()
}

// assign returns for each row the eligible server that should own it, or "" if no eligible server has room: the owner
// then keeps the queue, even an owner that is over its limit or not eligible (P7).
func (p *planning) assign() []string {
	assigned := make([]string, len(p.rows))
	if len(p.eligible) == 0 {
		return assigned
	}
	owners := p.owners()
	for _, q := range p.quotas(owners) {
		p.keep(assigned, q, owners)
		p.assignRest(assigned, q)
	}
	return assigned
}

// quota is how many rows of a group each of its servers should get.
type quota struct {
	*group
	room []int // of the group's servers: how many more rows it gets; in the beginning all that it should get
}

// quotas returns the quotas of the rows. While any server may get any row, all rows are one group, and the quotas are the shares
// of the servers (P2).
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
func (p *planning) keep(assigned []string, q quota, owners []int) {
	n := len(q.servers)
	for _, ownPosition := range []bool{true, false} {
		for _, i := range q.rows {
			if owners[i] < 0 || assigned[i] != "" {
				continue
			}
			if k := q.index(owners[i]); (i%n == k) == ownPosition && q.room[k] > 0 {
				assigned[i] = p.eligible[owners[i]]
				q.room[k]--
			}
		}
	}
}

// assignRest assigns the other rows of the group, each to the server of its position, or to the next one below its quota (P4).
// Where the limits leave room for some queues only, a queue without an owner comes before a queue whose owner has too many.
func (p *planning) assignRest(assigned []string, q quota) {
	open := newVacancies(q.room)
	for _, ownerless := range []bool{true, false} {
		for _, i := range q.rows {
			if assigned[i] != "" || (p.rows[i].Owner == "") != ownerless {
				continue
			}
			k := open.from(i % max(1, len(q.servers)))
			if k < 0 {
				return
			}
			assigned[i] = p.eligible[q.servers[k]]
			open.take(k)
		}
	}
}

// owners returns for each row the position of its owner, or -1 if the row has no eligible owner that may get it.
func (p *planning) owners() []int {
	owners := make([]int, len(p.rows))
	for i, row := range p.rows {
		owners[i] = -1
		if s, ok := p.position[row.Owner]; ok && !p.bars(i, s) {
			owners[i] = s
		}
	}
	return owners
}
