package plan

// returning knows the servers for which queues are reserved (P13).
type returning struct {
	limits Limits
	named  map[string][]Server // the live servers of each name
	leaves map[string]string   // the names of the servers that are about to leave, by their uuids
	live   map[string]Server   // by their uuids; empty if none leaves
	absent map[string]bool     // the names for which a queue waits: their servers leave, or have not returned
}

func newReturning(servers []Server, limits Limits) returning {
	r := returning{limits, map[string][]Server{}, map[string]string{}, map[string]Server{}, map[string]bool{}}
	for _, s := range servers {
		if s.Leaving {
			r.leaves[s.UUID] = s.Name
		}
		if s.Name != "" {
			r.named[s.Name] = append(r.named[s.Name], s)
		}
	}
	if len(r.leaves) > 0 {
		for _, s := range servers {
			r.live[s.UUID] = s
		}
	}
	return r
}

// requested reports whether a server that may still get the queue has requested it.
func (r returning) requested(q *Queue) bool {
	s, live := r.live[q.Requester]
	return live && r.limits.Forbids(q, s) == Stays
}

// waits reports whether the queue is reserved for a server that is not there, or is about to be. No other server gets
// it.
func (r returning) waits(q *Queue) bool {
	name, leaves := r.leaves[q.Owner]
	switch {
	case leaves && !r.requested(q):
	case q.Owner == "" && q.ReservedFor != "" && len(r.named[q.ReservedFor]) == 0:
		name = q.ReservedFor
	default:
		return false
	}
	r.absent[name] = true
	return true
}

// returned returns the server that gets the queue back, or "". Of two live servers of a name, none does.
func (r returning) returned(q *Queue) string {
	if q.Owner != "" || q.ReservedFor == "" {
		return ""
	}
	if list := r.named[q.ReservedFor]; len(list) == 1 && r.limits.Forbids(q, list[0]) == Stays {
		return list[0].UUID
	}
	return ""
}
