package manager

import "github.com/dutyrota/rota/internal/plan"

// placements appends the changes of where queues go, if the scene has them.
func (w *world) placements(steps []step) []step {
	for i := range w.procs {
		if !w.placed {
			break
		}
		for n := range w.db.rows {
			steps = append(steps, step{stepPin, i, n})
		}
		if w.db.server(w.procs[i].uuid) != nil {
			steps = append(steps, step{stepRoundUp, i, 0})
		}
	}
	return steps
}

// place pins a queue to a process, or lets any have it again, or does so with the shares that are rounded up first. A plan is
// due then.
func (w *world) place(s step) {
	p := &w.procs[s.proc]
	if s.kind == stepRoundUp {
		row := w.db.server(p.uuid)
		row.roundedUp = !row.roundedUp
	} else if q := &w.db.rows[s.n]; q.pin == "" {
		q.pin = string(rune('a' + p.index))
	} else {
		q.pin = ""
	}
	w.db.membership++
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

// unpin lets any server own each queue again.
func (w *world) unpin() {
	for i := range w.db.rows {
		if w.db.rows[i].pin != "" {
			w.db.rows[i].pin = ""
			w.db.membership++
		}
	}
}
