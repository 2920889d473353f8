package manager

import (
	"sync/atomic"
	"time"
)

// lease is the time during which a server may trust that it owns its queues. It begins with the start of the last
// successful heartbeat and lasts for judge_dead_interval less a margin (S5).
type lease struct {
	term    atomic.Pointer[term]
	expired func()
	alarm   *time.Timer
	stopped atomic.Bool
}

// term is one term of a lease: from a heartbeat to the next one that succeeds.
type term struct {
	intervals
	start time.Time
}

// intervals are the settings that a lease follows.
type intervals struct{ heartbeat, judgeDead time.Duration }

func intervalsOf(s *Settings) intervals { return intervals{s.HeartbeatInterval, s.JudgeDeadInterval} }

// margin returns by how much a lease is shorter than judge_dead_interval (S5). It covers the time that a heartbeat
// takes to arrive, and clocks that run at different speeds.
func (i intervals) margin() time.Duration { return max(i.heartbeat, i.judgeDead*15/100) }

// lease is how long a lease lasts after the start of a heartbeat.
func (i intervals) lease() time.Duration { return i.judgeDead - i.margin() }

// newLease returns a lease that begins at start. It calls expired, in a goroutine of its own, whenever the lease runs
// out, so that what is in flight is cancelled at once, whatever statement the server waits for (S6).
//
// A timer stands still while the machine sleeps. So the alarm looks several times per heartbeat, and what is in flight
// is cancelled soon after the machine wakes up.
func newLease(i intervals, start time.Time, expired func()) *lease {
	l := &lease{expired: expired}
	l.term.Store(&term{i, start})
	l.alarm = time.AfterFunc(time.Hour, l.look)
	l.setAlarm()
	return l
}

// look is what the alarm does.
func (l *lease) look() {
	switch {
	case l.stopped.Load():
	case l.valid():
		l.setAlarm()
	default:
		l.expired() // the next renewal sets the alarm again
	}
}

func (l *lease) setAlarm() { l.alarm.Reset(max(atOnce, min(l.left(), l.intervals().heartbeat/4))) }

// intervals returns the settings that the lease follows at present.
func (l *lease) intervals() intervals { return l.term.Load().intervals }

// renew restarts the lease at the start of a heartbeat that has succeeded.
func (l *lease) renew(i intervals, start time.Time) {
	l.term.Store(&term{i, start})
	l.setAlarm()
}

// stop disarms the alarm, because the server has left.
func (l *lease) stop() {
	l.stopped.Store(true)
	l.alarm.Stop()
}

// end ends the lease at once, after the server's row is gone.
func (l *lease) end() {
	l.term.Store(&term{l.intervals(), time.Time{}})
	l.alarm.Reset(atOnce)
}

// age returns how long ago the last successful heartbeat began.
func (l *lease) age() time.Duration { return elapsed(l.term.Load().start, time.Now()) }

// left returns how long the lease still lasts; zero or less when it has expired.
func (l *lease) left() time.Duration {
	t := l.term.Load()
	return t.lease() - elapsed(t.start, time.Now())
}

func (l *lease) valid() bool { return l.left() > 0 }

// elapsed returns the time from one moment to another, by the monotonic or the wall clock, whichever says more. The
// monotonic clock stands still while the machine sleeps, and the wall clock may be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// watch decides whether a server has watched the roster for long enough to expire another server (S7): for a whole
// judge_dead_interval, without a gap in its own heartbeats, while the database's clock ran at the same speed as its
// own.
type watch struct {
	intervals

	since     time.Time // by the database's clock; zero before the first heartbeat
	lastDB    time.Time
	lastLocal time.Time
}

// begin starts the watch when the server registers. since is earlier than db if the server inherits the watch of
// others.
func (w *watch) begin(since, db, local time.Time) {
	w.since, w.lastDB, w.lastLocal = since, db, local
}

// observe adds a heartbeat's reply to the watch. A gap, or a clock that was set, restarts the watch.
func (w *watch) observe(db, local time.Time) {
	passed := db.Sub(w.lastDB)
	off := passed - local.Sub(w.lastLocal)
	if w.since.IsZero() || passed >= w.judgeDead/2 || off.Abs() > w.margin()/2 {
		w.since = db
	}
	w.lastDB, w.lastLocal = db, local
}

// watched returns how long the server has watched.
func (w *watch) watched() time.Duration { return w.lastDB.Sub(w.since) }

func (w *watch) mayExpire() bool { return !w.since.IsZero() && w.watched() >= w.judgeDead }
