package manager

// This file has the transactions that add and remove queues, as internal/roster has them.

// drop is an operator's RemoveQueue.
func (w *world) drop(q *queueRow) {
	q.removing = true
	w.queuesChanged()
	w.sweep()
}

// add is an operator's AddQueue, for a queue that was removed or is being removed.
func (w *world) add(q *queueRow) {
	if q.gone && w.without.epochHigh {
		q.epoch = 0 // as if its highest epoch were not kept
	}
	if q.gone {
		q.epoch++
	}
	q.removing, q.gone = false, false
	w.queuesChanged()
}

// sweep deletes the rows of queues that are to be removed and have no owner.
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
