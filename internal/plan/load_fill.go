package plan

import (
	"container/heap"
	"sort"
)

// fill gives rows to the servers with a weight that have none or are new, until they do not lack load any more. The
// rows come from the busiest servers. It looks at each of them once, as far as it can: thousands may join at once.
func (b *loadBalancing) fill() {
	rich := b.newDonors(func(s int) bool { // it can give its smallest row, and does not lack load then
		n := len(b.mine[s])
		return n > 0 && b.sums[s]-b.load[b.mine[s][n-1]] >= b.enough(s)
	})
	able := b.newDonors(func(s int) bool { return len(b.mine[s]) > 1 })
	for to, weight := range b.weights {
		if weight == 0 || len(b.mine[to]) > 0 && !b.servers[to].New {
			continue
		}
		if len(b.mine[to]) == 0 && b.enough(to) > 0 && !rich.feed(to, b.spare) && !able.feed(to, b.firstRow) {
			continue
		}
		for fed := true; fed && b.sums[to] < b.enough(to); {
			fed = rich.feed(to, b.spare)
		}
	}
}

// donors are servers that may give rows: a heap with the busiest first. The loads of servers change while they are in
// it, and are noted anew when a server comes first.
type donors struct {
	b    *loadBalancing
	may  func(s int) bool
	list []donor
}

type donor struct {
	server int
	load   float64 // when it was noted
}

func (b *loadBalancing) newDonors(may func(s int) bool) *donors {
	d := &donors{b: b, may: may}
	for s, weight := range b.weights {
		if weight > 0 && may(s) {
			d.list = append(d.list, donor{s, b.sums[s]})
		}
	}
	heap.Init(d)
	return d
}

// next removes the busiest server and returns it, or -1.
func (d *donors) next() int {
	for len(d.list) > 0 {
		s, _ := heap.Pop(d).(donor)
		switch {
		case !d.may(s.server): // for good: no server gets rows and gives some
		case s.load != d.b.sums[s.server]:
			heap.Push(d, donor{s.server, d.b.sums[s.server]})
		default:
			return s.server
		}
	}
	return -1
}

// feed gives a server the row that choose returns for the busiest donor that has one. It reports whether there was one.
func (d *donors) feed(to int, choose func(from, to int) int) (fed bool) {
	var asked []int
	for from := d.next(); from >= 0 && !fed; from = d.next() {
		asked = append(asked, from)
		if row := choose(from, to); row >= 0 && from != to {
			d.b.put(row, to)
			fed = true
			break
		}
	}
	for _, s := range asked {
		heap.Push(d, donor{s, d.b.sums[s]})
	}
	return fed
}

// spare returns the largest row without which the one server does not lack load, and with which the other one does not
// become as busy as the first one was, or -1.
func (b *loadBalancing) spare(from, to int) int {
	mine := b.mine[from]
	small := sort.Search(len(mine), func(i int) bool { return b.sums[from]-b.load[mine[i]] >= b.enough(from) })
	return b.firstThatHelps(mine[small:], from, to)
}

// firstRow does what spare does, though the first server may lack load then: the other one has none at all.
func (b *loadBalancing) firstRow(from, to int) int { return b.firstThatHelps(b.mine[from], from, to) }

// firstThatHelps returns the first of these rows with which the one server does not become as busy as the other was, or
// -1.
func (b *loadBalancing) firstThatHelps(rows []int, from, to int) int {
	for _, row := range rows {
		after := (b.sums[to] + b.load[row]) * float64(b.weights[from])
		if after < b.sums[from]*float64(b.weights[to]) && b.mayGet(row, to) {
			return row
		}
	}
	return -1
}

// mayGet reports whether a server may get a row of another.
func (b *loadBalancing) mayGet(row, s int) bool {
	return b.open(s) && b.zoneOpen(row, b.zoneOf(s)) && !b.bars(row, s)
}

// Len implements heap.Interface.
func (d *donors) Len() int { return len(d.list) }

// Less implements heap.Interface.
func (d *donors) Less(i, j int) bool {
	s, t := d.list[i], d.list[j]
	a, b := s.load*float64(d.b.weights[t.server]), t.load*float64(d.b.weights[s.server])
	return a > b || a == b && s.server < t.server
}

// Swap implements heap.Interface.
func (d *donors) Swap(i, j int) { d.list[i], d.list[j] = d.list[j], d.list[i] }

// Push implements heap.Interface.
func (d *donors) Push(x any) { d.list = append(d.list, x.(donor)) } //nolint:forcetypeassert // heap passes on what it gets

// Pop implements heap.Interface.
func (d *donors) Pop() any {
	last := d.list[len(d.list)-1]
	d.list = d.list[:len(d.list)-1]
	return last
}
