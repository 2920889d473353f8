package cron

import "time"

// Next returns the first instant strictly after the given one at which the expression fires, in the expression's time
// zone. The zero time means that it never fires again.
func (e *Expr) Next(after time.Time) time.Time {
	if !e.timesOfDay {
		return e.nextShown(after)
	}
	w := e.wallAfter(e.zone.reached(after))
	if w.IsZero() {
		return w
	}
	return e.zone.first(w)
}

// Prev returns the last instant at or before the given one at which the expression fires, in the expression's time
// zone. The zero time means that it never fired before.
func (e *Expr) Prev(by time.Time) time.Time {
	if !e.timesOfDay {
		return e.prevShown(by)
	}
	w := e.wallBy(e.zone.reached(by))
	if w.IsZero() {
		return w
	}
	return e.zone.first(w)
}

// nextShown is Next for an expression that names an interval: it fires whenever the clock shows a matching time. It
// searches one stretch after the other. If it has searched a stretch for longer than maxJump, no later jump can show
// a match of that stretch again, and the search continues shortly before the next match.
func (e *Expr) nextShown(after time.Time) time.Time {
	s := e.zone.at(after)
	for from := s.wall(after); ; {
		w := e.wallAfter(from)
		t := s.instant(w)
		switch long := s.end.Sub(s.instant(from)) > maxJump; {
		case !w.IsZero() && s.contains(t):
			return t.In(e.zone.loc)
		case s.end.IsZero(), w.IsZero() && long:
			return time.Time{}
		case long && w.Add(-maxJump).After(s.end):
			t = w.Add(-maxJump)
		default:
			t = s.end
		}
		s = e.zone.at(t)
		from = s.wall(t).Add(-1)
	}
}

// prevShown is Prev for an expression that names an interval.
func (e *Expr) prevShown(by time.Time) time.Time {
	s := e.zone.at(by)
	for from := s.wall(by); ; {
		w := e.wallBy(from)
		t := s.instant(w)
		switch long := s.instant(from).Sub(s.start) > maxJump; {
		case !w.IsZero() && s.contains(t):
			return t.In(e.zone.loc)
		case s.start.IsZero(), w.IsZero() && long:
			return time.Time{}
		case long && w.Add(maxJump).Before(s.start):
			t = w.Add(maxJump)
		default:
			t = s.start.Add(-1)
		}
		s = e.zone.at(t)
		from = s.wall(t)
	}
}

// wallAfter returns the first matching wall time after w, or zero.
func (e *Expr) wallAfter(w time.Time) time.Time {
	if e.lastYear != 0 && w.Year() < e.firstYear {
		w = newYear(e.firstYear).Add(-1)
	}
	limit := w.Year() + calendarYears
	for {
		if w.Year() > limit || e.lastYear != 0 && w.Year() > e.lastYear {
			return time.Time{}
		}
		if w = e.spec.Next(w); w.IsZero() || e.permits(w) {
			return w
		}
		w = midnight(w).Add(24*time.Hour - 1)
	}
}

// wallBy returns the last matching wall time at or before w, or zero.
func (e *Expr) wallBy(w time.Time) time.Time {
	if e.lastYear != 0 && w.Year() > e.lastYear {
		w = newYear(e.lastYear + 1).Add(-1)
	}
	limit := w.Year() - calendarYears
	for {
		if w.Year() < limit || e.lastYear != 0 && w.Year() < e.firstYear {
			return time.Time{}
		}
		// Prev first goes back by a second, to a whole second
		if w = e.spec.Prev(w.Add(time.Second)); w.IsZero() || e.permits(w) {
			return w
		}
		w = midnight(w).Add(-1)
	}
}

func newYear(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
