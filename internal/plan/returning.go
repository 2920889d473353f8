package plan

import "slices"

// returning knows the servers for which queues are reserved (P13).
type returning struct {
	named  map[string][]Server // the live servers of each name
	absent map[string]bool     // the names of those that have not returned, and for which a queue waits
}

func newReturning(servers []Server) returning {
	r := returning{map[string][]Server{}, map[string]bool{}}
	for _, s := range servers {
		if s.Name != "" {
			r.named[s.Name] = append(r.named[s.Name], s)
		}
	}
	return r
}

// waits reports whether the queue is reserved for a server that is not there. No other server gets the queue.
func (r returning) waits(q Queue) bool {
	if q.Owner != "" || q.ReservedFor == "" || len(r.named[q.ReservedFor]) > 0 {
		return false
	}
	r.absent[q.ReservedFor] = true
	return true
}

// returned returns the server that gets the queue back, or "". Of two live servers of a name, none does.
func (r returning) returned(q Queue) string {
	if list := r.named[q.ReservedFor]; q.Owner == "" && q.ReservedFor != "" && len(list) == 1 && list[0].Eligible && q.Pin.Matches(list[0]) && !slices.Contains(list[0].HungQueues, q.ID) {
		return list[0].UUID
	}
	return ""
}
