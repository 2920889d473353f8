package manager

// lockFree reports whether the process of a server has ended, so that nobody holds its lock (S15). A stopped process still
// holds it, and so does one that has begun another session.
func (w *world) lockFree(s serverRow) bool {
	p := &w.procs[s.proc]
	return p.state == away || s.session <= p.endedSessions || w.without.lock && p.paused
}

// prove is ExpireEnded, for one server: another process of its host, or a witness without servers, expires it.
func (w *world) prove(n int) {
	s := w.db.servers[n]
	if s.session == w.procs[s.proc].sessions {
		w.checkExpiry(s.uuid)
	}
	w.db.toHistory(s)
	w.db.servers = append(w.db.servers[:n:n], w.db.servers[n+1:]...)
	w.db.membership++
	w.assign("witness", false, false)
}

// proofs appends the proofs that are possible.
func (w *world) proofs(steps []step) []step {
	if !w.witness || w.outage {
		return steps
	}
	for i, s := range w.db.servers {
		if w.lockFree(s) {
			steps = append(steps, step{kind: stepProve, n: i})
		}
	}
	return steps
}
