package cron

import "time"

// When the clock is set forward, all times that it skips fire at the first instant after the gap. A start and an end
// that lie in one gap would coincide there, and the window between them would never open. The methods of this file move
// such an end.

// lastEnd returns the last end at or before an instant, or zero.
func (w *Window) lastEnd(by time.Time) time.Time {
	for end := w.end.Prev(by); !end.IsZero(); end = w.end.Prev(end.Add(-1)) {
		if moved := w.movedEnd(end); !moved.IsZero() && !moved.After(by) {
			return moved
		}
	}
	return time.Time{}
}

// nextEnd returns the first end after an instant, or zero.
func (w *Window) nextEnd(after time.Time) time.Time {
	pending := w.movedEnd(w.end.Prev(after))
	for end := w.end.Next(after); !end.IsZero(); end = w.end.Next(end) {
		moved := w.movedEnd(end)
		if moved.IsZero() {
			continue
		}
		if next := w.end.Next(end); !next.IsZero() && next.Before(moved) {
			moved = next
		}
		if pending.After(after) && pending.Before(moved) {
			return pending
		}
		return moved
	}
	if pending.After(after) {
		return pending
	}
	return time.Time{}
}

// movedEnd returns when an end takes effect. That is the end itself, unless a start coincides with it because the clock
// skips one of them or both. The order of their wall times then decides. If the start comes first, the window opens at
// the first instant after the gap and lasts as long as the wall times say. If the end comes first, or another start
// comes before the moved end, no end takes effect, and movedEnd returns zero.
func (w *Window) movedEnd(end time.Time) time.Time {
	if end.IsZero() || !w.start.Prev(end).Equal(end) {
		return end
	}
	from, to := w.end.zone.gapBefore(end)
	if from.Equal(to) {
		return end
	}
	start, stop := w.start.lastWall(from, to), w.end.lastWall(from, to)
	moved := end.Add(stop.Sub(start))
	switch {
	case start.Equal(stop):
		return end
	case start.After(stop):
		return time.Time{}
	case w.start.Prev(end.Add(-1)).After(w.lastEnd(end.Add(-1))): // the window is open before the gap, and ends after it
		return end
	}
	if next := w.start.Next(end); !next.IsZero() && !next.After(moved) {
		return time.Time{}
	}
	return moved
}

// lastWall returns the last matching wall time in a gap, or at its end. An interval does not fire in the gap.
func (e *Expr) lastWall(from, to time.Time) time.Time {
	if w := e.wallBy(to); e.timesOfDay && !w.Before(from) {
		return w
	}
	return to
}

// gapBefore returns the wall times between which the clock jumps forward at an instant. They are equal if it does not.
func (z zone) gapBefore(t time.Time) (from, to time.Time) {
	s := z.at(t)
	to = s.wall(t)
	if !s.start.Equal(t) {
		return to, to
	}
	if from = z.at(t.Add(-1)).wall(t); from.After(to) {
		return to, to
	}
	return from, to
}
