package manager

import (
	"time"
)

// duty is something that a session does in a job. Duties are in the order of their urgency.
type duty int

const (
	announceDrain duty = iota // say that the server leaves
	saveEnds                  // of sweeps, before their queues are released: the next owners would sweep them again
	closeWindows              // of queues that are empty
	resetCrashes              // the counts of queues that were worked without a crash
	moveQueues                // what decide has found: release, remove, take back, plan again
	readSettings
	clearHung    // queues of former sessions whose calls have ended
	expireEnded  // the servers of processes that have ended on this host
	checkHistory // whether the database has lost history
	rebalance
	raiseShares // of calls in flight that are free
	audit
	claimQueues // for the open run
	tick        // for the runs
	findProblems
	tellAlerts
	saveFailing // which queues fail
	duties      // their number
)

// agenda says from when on each duty is due; a duty with the zero time is not due. An agenda is a value: what a session
// does next follows from it and the time alone, and what a heartbeat's reply asks for follows from the reply and what
// is known. The parts of the session add to it, and the session performs it.
//
// A duty is off the agenda as soon as its job starts. A job that fails puts nothing back: the next heartbeat finds its
// duty due again. A part adds a duty whenever there may be something to do, because only the function that makes the
// job finds out whether there is.
type agenda [duties]time.Time

// add makes duties due at a moment, unless they are due earlier.
func (a *agenda) add(at time.Time, all ...duty) {
	for _, d := range all {
		a[d] = earliest(a[d], at)
	}
}

// next returns the most urgent of the duties that are due at a moment.
func (a agenda) next(now time.Time) (d duty, due bool) {
	for d, at := range a {
		if reached(at, now) {
			return duty(d), true
		}
	}
	return 0, false
}

// begins returns when the next duty is due, or the zero time if there is none.
func (a agenda) begins() time.Time { return earliest(a[:]...) }

// after returns the agenda after a heartbeat's reply, from the version of the settings in force. A duty that an earlier
// reply has asked for is no longer due if this reply does not ask for it.
func (a agenda) after(r heartbeatReply, settings int64, now time.Time) agenda {
	for d, asked := range map[duty]bool{
		readSettings: r.SettingsVersion >= 0 && r.SettingsVersion != settings,
		rebalance:    r.Watch.AnyDead && r.watched > 0 || r.PlanDue,
		audit:        r.AuditDue,
	} {
		if a[d] = now; !asked {
			a[d] = time.Time{}
		}
	}
	return a
}

// earliest returns the earliest of the times that are not zero. It returns the zero time if all are.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// reached reports whether a moment has come, if it is not zero.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
