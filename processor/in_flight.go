package processor

import (
	"math"
	"time"
)

// inFlight bounds the batches in flight by this server's share of max_in_flight (P10). The scheduler's lock guards it.
type inFlight struct {
	batches int
	most    int // of SetMaxInFlight
}

// unbounded is the bound before the first call of SetMaxInFlight.
const unbounded = math.MaxInt

// SetMaxInFlight sets how many batches, which are calls of Execute or Discard, may be in flight at once. Until the
// first call of SetMaxInFlight only ThreadNumber bounds them. If more batches are in flight, they go on, and none
// starts until there are fewer. With 0 the processor selects nothing either, and drops the items that have not started,
// so that another server may execute them.
//
// Drained signals when the batches in flight have come down to the number.
func (p *Processor) SetMaxInFlight(most int) {
	s := p.lock()
	defer s.mu.Unlock()
	if s.inFlight.most == most {
		return
	}
	s.inFlight.most = most
	now := time.Now()
	if most == 0 {
		s.dropReadyLocked(now)
	}
	s.wakeNextLocked(now)
}

// BatchesInFlight returns the number of batches in flight.
func (p *Processor) BatchesInFlight() int {
	s := p.lock()
	defer s.mu.Unlock()
	return s.inFlight.batches
}

// full reports whether no batch may start.
func (f *inFlight) full() bool { return f.batches >= f.most }

// end takes a batch out of flight, and reports whether exactly as many are left as may be in flight.
func (f *inFlight) end() bool {
	f.batches--
	return f.batches == f.most
}

// concurrency returns how many batches of so many executors may be in flight at once, at least 1.
func (f *inFlight) concurrency(executors int) int { return max(1, min(executors, f.most)) }

// roomLocked reports whether another select may begin. There is room for one page per executor, including the pages
// that are being selected. This bounds memory. While a page is ready, it also leaves at least one executor to batches,
// however many empty lanes are due. If fewer batches than executors may be in flight, there is room for one page more
// than batches, so that the next select runs meanwhile.
func (s *scheduler) roomLocked() bool {
	most := s.inFlight.most
	return most > 0 && len(s.ready.lanes)+s.selects <= min(s.settings.ThreadNumber-1, most)
}
