package slots

import (
	"iter"
	"time"
)

// Range iterates over the slots from one instant on and before another one, the newest first if backwards.
func Range(s Schedule, from, to time.Time, backwards bool) iter.Seq[time.Time] {
	at, step := s.Next(from.Add(-1)), s.Next
	if backwards {
		at, step = s.Prev(to.Add(-1)), func(at time.Time) time.Time { return s.Prev(at.Add(-1)) }
	}
	return func(yield func(time.Time) bool) {
		for at := at; !at.IsZero() && !at.Before(from) && at.Before(to); at = step(at) {
			if !yield(at) {
				return
			}
		}
	}
}
