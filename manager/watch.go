package manager

import "time"

// watch decides whether a server has observed the roster for long enough to expire another server (S7): for a whole
// judge_dead_interval, without a gap in its own heartbeats, and by a clock of the database that ran at the same speed as
// its own.
type watch struct {
	judgeDead, margin time.Duration

	since     time.Time // by the database's clock; zero: not watching
	lastDB    time.Time
	lastLocal time.Time
}

// begin starts the watch when the server registers. Other servers, or an earlier session, may have watched since before.
func (w *watch) begin(since, db, local time.Time) {
	w.since, w.lastDB, w.lastLocal = since, db, local
}

// observe notes a heartbeat's reply. A gap, or a clock that was set, restarts the watch.
func (w *watch) observe(db, local time.Time) {
	passed := db.Sub(w.lastDB)
	off := passed - local.Sub(w.lastLocal)
	if w.since.IsZero() || passed >= w.judgeDead/2 || off.Abs() > w.margin/2 {
		w.since = db
	}
	w.lastDB, w.lastLocal = db, local
}

// watched returns for how long the server has watched.
func (w *watch) watched() time.Duration { return w.lastDB.Sub(w.since) }

func (w *watch) mayExpire() bool { return !w.since.IsZero() && w.watched() >= w.judgeDead }
