package manager

import "github.com/dutyrota/rota/internal/plan"

// placements appends the changes of where queues go, if the scene has them.
func (w *world) placements(steps []step) []step {
	if !w.placed {
		return steps
	}
	for n := range w.db.rows {
		steps = append(steps, step{stepLoad, 0, n})
	}
	for i := range w.procs {
		for n := range w.db.rows {
			steps = append(steps, step{stepPin, i, n})
		}
		if w.db.server(w.procs[i].uuid) != nil {
			steps = append(steps, step{stepRoundUp, i, 0})
		}
	}
	return steps
}

// place pins a queue to a process, or lets any have it again, or does so with the shares that are rounded up first, or with the
// load of a queue. A plan is due then.
func (w *world) place(s step) {
	p := &w.procs[s.proc]
	switch s.kind {
	case stepRoundUp:
		row := w.db.server(p.uuid)
		row.roundedUp = !row.roundedUp
	case stepLoad:
		w.db.rows[s.n].busy = !w.db.rows[s.n].busy
	default:
		q := &w.db.rows[s.n]
		if q.pin == "" {
			q.pin = string(rune('a' + p.index))
		} else {
			q.pin = ""
		}
	}
	w.db.membership++
}

// loads returns the loads of the queues while one has work. Otherwise the plan goes by the numbers of queues.
func (w *world) loads() *plan.Loads {
	loads := &plan.Loads{Of: map[string]float64{}, Start: plan.LoadStart, Stop: plan.LoadStop, Budget: -1}
	some := false
	for _, q := range w.db.rows {
		loads.Of[q.id] = 0
		if q.busy {
			loads.Of[q.id], some = 1, true
		}
	}
	if !some {
		return nil
	}
	return loads
}

// pin returns which servers may own the queue.
func (w *world) pin(q queueRow) plan.Selector {
	if q.pin == "" {
		return plan.Selector{}
	}
	s, err := plan.ParseSelector("host=" + q.pin)
	if err != nil {
		panic(err)
	}
	return s
}
