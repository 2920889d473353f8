package manager

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dutyrota/rota/internal/sqldb"
)

// This file has the transactions that split and merge queues, as internal/roster has them (N3). The rows of all queues
// that a split may bring are there from the beginning, and gone.

// mostSplit: a queue of the beginning becomes at most so many.
const mostSplit = 4

// What an operator may request of queue n/3, with n%3.
const (
	resizeSplit = iota
	resizeMerge
	resizeKeep
)

// makeRoom adds the rows of the queues that splits may bring.
func (w *world) makeRoom() {
	for i := len(w.db.rows); i < mostSplit*w.queues(); i++ {
		w.db.rows = append(w.db.rows, queueRow{id: strconv.Itoa(i), index: i, gone: true})
	}
}

// mayResize makes a scene that has begun one with splits and merges. Two queues are to be split, and an owner
// has just called FinishChange for one.
func (w *world) mayResize() {
	w.resized = true
	w.makeRoom()
	w.resize(&w.db.rows[0], resizeSplit)
	w.resize(&w.db.rows[1], resizeSplit)
	w.awaitJob(callRemove)
}

// queues returns how many queues there are.
func (w *world) queues() (n int) {
	for _, q := range w.db.rows {
		if !q.gone {
			n++
		}
	}
	return n
}

func (w *world) resizing() sqldb.Map[int] {
	all := sqldb.Map[int]{}
	for _, q := range w.db.rows {
		if q.resize > 0 {
			all[q.id] = q.resize
		}
	}
	return all
}

// totals returns the totals of all queues.
func (w *world) totals() []int {
	all := make([]int, len(w.db.rows))
	for i, q := range w.db.rows {
		all[i] = q.total
	}
	return all
}

// readTotal returns the total that a view has for a queue. The mutant has read the totals in a statement before.
func (w *world) readTotal(c *call, q queueRow) int {
	if c.totals == nil {
		return q.total
	}
	return cmp.Or(c.totals[q.index], q.total)
}

// resizes appends what an operator may request, if the scene has splits and merges.
func (w *world) resizes(steps []step) []step {
	if !w.resized {
		return steps
	}
	for i := range w.db.rows {
		q := &w.db.rows[i]
		if q.gone {
			continue
		}
		if total := 2 * q.total; total <= len(w.db.rows) && q.resize != total {
			steps = append(steps, step{kind: stepResize, n: 3*i + resizeSplit})
		}
		if total := q.total / 2; q.total%2 == 0 && q.index < total && q.resize != total && w.mayMerge(w.family(q, total), total) {
			steps = append(steps, step{kind: stepResize, n: 3*i + resizeMerge})
		}
		if q.resize > 0 {
			steps = append(steps, step{kind: stepResize, n: 3*i + resizeKeep})
		}
	}
	return steps
}

// resize is an operator's Resize.
func (w *world) resize(q *queueRow, change int) {
	total := [...]int{resizeSplit: 2 * q.total, resizeMerge: q.total / 2, resizeKeep: q.total}[change]
	asked := w.family(q, total)
	for _, q := range asked {
		for _, other := range w.family(q, cmp.Or(q.resize, q.total)) { // they were to merge with it
			if other.resize == q.resize && other != q {
				other.resize = 0
			}
		}
		q.resize = 0
	}
	if change != resizeKeep {
		for _, q := range asked {
			q.resize = total
		}
	}
	w.queuesResized()
	w.resizeFree()
}

// family returns the queues that share the items of q under a total.
func (w *world) family(q *queueRow, total int) (all []*queueRow) {
	for i := range w.db.rows {
		if other := &w.db.rows[i]; !other.gone && other.index%total == q.index%total {
			all = append(all, other)
		}
	}
	return all
}

// mayMerge reports whether the queues become one queue of the total.
func (w *world) mayMerge(family []*queueRow, total int) bool {
	parts := 0
	for _, q := range family {
		if q.total%total > 0 || q.pin != family[0].pin {
			return false
		}
		parts += len(w.db.rows) / q.total
	}
	return parts == len(w.db.rows)/total
}

// queuesResized is queuesChanged, for another partition version.
func (w *world) queuesResized() {
	w.db.partition++
	w.queuesChanged()
}

// waitsToMerge reports whether no server gets the queue before it has merged.
func (w *world) waitsToMerge(q queueRow) bool {
	return q.resize > 0 && q.resize < q.total && q.cur == ""
}

// finishChange is FinishChange.
func (w *world) finishChange(c *call) {
	q := w.db.row(c.queue)
	resizes, asked := q.resize > 0, q.resize > 0 || q.removing
	if !asked || w.locked(q.id) || q.cur != c.uuid || q.epoch != c.epoch && !w.without.removeEpoch || resizes && w.low(q.epoch) {
		return
	}
	w.checkMove(c.uuid, q)
	c.done = true
	if q.resize > q.total {
		c.given = c.uuid
		w.split(q, "split by "+c.uuid)
		w.assign(c.uuid, false, false)
		return
	}
	w.own(q, "", q.epoch+1, "given up by "+c.uuid)
	q.req = ""
	w.sweep()
	if w.resizeFree() {
		w.assign(c.uuid, false, false)
	}
}

// resizeFree splits and merges the queues without an owner, and reports whether there are any.
func (w *world) resizeFree() (changed bool) {
	for i := range w.db.rows {
		q := &w.db.rows[i]
		if q.resize == 0 {
			continue
		}
		family := w.family(q, q.resize)
		if merges := q.resize < q.total; merges && (!w.mayMerge(family, q.resize) || slices.ContainsFunc(family, func(other *queueRow) bool { return other.resize != q.resize })) {
			q.resize = 0
			w.queuesResized()
			continue
		}
		if slices.ContainsFunc(family, func(q *queueRow) bool { return q.cur != "" }) {
			continue
		}
		changed = true
		if len(family) == 1 {
			w.split(q, "split")
		} else {
			w.merge(family)
		}
	}
	return changed
}

// split splits a queue that no server works.
func (w *world) split(q *queueRow, why string) {
	high, total, epoch := w.highest(), q.resize, q.epoch+1
	if w.without.splitEpoch {
		epoch--
	}
	for i := q.index + q.total; i < total; i += q.total {
		part := &w.db.rows[i]
		part.gone, part.pin, part.busy = false, q.pin, q.busy
		w.size(part, total, high+1, why)
		w.stamp(part)
	}
	w.size(q, total, epoch, why)
	w.stamp(q)
	q.req, q.resize = "", 0
	w.queuesResized()
	w.checkItems()
}

// merge merges queues that have no owner into the first of them.
func (w *world) merge(family []*queueRow) {
	high, total := w.highest(), family[0].resize
	for i, q := range family {
		q.resize, q.reservedFor, q.gone = 0, "", i > 0
	}
	w.size(family[0], total, high+1, "merged")
	w.queuesResized()
	w.checkItems()
}

// highest returns the highest epoch, of the queues that are gone too.
func (w *world) highest() (epoch int64) {
	if w.without.epochHigh {
		return 0
	}
	for _, q := range w.db.rows {
		epoch = max(epoch, q.epoch)
	}
	return epoch
}

// size changes the total of a row. A total belongs to one epoch, as an owner does (N3). No call of the old total is in
// flight at a split, because the owner has drained the queue (H1) and never works the epoch again (H3). So no walk would
// notice that the epoch stays, without this check.
func (w *world) size(q *queueRow, total int, epoch int64, why string) {
	if epoch <= q.top && !w.inLost(q.epoch) {
		w.fail("queue %s of %d, epoch %d, gets the total %d under epoch %d: %s", q.id, q.total, q.epoch, total, epoch, why)
	}
	w.own(q, q.cur, epoch, why)
	q.total = total
}

// checkItems fails if an item belongs to no queue or to several.
func (w *world) checkItems() {
	for item := range len(w.db.rows) {
		n := 0
		for _, q := range w.db.rows {
			if !q.gone && item%q.total == q.index {
				n++
			}
		}
		if n != 1 {
			w.fail("the items with mod(id, %d) = %d belong to %d queues", len(w.db.rows), item, n)
		}
	}
}

// overlaps reports whether two calls may have an item in common. One total divides the other.
func (e execution) overlaps(other execution) bool {
	total := min(e.total, other.total)
	return e.index%total == other.index%total
}

func (e execution) String() string {
	return fmt.Sprintf("queue %s of %d under epoch %d", e.queue, e.total, e.epoch)
}
