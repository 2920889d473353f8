package plan

import "fmt"

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
	var pinned, hanging bool
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
		}
	}
	switch {
	case able == 0:
		return "no worker may own queues"
	case hanging:
		return "calls of former sessions hang"
	case pinned:
		return "pin: " + q.Pin.String()
	}
	return "require: " + limits.Require.String()
}
