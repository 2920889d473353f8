package manager

import "time"

// processName returns the name of the process that a uuid belongs to.
func processName(uuid string) string { return uuid[:min(1, len(uuid))] }

// reserve is what a server that leaves does with its queues (P13).
func (w *world) reserve(uuid string) {
	s := w.db.server(uuid)
	if w.db.halted || !s.leaving {
		return
	}
	for i := range w.db.rows {
		q := &w.db.rows[i]
		if q.cur != uuid || q.req != "" || q.removing || w.locked(q.id) {
			continue
		}
		w.own(q, "", q.epoch+1, "reserved by "+uuid)
		w.stamp(q)
		q.reservedFor, q.reservedUntil = processName(uuid), w.dbNow().Add(w.returns)
	}
	w.db.plan++
	w.noteReservations()
}

// namesakes counts the servers of a name.
func (w *world) namesakes(name string) (n int) {
	for _, s := range w.db.servers {
		if processName(s.uuid) == name {
			n++
		}
	}
	return n
}

// reservation returns the name for which a queue is reserved, or "".
func (w *world) reservation(q queueRow) string {
	if q.cur != "" || !q.reservedUntil.After(w.dbNow()) {
		return ""
	}
	return q.reservedFor
}

// noteReservations notes when the next reservation ends.
func (w *world) noteReservations() {
	w.db.reservedUntil = time.Time{}
	for _, q := range w.db.rows {
		if end := &w.db.reservedUntil; w.reservation(q) != "" && (end.IsZero() || q.reservedUntil.Before(*end)) {
			*end = q.reservedUntil
		}
	}
}

// checkReserved fails if a server gets a queue that is reserved for another one (P13).
func (w *world) checkReserved(q *queueRow, cur, why string) {
	name := w.reservation(*q)
	if name != "" && cur != "" && processName(cur) != name && w.namesakes(name) == 0 {
		w.fail("queue %s, which waits for %s, goes to %s: %s", q.id, name, cur, why)
	}
}
