package manager

import (
	"sync/atomic"
	"time"
)

// lease is the time for which a server may believe that it owns anything: from the start of its
// last successful heartbeat, for the interval after which others judge it dead less a margin (S5).
type lease struct {
	length time.Duration
	start  atomic.Pointer[time.Time]
	alarm  *time.Timer
}

// newLease calls over, in a goroutine of its own, whenever the lease runs out: what is in hand then
// is cancelled at once, whatever statement the server may be waiting for (S6).
func newLease(judgeDead, heartbeat time.Duration, start time.Time, over func()) *lease {
	l := &lease{length: trustFor(judgeDead, heartbeat)}
	l.start.Store(&start)
	l.alarm = time.AfterFunc(l.left(), func() {
		if !l.valid() {
			over()
		}
	})
	return l
}

// trustFor is how long a server trusts itself after the start of a heartbeat.
func trustFor(judgeDead, heartbeat time.Duration) time.Duration {
	return judgeDead - margin(judgeDead, heartbeat)
}

// margin is what a server gives away for the time that a heartbeat is on its way, and for clocks
// that do not run alike.
func margin(judgeDead, heartbeat time.Duration) time.Duration {
	return max(heartbeat, judgeDead*15/100)
}

func (l *lease) renew(start time.Time) {
	l.start.Store(&start)
	l.alarm.Reset(max(0, l.left()))
}

// stop silences the lease: the server has left.
func (l *lease) stop() { l.alarm.Stop() }

// end makes the lease be over: the row is gone.
func (l *lease) end() {
	l.start.Store(new(time.Time))
	l.alarm.Reset(0)
}

// age is how long ago the last successful heartbeat began.
func (l *lease) age() time.Duration { return elapsed(*l.start.Load(), time.Now()) }

// left returns how long the lease still lasts; not above zero when it is over.
func (l *lease) left() time.Duration {
	return l.length - elapsed(*l.start.Load(), time.Now())
}

func (l *lease) valid() bool { return l.left() > 0 }

// elapsed is the larger of the monotonic and the wall clock's difference: the monotonic clock
// stands still while the machine sleeps, the wall clock may be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// watch says whether a server has seen enough of the others to call one dead (S7): it has watched
// for a whole judge_dead_interval without a gap in its own heartbeats, and by a clock of the
// database that ran as its own did.
type watch struct {
	judgeDead, margin time.Duration

	since     time.Time // by the database's clock; zero: not watching
	lastDB    time.Time
	lastLocal time.Time
}

// begin starts the watch when the server registers: others, or an earlier life, may have watched before.
func (w *watch) begin(since, db, local time.Time) {
	w.since, w.lastDB, w.lastLocal = since, db, local
}

// observe notes a pulse.
func (w *watch) observe(db, local time.Time) {
	passed := db.Sub(w.lastDB)
	off := passed - local.Sub(w.lastLocal)
	if w.since.IsZero() || passed >= w.judgeDead/2 || off.Abs() > w.margin/2 {
		w.since = db
	}
	w.lastDB, w.lastLocal = db, local
}

// watched is for how long.
func (w *watch) watched() time.Duration { return w.lastDB.Sub(w.since) }

func (w *watch) mayExpire() bool { return !w.since.IsZero() && w.watched() >= w.judgeDead }
