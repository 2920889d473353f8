package plan

// totals compares what the processes of a roster have of all task types (P15). Each task type is planned alone, and
// decides with them only who gets a queue that is left over: 20 task types of one queue each would all be with the
// process that is the oldest.
//
// Totals decide when no server is to give a queue for another reason. Suppose that A has 20 task types of 7 queues, and
// B joins. With the first plan A would keep 3 of 7, because it has 140 queues of all task types and B none. At the end
// B would have 80, and give 10 back.
type totals struct {
	*roster
	queues int // of all processes
}

// totalsOf returns nil if the totals decide nothing: no process has queues of other task types.
func totalsOf(r *roster) *totals {
	t := &totals{r, len(r.rows)}
	for _, s := range r.working() {
		t.queues += s.Elsewhere
	}
	if t.queues == len(r.rows) {
		return nil
	}
	return t
}

// of returns the total of a server's process, if the server has so many queues.
func (t *totals) of(s, queues int) amount {
	return amount{t.servers[s].Elsewhere + queues, t.weights[s]}
}

// gives reports whether a total is more than the average for its weight. Only such a process gives queues for the
// totals. Otherwise one that has given its part would soon give more to the newest, before others have given theirs.
func (t *totals) gives(a amount) bool {
	return fraction{a.queues, max(1, a.weight)}.compare(fraction{t.queues, t.weight}) > 0
}

// improves reports whether the sum of the squares becomes smaller if one gives a queue to the other.
func (a amount) improves(to amount) bool { return a.gives().compare(to.takes()) > 0 }
