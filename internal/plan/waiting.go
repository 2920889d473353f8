package plan

import (
	"fmt"
	"strings"
)

// Waiting returns why the queues that have no owner after the plan have none: by the id, the rule that no server meets, such
// as "pin: host=web1". Queues that are removed or reserved are not among them.
func Waiting(queues []Queue, servers []Server, limits Limits) map[string]string {
	p := newPlanning(queues, servers, limits)
	p.assignOwnerless()
	waiting := map[string]string{}
	for i, row := range p.rows {
		if row.Owner == "" {
			waiting[row.ID] = p.ruleAgainst(i, servers, limits)
		}
	}
	return waiting
}

// ruleAgainst names the rule by which no server may get the queue.
func (p *planning) ruleAgainst(row int, servers []Server, limits Limits) string {
	q := p.rows[row].Queue
	able := 0 // servers that may own queues, by their states
	var pinned, hanging, standsBy bool
	for _, s := range servers {
		if !s.Eligible {
			continue
		}
		able++
		if at, works := p.position[s.UUID]; works && !p.bars(row, at) {
			return fmt.Sprintf("max_queues_per_server: %d", limits.QueuesPerServer)
		} else if works && q.Pin.Matches(s) {
			hanging = true
		} else if works {
			pinned = true
		} else if limits.Require.Matches(s) && q.Pin.Matches(s) {
			standsBy = true
		}
	}
	switch {
	case able == 0:
		return "no worker may own queues"
	case hanging:
		return "calls of former sessions hang"
	case standsBy && q.Pin.all():
		return limits.ofServers()
	case standsBy:
		return limits.ofServers() + ", pin: " + q.Pin.String()
	case pinned:
		return "pin: " + q.Pin.String()
	}
	return "require: " + limits.Require.String()
}

// ofServers names the limits by which servers stand by (P12).
func (l Limits) ofServers() string {
	var list []string
	for _, limit := range []struct {
		name string
		n    int
	}{{"max_servers", l.Servers}, {"max_servers_per_host", l.ServersPerHost}, {"max_in_flight", l.InFlight}} {
		if limit.n > 0 {
			list = append(list, fmt.Sprintf("%s: %d", limit.name, limit.n))
		}
	}
	return strings.Join(list, ", ")
}
