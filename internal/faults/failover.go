package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/engines"
)

// interval is the time from one instant to another.
type interval struct{ from, to time.Time }

// longest returns the longest time in the interval between two of the instants, which are sorted.
func (i interval) longest(instants []time.Time) (longest time.Duration) {
	last := i.from
	for _, at := range instants {
		if at.After(last) && at.Before(i.to) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, i.to.Sub(last))
}

// pauses returns for how long no call was done in an interval: no call at all, and no call of one of the queues.
func pauses(spans []Span, i interval) (all, queue time.Duration) {
	var ends []time.Time
	byQueue := map[string][]time.Time{}
	for _, s := range spans {
		if s.Done {
			ends = append(ends, s.End)
			byQueue[s.Queue] = append(byQueue[s.Queue], s.End)
		}
	}
	for _, list := range byQueue {
		slices.SortFunc(list, time.Time.Compare)
		queue = max(queue, i.longest(list))
	}
	slices.SortFunc(ends, time.Time.Compare)
	return i.longest(ends), queue
}

// tally counts the rows that did not take effect, or more than once, and the epochs of a queue with two owners. It
// takes the epochs from the notes of the processes, so that it also sees those that the database has lost.
func tally(h History) (f engines.Failover) {
	recorded := map[int64]int64{}
	for _, e := range h.Effects {
		recorded[e.Item]++
	}
	for _, i := range h.Items {
		switch n := recorded[i.ID]; {
		case max(n, i.Effects) > 1:
			f.Twice++
		case !i.Done || min(n, i.Effects) < 1:
			f.Lost++
		}
	}
	f.Rows = len(h.Items)
	f.TwoOwners = len(usedTwice(h.Spans, func(Span) bool { return true }))
	return f
}

// usedTwice says which epochs of queues two servers have worked, if one of the calls is late.
func usedTwice(spans []Span, late func(Span) bool) (texts []string) {
	type grant struct {
		queue string
		epoch int64
	}
	users := map[grant][]Span{} // one span of each server, a late one if there is one
	for _, p := range spans {
		g := grant{p.Queue, p.Epoch}
		i := slices.IndexFunc(users[g], func(o Span) bool { return o.Server == p.Server })
		switch {
		case i < 0:
			users[g] = append(users[g], p)
		case late(p):
			users[g][i] = p
		}
	}
	for g, list := range users {
		if len(list) > 1 && slices.ContainsFunc(list, late) {
			texts = append(texts, fmt.Sprintf("epoch %d of queue %s has two owners: %v", g.epoch, g.queue, list))
		}
	}
	slices.Sort(texts)
	return texts
}
