package plan

import (
	"container/heap"
	"time"
)

// clock is virtual time. It stands still until the next event.
type clock struct {
	now    time.Duration
	events events
	count  int // of all events: events of one moment happen in the order in which they were added
}

// event is a call in the future.
type event struct {
	at    time.Duration
	order int
	do    func()
}

func (c *clock) after(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.events, event{c.now + max(0, d), c.count, do})
}

// next lets the next event happen. There always is one, because servers send heartbeats.
func (c *clock) next() {
	e := heap.Pop(&c.events).(event)
	c.now = e.at
	e.do()
}

// pass lets time pass, and the events within it happen.
func (c *clock) pass(d time.Duration) {
	end := c.now + d
	for len(c.events) > 0 && c.events[0].at <= end {
		c.next()
	}
	c.now = end
}

// events implements heap.Interface.
type events []event

// Len implements heap.Interface.
func (e events) Len() int { return len(e) }

// Less implements heap.Interface.
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}

// Swap implements heap.Interface.
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
