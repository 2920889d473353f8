package processor

import "time"

// failure is what is known when an item has failed, alone or by name. What it means for the item follows from this
// alone.
type failure struct {
	record
	permanent bool // the error is Permanent
	data      bool // the database has refused the data of the item
	began     time.Time
	round     uint64 // when the attempt began; it rises with a success after a failure
	doubted   bool   // when the attempt began, so much had failed that an outage was likely
}

// blamed reports whether the error itself says that the item is at fault.
func (f failure) blamed() bool { return f.permanent || f.data }

// known reports whether the item has failed before and after a success of another one. Such an item is poison, and its
// failures say nothing about an outage.
func (f failure) known() bool { return f.first > 0 && f.first < f.round }

// counts reports whether the failure is an attempt of the item. It is none before the pause of the item is over,
// because attempts count at the pace of the retry policy at most. It is none either while nothing succeeds: an attempt
// that is made while a service is away says nothing about the item (X5).
func (f failure) counts() bool {
	switch {
	case f.discardDue, f.permanent:
		return true
	case f.attempts > 0 && f.retryAt.After(f.began):
		return false
	}
	return !f.doubted || f.data || f.last > 0 && f.last < f.round
}

// passes reports whether a sweep passes the item. Otherwise the item waits for the end of an outage.
func (f failure) passes() bool { return !f.doubted || f.blamed() || f.known() }
