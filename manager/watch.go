package manager

import "time"

// watch decides whether a server has watched the roster for long enough to expire another server (S7): for a whole
// judge_dead_interval, without a gap in its own heartbeats, while the database's clock ran at the same speed as its own.
type watch struct {
	judgeDead, margin time.Duration

	since     time.Time // by the database's clock; zero before the first heartbeat
	lastDB    time.Time
	lastLocal time.Time
}

// begin starts the watch when the server registers. since is earlier than db if the server inherits the watch of others.
func (w *watch) begin(since, db, local time.Time) {
	w.since, w.lastDB, w.lastLocal = since, db, local
}

// observe adds a heartbeat's reply to the watch. A gap, or a clock that was set, restarts the watch.
func (w *watch) observe(db, local time.Time) {
	passed := db.Sub(w.lastDB)
	off := passed - local.Sub(w.lastLocal)
	if w.since.IsZero() || passed >= w.judgeDead/2 || off.Abs() > w.margin/2 {
		w.since = db
	}
	w.lastDB, w.lastLocal = db, local
}

// watched returns how long the server has watched.
func (w *watch) watched() time.Duration { return w.lastDB.Sub(w.since) }

func (w *watch) mayExpire() bool { return !w.since.IsZero() && w.watched() >= w.judgeDead }
