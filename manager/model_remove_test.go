package manager

// What follows are the transactions of queue.go of package center.

// drop is an operator's RemoveQueue.
func (w *world) drop(q *row) {
	q.removing = true
	w.queuesChanged()
	w.sweep()
}

// add is an operator's AddQueue, of a queue that was removed, or is being removed.
func (w *world) add(q *row) {
	if q.gone && w.without.epochHigh {
		q.epoch = 0 // as if nobody had kept in mind how high it was
	}
	if q.gone {
		q.epoch++
	}
	q.removing, q.gone = false, false
	w.queuesChanged()
}

// sweep deletes the rows of queues that are to go and have no owner.
func (w *world) sweep() {
	for i := range w.db.rows {
		if q := &w.db.rows[i]; q.removing && q.cur == "" {
			q.removing, q.gone = false, true
			w.queuesChanged()
		}
	}
}

func (w *world) removing() (ids []string) {
	for _, q := range w.db.rows {
		if q.removing {
			ids = append(ids, q.id)
		}
	}
	return ids
}

func (w *world) queuesChanged() {
	w.db.membership++
	w.db.plan++
}

func (w *world) finishRemoval(c *call) {
	q := w.db.row(c.queue)
	if !q.removing || w.locked(q.id) || q.cur != c.uuid || q.epoch != c.epoch && !w.without.removeEpoch {
		return
	}
	w.checkMove(c.uuid, q)
	w.own(q, "", q.epoch+1, "removed by "+c.uuid)
	q.req, c.done = "", true
	w.sweep()
}
