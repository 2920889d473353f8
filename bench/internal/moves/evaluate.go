package moves

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// bin is the width of a step of the plot.
const bin = 500 * time.Millisecond

// findMoves computes the gaps of the moves between two times from the times of the items. Before, the workers start all
// at once; after, they leave, and the remaining ones have more queues than executors. Neither is a gap of a move.
func (c *fleet) findMoves(r *Result, from, end time.Time) {
	c.done = slices.DeleteFunc(c.done, func(s span) bool { return s.begin.After(end) })
	slices.SortFunc(c.done, func(a, b span) int { return a.begin.Compare(b.begin) })
	killed := map[int]time.Time{}
	for _, w := range c.all {
		if !w.killed.IsZero() {
			killed[w.cmd.Process.Pid] = w.killed
		}
	}
	last := map[int]span{}
	for _, s := range c.done {
		before, ok := last[s.queue]
		if ok && before.pid != s.pid && s.begin.After(from) {
			r.moved(before, s, killed[before.pid])
		}
		if !ok || s.end.After(before.end) {
			last[s.queue] = s
		}
	}
}

// findRates computes the rates after findMoves. The restarts happened between from and to, and nothing happened between
// calm and from.
func (c *fleet) findRates(r *Result, calm, from, to time.Time) {
	r.Calm = rate(c.done, calm, from)
	r.Rolling = rate(c.done, from, to)
	r.Worst = math.Inf(1)
	for second := from; !second.Add(time.Second).After(to); second = second.Add(bin) {
		r.Worst = min(r.Worst, rate(c.done, second, second.Add(time.Second)))
	}
	if math.IsInf(r.Worst, 1) { // the restart took less than a second
		r.Worst = r.Rolling
	}
	end := c.done[len(c.done)-1].begin
	for at := calm; at.Add(bin).Before(end); at = at.Add(bin) {
		r.Rates = append(r.Rates, rate(c.done, at, at.Add(bin)))
	}
	r.From, r.To = from.Sub(calm).Seconds(), to.Sub(calm).Seconds()
}

// moved records that a queue moved from one worker to another. killed is the time of the kill of the old worker, or zero.
func (r *Result) moved(old, now span, killed time.Time) {
	gap := now.begin.Sub(old.end)
	switch {
	case gap < 0:
		r.Overlaps = append(r.Overlaps, fmt.Sprintf("queue %d: worker %d began %s before the end of worker %d", now.queue, now.pid, -gap, old.pid))
	case killed.IsZero() || now.begin.Before(killed):
		r.Planned = append(r.Planned, gap)
	default:
		r.Resumed = append(r.Resumed, now.begin.Sub(killed))
	}
}

// rate returns the number of items per second that ended between from and to.
func rate(done []span, from, to time.Time) float64 {
	n := 0
	for _, s := range done {
		if !s.end.Before(from) && s.end.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}
