package plan

import "cmp"

// fraction is a number divided by a weight. Products of two of them must fit (MaxWeight).
type fraction struct{ over, under int }

func (f fraction) compare(g fraction) int { return cmp.Compare(f.over*g.under, g.over*f.under) }

// reduced returns the fraction in lowest terms.
func (f fraction) reduced() fraction {
	for a, b := f.over, f.under; ; a, b = b, a%b {
		if b == 0 {
			return fraction{f.over / a, f.under / a}
		}
	}
}

// amount is how many queues a server, a zone or a process has, and its weight.
//
// Servers are even if the sum of the squares of their numbers, each divided by the weight, is as small as can be. With
// the weight 1 and the numbers 5 and 2, the sum is 25 + 4 = 29. If the first server gives a queue to the second one,
// its square falls from 25 to 16, by 9, and the other one rises from 4 to 9, by 5. So the sum falls by 4.
type amount struct{ queues, weight int }

// gives returns by how much the square, divided by the weight, falls if there is one queue less.
func (a amount) gives() fraction { return fraction{2*a.queues - 1, max(1, a.weight)} }

// takes returns by how much the square, divided by the weight, rises if there is one queue more.
func (a amount) takes() fraction { return fraction{2*a.queues + 1, max(1, a.weight)} }

// tally is how many rows the servers that get queues have during a plan, and how many the servers of each zone have.
type tally struct {
	*roster
	has     []amount // of the servers
	zoneHas []amount // of the zones
	takers  *ranking // the server first that should get the next row
	givers  *ranking // the server first that should give one
}

func newTally(r *roster) tally {
	t := tally{roster: r}
	for s, weight := range r.weights {
		t.has = append(t.has, amount{weight: weight})
		if r.zones[s] == len(t.zoneHas) {
			t.zoneHas = append(t.zoneHas, amount{})
		}
		t.zoneHas[r.zones[s]].weight += weight
	}
	return t
}

// count notes that a server has so many more rows.
func (t *tally) count(s, n int) {
	t.has[s].queues += n
	t.zoneHas[t.zones[s]].queues += n
}

// change changes what a server has, and its places among the others.
func (t *tally) change(s int, change func()) {
	t.givers.change(s, func() { t.takers.change(s, change) })
}

// size implements measure.
func (t *tally) size(s int) int { return t.has[s].queues }

// zone returns what the servers of a server's zone have.
func (t *tally) zone(s int) amount { return t.zoneHas[t.zones[s]] }

// beyond returns by how many rows a server exceeds max_queues_per_server, which it may if no other server may get them.
// It is 0 if the server is full, and negative if it has room.
func (t *tally) beyond(s int) int {
	if t.limits.QueuesPerServer == 0 {
		return -1
	}
	return t.has[s].queues - t.limits.QueuesPerServer
}

// hasRoom reports whether a server may get one more row.
func (t *tally) hasRoom(s int) bool { return t.beyond(s) < 0 }
