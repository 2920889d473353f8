package plantest

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// Broken returns the first rule in rank that breaks if one queue of a roster stays where it is, although a plan gives
// it to another server, and all other queues go where the plan sends them. It returns plan.Stays if no rule breaks. It
// shares no code with the planner, and knows no reserved queues.
func Broken(before *Roster, changes []plan.Change, c plan.Change) plan.Rule {
	q, limits, working := *before.Queue(c.QueueID), before.Limits, chosen(before)
	from, to := c.OldOwner, c.Owner
	if c.Requester != "" {
		from, to = c.Owner, c.Requester
	}
	if limits.Loads != nil && !c.ChangesOwner() && q.Requester != to && owns(working, q, q.Requester) {
		from = q.Requester // a plan by load begins after the hand-overs that are under way
	}
	at := slices.IndexFunc(before.Servers, func(s plan.Server) bool { return s.UUID == from })
	if at < 0 {
		return plan.Unowned
	}
	if rule := forbidden(limits, q, before.Servers[at], working); rule != plan.Stays {
		return rule
	}
	e := newEnd(before, changes, working)
	switch {
	case limits.QueuesPerServer > 0 && e.owned[from]+1 > limits.QueuesPerServer:
		return plan.QueuesPerServer
	case e.weights[from] > 0 || e.weights[to] == 0:
		return e.broken(q.ID, from, to)
	case e.preferred && !limits.Prefer.Matches(before.Servers[at]):
		return plan.Prefer
	}
	return plan.Weight
}

// Obstacle returns the rule that keeps a queue from the server that comes nearest to getting it.
func Obstacle(r *Roster, q plan.Queue) plan.Rule {
	rule, working := plan.Ineligible, chosen(r)
	for _, s := range r.Servers {
		forbidden := forbidden(r.Limits, q, s, working)
		if forbidden == plan.Stays {
			forbidden = plan.QueuesPerServer
		}
		rule = max(rule, forbidden)
	}
	return rule
}

// forbidden returns the first rule in rank by which a server must not have a queue, whatever the others have.
func forbidden(limits plan.Limits, q plan.Queue, s plan.Server, working []plan.Server) plan.Rule {
	switch {
	case !s.Eligible:
		return plan.Ineligible
	case !limits.Require.Matches(s):
		return plan.Require
	case !q.Pin.Matches(s):
		return plan.Pin
	case slices.Contains(s.HungQueues, q.ID):
		return plan.Hung
	case !owns(working, q, s.UUID):
		return plan.Standby
	}
	return plan.Stays
}

// owns reports whether a server that gets queues may get this one.
func owns(working []plan.Server, q plan.Queue, uuid string) bool {
	return slices.ContainsFunc(working, func(s plan.Server) bool {
		return s.UUID == uuid && q.Pin.Matches(s) && !slices.Contains(s.HungQueues, q.ID)
	})
}

// chosen returns the servers that get queues (P12).
func chosen(r *Roster) (list []plan.Server) {
	l, owned := r.Limits, map[string]int{}
	for _, q := range r.Queues {
		if !q.Removing {
			owned[q.Owner]++
		}
	}
	able, prefers := ableOf(r)
	weight := func(s plan.Server) int {
		if prefers && !l.Prefer.Matches(s) {
			return 0
		}
		return s.Weight
	}
	slices.SortFunc(able, func(a, b plan.Server) int {
		return cmp.Or(weight(b)-weight(a), owned[b.UUID]-owned[a.UUID], a.Elsewhere-b.Elsewhere,
			a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
	})
	hosts := map[string]int{}
	room := func(n, limit int) bool { return limit == 0 || n < limit }
	for _, s := range able {
		if room(len(list), l.Servers) && room(len(list), l.InFlight) && room(hosts[s.Host], l.ServersPerHost) {
			list = append(list, s)
			hosts[s.Host]++
		}
	}
	return list
}

// ableOf returns the servers that may get queues by state and require, and whether one that has a weight has the preferred labels.
func ableOf(r *Roster) (able []plan.Server, preferred bool) {
	for _, s := range r.Servers {
		if s.Eligible && r.Limits.Require.Matches(s) {
			able = append(able, s)
			preferred = preferred || s.Weight > 0 && r.Limits.Prefer.Matches(s)
		}
	}
	return able, preferred
}

// end is a roster after all moves of a plan.
type end struct {
	roster     *Roster
	changes    []plan.Change
	servers    []plan.Server // those that get queues
	owned      map[string]int
	load       map[string]float64
	had        map[string]bool // the servers that had queues before, with what they had requested
	weights    map[string]int
	preferred  bool // a server with a weight has the preferred labels
	restricted bool // some server must not get some queue
}

func newEnd(r *Roster, changes []plan.Change, servers []plan.Server) end {
	e := end{
		roster: r, changes: changes, servers: servers, owned: map[string]int{}, load: map[string]float64{},
		had: map[string]bool{}, weights: map[string]int{},
	}
	_, e.preferred = ableOf(r)
	sum := 0
	for _, s := range servers {
		e.weights[s.UUID] = 0
		if !e.preferred || r.Limits.Prefer.Matches(s) {
			e.weights[s.UUID] = s.Weight
		}
		sum += e.weights[s.UUID]
	}
	for _, s := range servers {
		if sum == 0 {
			e.weights[s.UUID] = 1
		}
	}
	goes, owners := map[string]string{}, map[string]string{}
	for _, c := range changes {
		goes[c.QueueID], owners[c.QueueID] = cmp.Or(c.Requester, c.Owner), c.Owner
	}
	for _, q := range r.Queues {
		if q.Removing {
			continue
		}
		owner, moves := goes[q.ID]
		if !moves {
			owner = cmp.Or(q.Requester, q.Owner)
		}
		e.owned[owner]++
		has := q.Owner
		if changed, ok := owners[q.ID]; ok {
			has = changed
		}
		if has == q.Owner && q.Owner != "" && owns(servers, q, q.Requester) {
			has = q.Requester
		}
		e.had[has] = e.had[has] || owns(servers, q, has)
		if r.Limits.Loads != nil {
			e.load[owner] += r.Limits.Loads.Of[q.ID]
		}
		for _, s := range servers {
			e.restricted = e.restricted || !q.Pin.Matches(s) || slices.Contains(s.HungQueues, q.ID)
		}
	}
	return e
}

// broken does what Broken does for the rules from spread on.
func (e end) broken(id, from, to string) plan.Rule {
	a, b := e.server(from), e.server(to)
	spread := e.roster.Limits.Spread
	zoneA, zoneB := e.ofZone(a), e.ofZone(b)
	apart := spread != "" && zoneOf(a, spread) != zoneOf(b, spread)
	switch {
	case e.roster.Limits.Loads != nil:
		return e.brokenByLoad(id, a, b)
	case e.restricted:
		if e.weights[from] > 0 && apart {
			if c := worse(e.sum(zoneA), e.sum(zoneB), e.weight(zoneA), e.weight(zoneB)); c != 0 {
				return ruleIf(c > 0, plan.Spread)
			}
		}
		if c := worse(e.owned[from], e.owned[to], e.weights[from], e.weights[to]); c != 0 {
			return ruleIf(c > 0, plan.Balance)
		}
	default:
		shares := e.shares()
		one := big.NewRat(1, 1)
		off := func(n int, servers []plan.Server) bool { // by one or more from the exact share
			d := big.NewRat(int64(n), 1)
			for _, s := range servers {
				d.Sub(d, shares[s.UUID])
			}
			return d.Abs(d).Cmp(one) >= 0
		}
		if apart && (off(e.sum(zoneA)+1, zoneA) || off(e.sum(zoneB)-1, zoneB)) {
			return plan.Spread
		}
		if off(e.owned[from]+1, []plan.Server{a}) || off(e.owned[to]-1, []plan.Server{b}) {
			return plan.Balance
		}
	}
	return ruleIf(worse(a.Elsewhere+e.owned[from], b.Elsewhere+e.owned[to], e.weights[from], e.weights[to]) > 0, plan.Totals)
}

func ruleIf(breaks bool, rule plan.Rule) plan.Rule {
	if breaks {
		return rule
	}
	return plan.Stays
}

// brokenByLoad does what broken does for a plan that evens loads.
func (e end) brokenByLoad(id string, a, b plan.Server) plan.Rule {
	spread, zone := e.roster.Limits.Spread, e.ofZone(a)
	queues := 0
	for _, n := range e.owned {
		queues += n
	}
	apart := spread != "" && zoneOf(a, spread) != zoneOf(b, spread)
	if apart && e.sum(zone)*e.weight(e.servers) >= queues*e.weight(zone) {
		return plan.Spread
	}
	if b.New || !e.had[b.UUID] {
		return plan.Idle
	}
	load := e.roster.Limits.Loads.Of[id]
	busy := func(s plan.Server, more float64) float64 {
		return (e.load[s.UUID] + more) / float64(max(1, e.weights[s.UUID]))
	}
	several := len(e.changes) > 1 || e.roster.Queue(id).Requester == b.UUID // a later move can make up for an earlier one
	return ruleIf(several || busy(a, load) > busy(b, 0), plan.Load)
}

// worse returns 1 if the sum of the squares of two servers or zones, each divided by the weight, becomes larger when
// one queue goes back from the second one to the first one. It returns -1 if the sum becomes smaller.
func worse(from, to, weightFrom, weightTo int) int {
	square := func(n, weight int) *big.Rat { return big.NewRat(int64(n)*int64(n), int64(max(1, weight))) }
	is := new(big.Rat).Add(square(from, weightFrom), square(to, weightTo))
	becomes := new(big.Rat).Add(square(from+1, weightFrom), square(to-1, weightTo))
	return becomes.Cmp(is)
}

// shares returns the exact shares of the servers: in proportion to their weights, but at most the limit. Servers
// without a weight divide what is left.
func (e end) shares() map[string]*big.Rat {
	shares, left := map[string]*big.Rat{}, big.NewRat(0, 1)
	for _, s := range e.servers {
		shares[s.UUID] = big.NewRat(0, 1)
	}
	for uuid, n := range e.owned {
		if s := e.server(uuid); s.UUID != "" || uuid == "" {
			left.Add(left, big.NewRat(int64(n), 1))
		}
	}
	divide := func(weights map[string]int) {
		limit := e.roster.Limits.QueuesPerServer
		for open := weights; len(open) > 0; {
			sum, full := 0, false
			for _, w := range open {
				sum += w
			}
			for uuid, w := range open {
				part := new(big.Rat).Mul(left, big.NewRat(int64(w), int64(sum)))
				if limit == 0 || part.Cmp(big.NewRat(int64(limit), 1)) <= 0 {
					shares[uuid] = part
				} else {
					shares[uuid], full = big.NewRat(int64(limit), 1), true
				}
			}
			if !full {
				left = big.NewRat(0, 1)
				return
			}
			rest := map[string]int{}
			for uuid, w := range open {
				if shares[uuid].Cmp(big.NewRat(int64(limit), 1)) == 0 {
					left.Sub(left, shares[uuid])
				} else {
					rest[uuid] = w
				}
			}
			open = rest
		}
	}
	heavy, light := map[string]int{}, map[string]int{}
	for uuid, w := range e.weights {
		if w > 0 {
			heavy[uuid] = w
		} else {
			light[uuid] = 1
		}
	}
	divide(heavy)
	divide(light)
	return shares
}

func (e end) server(uuid string) plan.Server {
	for _, s := range e.servers {
		if s.UUID == uuid {
			return s
		}
	}
	return plan.Server{}
}

// ofZone returns the servers of a server's zone.
func (e end) ofZone(s plan.Server) []plan.Server {
	label := e.roster.Limits.Spread
	return slices.DeleteFunc(slices.Clone(e.servers), func(o plan.Server) bool { return zoneOf(o, label) != zoneOf(s, label) })
}

func (e end) sum(servers []plan.Server) (queues int) {
	for _, s := range servers {
		queues += e.owned[s.UUID]
	}
	return queues
}

func (e end) weight(servers []plan.Server) (weight int) {
	for _, s := range servers {
		weight += e.weights[s.UUID]
	}
	return weight
}
