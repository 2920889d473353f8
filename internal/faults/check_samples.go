package faults

import (
	"slices"
	"time"
)

// Try is a select, or a call of Execute for items, that a process has made.
type Try struct {
	Process int
	At      time.Time // when a select began, or a call ended
	Select  bool
	Done    bool // the call has done its items
}

// The most tries in a second while nothing succeeds, and how long the processor may take to see that.
const (
	sampledSelects = 3
	sampledCalls   = 100
	sampledAfter   = time.Second
)

// CheckTries returns the violations of invariant 22: while nothing succeeds, a process makes few selects and few
// calls in a second. It is pure.
func CheckTries(tries []Try) []Violation {
	var f findings
	processes := map[int][]Try{}
	for _, t := range tries {
		processes[t.Process] = append(processes[t.Process], t)
	}
	for process, list := range processes {
		slices.SortFunc(list, func(a, b Try) int { return a.At.Compare(b.At) })
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(t Try) bool { return t.Done })
			if n < 0 {
				n = len(list)
			}
			f.sampled(process, list[:n])
			list = list[min(n+1, len(list)):]
		}
	}
	return f.sorted()
}

// sampled checks tries of one process of which none has succeeded. The first ones show the processor that something is
// wrong. Those of the first second after them may come at once.
func (f *findings) sampled(process int, failed []Try) {
	first := slices.IndexFunc(failed, func(t Try) bool { return !t.Select })
	if first < 0 {
		return // an idle process
	}
	from, last := failed[first].At.Add(sampledAfter), failed[len(failed)-1].At
	selects, calls := 0, 0
	for _, t := range failed {
		switch {
		case t.At.Before(from):
		case t.Select:
			selects++
		default:
			calls++
		}
	}
	seconds := 1 + max(0, last.Sub(from).Seconds())
	if float64(selects) > sampledSelects*seconds || float64(calls) > sampledCalls*seconds {
		f.fault(22, "process %d made %d selects and %d calls within %.1f s of %s, and none succeeded", process, selects,
			calls, seconds, clock(from))
	}
}
