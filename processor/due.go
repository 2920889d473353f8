package processor

import (
	"container/heap"
	"time"
)

// dueLanes is a heap of idle lanes, the one that is due first on top. It is what makes the turns fair: a lane that
// is worked without pause comes back behind all that became due meanwhile.
type dueLanes struct {
	lanes []*lane
	turns uint64
}

func (d *dueLanes) first() *lane {
	if len(d.lanes) == 0 {
		return nil
	}
	return d.lanes[0]
}

func (d *dueLanes) add(l *lane) {
	d.turns++
	l.turn = d.turns
	heap.Push(d, l)
}

func (d *dueLanes) remove(l *lane) {
	if l.place >= 0 {
		heap.Remove(d, l.place)
	}
}

// hasten makes every lane due by the given time at the latest.
func (d *dueLanes) hasten(by time.Time) {
	for _, l := range d.lanes {
		if l.at.After(by) {
			l.at = by
		}
	}
	heap.Init(d)
}

func (d *dueLanes) Len() int { return len(d.lanes) }

func (d *dueLanes) Less(i, j int) bool {
	a, b := d.lanes[i], d.lanes[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.turn < b.turn
}

func (d *dueLanes) Swap(i, j int) {
	d.lanes[i], d.lanes[j] = d.lanes[j], d.lanes[i]
	d.lanes[i].place, d.lanes[j].place = i, j
}

// Push is for package heap.
func (d *dueLanes) Push(x any) {
	l := x.(*lane)
	l.place = len(d.lanes)
	d.lanes = append(d.lanes, l)
}

// Pop is for package heap.
func (d *dueLanes) Pop() any {
	last := len(d.lanes) - 1
	l := d.lanes[last]
	d.lanes[last] = nil
	d.lanes = d.lanes[:last]
	l.place = -1
	return l
}
