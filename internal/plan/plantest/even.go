package plantest

import (
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// Unsettled says what is wrong with a roster in which nothing is left to move, or "": a queue whose server may not own
// it although another may, or a chain of moves that makes the servers more even within their rules (P8). It looks for
// chains one queue at a time and shares no code with the planner. It leaves out queues that are removed, or reserved or
// about to be. With loads it looks only at which server may own what, and with a limit of servers only at servers that
// own something.
func Unsettled(queues []plan.Queue, servers []plan.Server, limits plan.Limits) string {
	s := newSettled(queues, servers, limits)
	for _, q := range s.queues {
		if why := s.misplaced(q); why != "" {
			return why
		}
	}
	if limits.Loads != nil {
		return ""
	}
	for i := range s.servers {
		if why := s.uneven(i); why != "" {
			return why
		}
	}
	return ""
}

// settled is a roster without the queues that no plan assigns.
type settled struct {
	queues     []plan.Queue
	servers    []settledServer // those that may own queues
	limit      int
	spread     bool
	restricted bool // some server may not get some queue
}

// settledServer is a server that may own queues, and how many it owns.
type settledServer struct {
	plan.Server
	zone          string
	weight, owned int
}

func newSettled(queues []plan.Queue, servers []plan.Server, limits plan.Limits) *settled {
	s := &settled{limit: limits.QueuesPerServer, spread: limits.Spread != ""}
	owned := map[string]int{}
	for _, q := range queues {
		leaves := q.Requester == "" && slices.ContainsFunc(servers, func(s plan.Server) bool { return s.Leaving && s.UUID == q.Owner })
		if !q.Removing && !leaves && (q.Owner != "" || q.ReservedFor == "") {
			s.queues = append(s.queues, q)
			owned[q.Owner]++
		}
	}
	some := limits.Servers > 0 || limits.ServersPerHost > 0 || limits.InFlight > 0
	preferred, weights := false, 0
	for _, server := range servers {
		if server.Eligible && limits.Require.Matches(server) {
			preferred = preferred || server.Weight > 0 && limits.Prefer.Matches(server)
			if !some || owned[server.UUID] > 0 {
				s.servers = append(s.servers, settledServer{server, zoneOf(server, limits.Spread), server.Weight, owned[server.UUID]})
			}
		}
	}
	for i := range s.servers {
		if preferred && !limits.Prefer.Matches(s.servers[i].Server) {
			s.servers[i].weight = 0
		}
		weights += s.servers[i].weight
	}
	for i := range s.servers {
		if weights == 0 {
			s.servers[i].weight = 1
		}
		s.restricted = s.restricted || slices.ContainsFunc(s.queues, func(q plan.Queue) bool { return !s.may(q, i) })
	}
	return s
}

// zoneOf returns the value of the label that shares the queues.
func zoneOf(s plan.Server, label string) string {
	if label == plan.HostLabel {
		return s.Host
	}
	return s.Labels[label]
}

// may reports whether a server may get a queue.
func (s *settled) may(q plan.Queue, at int) bool {
	return q.Pin.Matches(s.servers[at].Server) && !slices.Contains(s.servers[at].HungQueues, q.ID)
}

func (s *settled) room(at int) bool { return s.limit == 0 || s.servers[at].owned < s.limit }

// misplaced says which server with room could own a queue whose server may not, or that has none.
func (s *settled) misplaced(q plan.Queue) string {
	at := slices.IndexFunc(s.servers, func(server settledServer) bool { return server.UUID == q.Owner })
	if at >= 0 && s.may(q, at) && (s.limit == 0 || s.servers[at].owned <= s.limit) {
		return ""
	}
	for i := range s.servers {
		if s.may(q, i) && s.room(i) {
			return fmt.Sprintf("queue %s is with %q, and %s may own it and has room", q.ID, q.Owner, s.servers[i].UUID)
		}
	}
	return ""
}

// uneven says which chain from a server makes the servers more even.
func (s *settled) uneven(from int) string {
	before := map[int]string{from: s.servers[from].UUID} // the chains by which servers are reached
	for reached := []int{from}; len(reached) > 0; reached = reached[1:] {
		giver := reached[0]
		for _, q := range s.queues {
			if q.Owner != s.servers[giver].UUID {
				continue
			}
			for to, server := range s.servers {
				if before[to] != "" || !s.may(q, to) {
					continue
				}
				before[to] = fmt.Sprintf("%s, queue %s to %s", before[giver], q.ID, server.UUID)
				if s.room(to) && s.helps(from, to) {
					return fmt.Sprintf("the servers become more even by the chain %s (%d and %d queues, weights %d and %d)",
						before[to], s.servers[from].owned, server.owned, s.servers[from].weight, server.weight)
				}
				reached = append(reached, to)
			}
		}
	}
	return ""
}

// helps reports whether the servers become more even if one has one queue less and another one more. While any server
// may get any queue, shares are rounded down or up as moves are the fewest, so that only a whole queue too many counts
// (P2). Otherwise the sum of the squares, each divided by the weight, decides, first of the zones (P14).
func (s *settled) helps(from, to int) bool {
	a, b := s.servers[from], s.servers[to]
	switch {
	case a.weight == 0 && b.weight > 0:
		return true
	case a.weight > 0 && b.weight == 0:
		return false
	case !s.restricted && a.weight > 0:
		return (a.owned-1)*b.weight >= (b.owned+1)*a.weight
	}
	if s.spread && a.zone != b.zone && a.weight > 0 {
		na, wa := s.ofZone(a.zone)
		nb, wb := s.ofZone(b.zone)
		if (2*na-1)*wb != (2*nb+1)*wa {
			return (2*na-1)*wb > (2*nb+1)*wa
		}
	}
	return (2*a.owned-1)*max(1, b.weight) > (2*b.owned+1)*max(1, a.weight)
}

// ofZone returns the queues and the weight of a zone.
func (s *settled) ofZone(zone string) (owned, weight int) {
	for _, server := range s.servers {
		if server.zone == zone {
			owned += server.owned
			weight += server.weight
		}
	}
	return owned, weight
}
