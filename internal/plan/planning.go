package plan

import "slices"

// planning is one computation of a plan. Its methods are the steps of the planner (P1 to P16).
type planning struct {
	*roster
	unassigned []row   // the queues that are removed (N2) or reserved (P13), in natural order of the ids
	measure    measure // of the last pass
}

// measure is what a plan makes even: rounding, flow or loadBalancing. It says why rows move.
type measure interface {
	// rule returns the first rule in rank, from Spread on, that breaks if a row stays with one server and does not go to
	// another one. If the first one has a weight, the other one has one too.
	rule(from, to int) Rule
	// size returns how many rows a server gets.
	size(s int) int
}

func newPlanning(queues []Queue, servers []Server, limits Limits) *planning {
	p := &planning{}
	p.roster, p.unassigned = newRoster(queues, servers, limits)
	return p
}

// assignOwnerless gives each queue without a live owner to the server to which it is assigned. It takes no queue from a
// live owner (P5).
func (p *planning) assignOwnerless() {
	if p.limits.Loads != nil {
		p.grantByLoad()
		return
	}
	for i, s := range p.assign() {
		if p.rows[i].owner == none && s != none {
			p.grant(i, s)
		}
	}
}

// grant gives a row that has no owner to a server.
func (p *planning) grant(row, s int) { p.rows[row].owner, p.rows[row].rule = s, Unowned }

// request writes a request for each queue that belongs to another server than its owner, with the rule that moves it,
// and withdraws every other request (P5).
func (p *planning) request() {
	for i, to := range p.destinations() {
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

// destinations returns for each row the position of the server that should own it in the end, or none, as assign does.
func (p *planning) destinations() []int {
	if p.limits.Loads != nil {
		return p.assignByLoad()
	}
	return p.assign()
}

// assign returns for each row the position of the server that should own it, or none if no server has room. The owner
// then keeps the queue, even an owner that is over its limit or may not own queues (P7).
func (p *planning) assign() []int {
	assigned := slices.Repeat([]int{none}, len(p.rows))
	if len(p.weights) == 0 || len(p.rows) == 0 {
		return assigned
	}
	for _, q := range p.quotas() {
		q.keep(assigned, p.rows)
		p.assignRest(assigned, q)
	}
	return assigned
}

// quota is how many rows of a group each of its places should have.
type quota struct {
	places
	room []int // of the places: how many more rows it gets; in the beginning all that it should have
}

// quotas returns the quotas of the rows. While any server may get any row, all rows are one group, and the quotas are
// the shares of the servers (P2).
func (p *planning) quotas() []quota {
	if p.restricted {
		return p.flowQuotas()
	}
	return []quota{{p.placesOf(p.groups[0]), p.exactShares(p.holders())}}
}

// keep assigns to each server its own queues, up to its quota: first the queues at its own round-robin position, then
// the others in order (P3).
func (q *quota) keep(assigned []int, rows []row) {
	n := max(1, len(q.servers))
	for _, ownPosition := range []bool{true, false} {
		for _, i := range q.rows {
			owner := rows[i].owner
			if owner == none || assigned[i] != none {
				continue
			}
			if k := q.place(owner); (i%n == k) == ownPosition && k < len(q.room) && q.room[k] > 0 {
				assigned[i] = owner
				q.room[k]--
			}
		}
	}
}

// assignRest assigns the other rows of the group, each to the server of its position, or to the next one below its
// quota (P4). Where the limits leave room for some queues only, a queue without an owner comes before a queue whose
// owner has too many.
//
// There are thousands of servers, and most are full in the end. A walk over the full ones for each row would make a
// plan quadratic in the number of servers. So for each server, after has the next one that may have room, as far as it
// is known (union-find).
func (p *planning) assignRest(assigned []int, q quota) {
	n, left := len(q.servers), 0
	after := make([]int, n)
	for k := range after {
		after[k] = (k + 1) % n
		left += q.room[k]
	}
	for _, ownerless := range []bool{true, false} {
		for _, i := range q.rows {
			if left == 0 {
				return
			}
			if assigned[i] != none || (p.rows[i].owner == none) != ownerless {
				continue
			}
			if ownerless {
				if q.ownerless == 0 {
					break // the room is for rows that make room elsewhere
				}
				q.ownerless--
			}
			k := i % n
			for ; q.room[k] == 0; k = after[k] {
				if next := after[k]; q.room[next] == 0 {
					after[k] = after[next]
				}
			}
			assigned[i] = q.servers[k]
			q.room[k]--
			left--
		}
	}
}
