package processor

import "slices"

// readyLanes are the lanes whose page has unstarted items that an executor may take. Each lane gets one batch in turn.
// The scheduler's lock guards it.
type readyLanes struct {
	lanes []*lane
	turn  int // index of the lane that gives the next batch
}

// next returns the lane that gives the next batch, or nil.
func (r *readyLanes) next() *lane {
	if len(r.lanes) == 0 {
		return nil
	}
	r.turn %= len(r.lanes)
	return r.lanes[r.turn]
}

// advance ends the turn of the lane that next has returned.
func (r *readyLanes) advance() { r.turn++ }

func (r *readyLanes) add(l *lane) { r.lanes = append(r.lanes, l) }

func (r *readyLanes) remove(l *lane) {
	i := slices.Index(r.lanes, l)
	if i < 0 {
		return
	}
	r.lanes = slices.Delete(r.lanes, i, i+1)
	if i < r.turn {
		r.turn--
	}
}
