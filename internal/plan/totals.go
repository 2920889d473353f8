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

// totalsOf returns nil if the totals decide nothing: if no process has queues of other task types, or if limits choose
// the servers, because one that has given its last queue would lose its place to another.
func totalsOf(r *roster) *totals {
	t := &totals{r, len(r.rows)}
	for _, s := range r.working() {
		t.queues += s.Elsewhere
	}
	if t.queues == len(r.rows) || r.limits.choose() {
		return nil
	}
	return t
}

// of returns the total of a server's process, if the server has so many queues.
func (t *totals) of(s, queues int) amount {
	return amount{t.servers[s].Elsewhere + queues, t.weights[s]}
}

// evens reports whether the totals become more even if a process gives a queue to another: the sum of the squares
// becomes smaller, the first process has more than the average for its weight, and the other one less. Without the
// average, a queue that goes from 17 to 12 while the newest process has 8 would soon go on to that one.
func (t *totals) evens(from, to amount) bool {
	return t.compare(from) > 0 && t.compare(to) < 0 && from.gives().compare(to.takes()) > 0
}

// compare compares a total with the average.
func (t *totals) compare(a amount) int {
	return fraction{a.queues, max(1, a.weight)}.compare(fraction{t.queues, t.weight})
}
