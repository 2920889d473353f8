package demo

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/center"
)

// tell puts events into words, a line for each run of events that differ by their queue only.
func (c *crew) tell(events []event) []string {
	var lines []string
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].sameBut(events[0]) {
			n++
		}
		lines = append(lines, c.words(events[:n]))
		events = events[n:]
	}
	return lines
}

// sameBut tells that a and b differ at most by their queue and its epoch.
func (a event) sameBut(b event) bool {
	return a.queue != "" && b.queue != "" && a.kind == b.kind && a.from == b.from && a.to == b.to && a.reason == b.reason
}

func (c *crew) words(events []event) string {
	e := events[0]
	from, to := c.name(e.from), c.name(e.to)
	var ids []string
	for _, e := range events {
		ids = append(ids, e.queue)
	}
	queues := "queue " + ids[0]
	if len(ids) > 1 {
		queues = "queues " + strings.Join(ids, ", ")
	}
	switch e.kind {
	case center.EventJoined:
		return to + " joined the roster"
	case center.EventLeft:
		return from + " left the roster"
	case center.EventExpired:
		return from + " is judged dead: " + e.reason
	case center.EventRequested:
		return fmt.Sprintf("%s: %s is asked to hand over to %s", queues, from, to)
	case center.EventGranted:
		return fmt.Sprintf("%s granted to %s", queues, to)
	case center.EventReleased:
		return fmt.Sprintf("%s handed over by %s to %s", queues, from, to)
	case center.EventTakenOver:
		return fmt.Sprintf("%s of %s taken over by %s", queues, from, to)
	case center.EventUnassigned:
		return queues + " without owner: nobody is left"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s to %s %s", e.kind, queues, from, to, e.reason))
}
