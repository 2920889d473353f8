package engine

import "time"

// timetable says when an idle lane is selected next. It has the reasons for a select, each with the time by which that
// is to begin, and the reasons against one, each with the time until which the lane rests. due computes the time from
// them, and nobody sets it: so a reason that is added neither overwrites another one nor repairs what that has left,
// and the order in which they are added does not matter. The select clears them. The scheduler's lock guards it.
type timetable struct {
	asks      [askReasons]time.Time  // zero: there is no such reason
	holds     [holdReasons]time.Time // zero: likewise
	began     time.Time              // when the last select began
	idleUntil time.Time              // until when peeks may delay askPoll; zero if the last select did not leave it idle
}

// askReason is a reason for a select.
type askReason int

const (
	askPoll   askReason = iota // the last select has found nothing: the pause is over, or a peek says that there is work
	askRetry                   // an item that backs off may be retried
	askMore                    // the source may have more: a page has ended, or the last select was not a whole look
	askHint                    // a hint says that there is work
	askChange                  // the settings, the records or the state of the outage have changed
	askReasons
)

// holdReason is a reason against a select.
type holdReason int

const (
	holdInterval holdReason = iota // sleep_time_interval between the pages
	holdPause                      // a select or a batch has failed
	holdRetries                    // the last page had only retries: those that become due meanwhile share a page
	holdCursor                     // the item for which the cursor waits backs off
	holdProbe                      // the circuit breaker is open: the lane probes now and then
	holdCrash                      // the queue has ended its processes
	holdRate                       // the rate of the queue has not saved up enough for a page
	holdReasons
)

func (r askReason) String() string {
	return [...]string{"poll", "retry", "more", "hint", "change"}[r]
}

func (r holdReason) String() string {
	return [...]string{"interval", "pause", "retries", "cursor", "probe", "crash", "rate"}[r]
}

// selected clears the reasons when a select begins.
func (t *timetable) selected(now time.Time) { *t = timetable{began: now} }

// polls reports whether nothing asks for the next select but the poll.
func (t *timetable) polls() bool {
	for why, by := range t.asks {
		if askReason(why) != askPoll && !by.IsZero() {
			return false
		}
	}
	return !t.asks[askPoll].IsZero()
}

// ask adds a reason for a select. Of two times of one reason the earlier one counts.
func (t *timetable) ask(why askReason, by time.Time) { t.asks[why] = earlier(t.asks[why], by) }

// hold adds a reason against a select. Of two times of one reason the later one counts.
func (t *timetable) hold(why holdReason, until time.Time) {
	if until.After(t.holds[why]) {
		t.holds[why] = until
	}
}

// relax ends the rest of the lane at the given time at the latest, because its reasons may be gone. Only the rate goes
// on holding it.
func (t *timetable) relax(at time.Time) {
	t.ask(askChange, at)
	for why := range t.holds {
		if holdReason(why) != holdRate && t.holds[why].After(at) {
			t.holds[why] = at
		}
	}
}

// due returns the time of the next select, which is the first time that a reason for it asks for, and not before the
// last time until which a reason holds the lane. It also returns the reason that decides. A lane without a reason is
// due at once.
func (t *timetable) due() (at time.Time, why string) {
	why = "at once"
	for r, by := range t.asks {
		if !by.IsZero() && (at.IsZero() || by.Before(at)) {
			at, why = by, askReason(r).String()
		}
	}
	for r, until := range t.holds {
		if until.After(at) {
			at, why = until, holdReason(r).String()
		}
	}
	return at, why
}

// hint adds a hint. A burst of hints costs a lane a hundred selects a second, however large it is.
func (t *timetable) hint(now time.Time) { t.ask(askHint, later(t.began.Add(hintPause), now)) }

// idle reports whether the lane may be peeked instead of selected: its last select has returned nothing at all, and
// nothing else asks for the next one.
func (t *timetable) idle(now time.Time) bool { return t.polls() && t.idleUntil.After(now) }

// looked delays the poll of an idle lane after a select or a peek that has begun at the given time and found nothing.
// The next peek begins before the poll. If that fails, or cannot begin, what has come since waits for twice the
// interval.
func (t *timetable) looked(began time.Time, interval time.Duration) {
	t.asks[askPoll] = earlier(t.idleUntil, began.Add(2*interval))
}

// earlier returns the earlier of two times, or the one that is not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
