package center

import (
	"cmp"
	"slices"
	"time"
)

// PlanQueue is a queue as the planner sees it. An empty Cur or Req is a NULL of the table.
type PlanQueue struct {
	ID    string
	Cur   string // cur_server: the owner
	Req   string // req_server: who is to have it next
	Epoch int64
	// Removing says that the queue shall go: it is not dealt any more, nor counted in anybody's quota. A
	// living owner keeps it until it has drained it, without one it is nobody's.
	Removing bool
}

// PlanServer is a server that is alive. One that is not eligible (paused or draining) keeps
// its queues until an eligible one can take them, and gets none.
type PlanServer struct {
	UUID         string
	RegisterTime time.Time
	Eligible     bool
}

// Change is what the planner wants written to one row, guarded by the row's old owner and
// epoch (L4). A change of owner adds one to the epoch; a change of request does not.
type Change struct {
	QueueID  string
	OldCur   string
	OldEpoch int64
	Cur      string
	Req      string
}

// Regrants reports whether the change gives the queue another owner, or takes its owner away.
func (c Change) Regrants() bool { return c.Cur != c.OldCur }

// Plan deals the queues over the living servers and returns only the rows to change, in
// natural order of their ids (rules P1-P8 of the package comment). limit is the most that one
// server may own, 0 for no limit. It is pure: no I/O, no clock, and the order of its input
// does not matter. Applying its result and planning again changes nothing.
func Plan(queues []PlanQueue, servers []PlanServer, limit int) []Change {
	t := newTable(queues, servers, limit)
	t.grant()
	t.request() // deals once more over the granted (P6): only so is the result stable
	t.clear()
	return t.changes()
}

// table is one planning: rows in natural order, eligible servers in the order of their age.
type table struct {
	was      []PlanQueue // as read
	rows     []PlanQueue
	removing []PlanQueue // those that are not dealt
	eligible []string
	seat     map[string]int // position of an eligible server
	living   map[string]bool
	limit    int
}

func newTable(queues []PlanQueue, servers []PlanServer, limit int) *table {
	t := &table{
		was:    inOrder(queues),
		seat:   make(map[string]int, len(servers)),
		living: make(map[string]bool, len(servers)),
		limit:  limit,
	}
	t.rows = make([]PlanQueue, 0, len(queues))
	for _, q := range t.was {
		if q.Removing {
			t.removing = append(t.removing, q)
		} else {
			t.rows = append(t.rows, q)
		}
	}
	byAge := slices.Clone(servers)
	slices.SortFunc(byAge, func(a, b PlanServer) int {
		return cmp.Or(a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
	})
	for _, s := range byAge {
		t.living[s.UUID] = true
		if s.Eligible {
			t.seat[s.UUID] = len(t.eligible)
			t.eligible = append(t.eligible, s.UUID)
		}
	}
	return t
}

// grant gives each queue without a living owner to the server it is dealt to, or to nobody.
// The living are never robbed: their queues do not change hands here (P5).
func (t *table) grant() {
	for i := range t.rows {
		if !t.living[t.rows[i].Cur] {
			t.rows[i].Cur = ""
		}
	}
	for i, to := range t.deal() {
		if t.rows[i].Cur == "" {
			t.rows[i].Cur = to
		}
	}
}

// request asks for the queues that should be elsewhere, and withdraws every other request.
func (t *table) request() {
	for i, to := range t.deal() {
		row := &t.rows[i]
		row.Req = ""
		if to != row.Cur && row.Cur != "" {
			row.Req = to
		}
	}
}

// clear puts the queues that shall go beside the dealt ones: asked for by nobody, and without an owner
// unless it lives.
func (t *table) clear() {
	for _, row := range t.removing {
		row.Req = ""
		if !t.living[row.Cur] {
			row.Cur = ""
		}
		t.rows = append(t.rows, row)
	}
	if len(t.removing) > 0 {
		t.rows = inOrder(t.rows)
	}
}

// deal says for each row which eligible server should have it; "" means that nobody may take
// it, so that a living owner keeps it, over its limit or not eligible as it may be (P7).
func (t *table) deal() []string {
	to := make([]string, len(t.rows))
	n := len(t.eligible)
	if n == 0 {
		return to
	}
	seats := t.seats()
	room := t.quotas(seats)
	t.keep(to, room, seats)
	free := newRing(room)
	take := func(i int) {
		if s := free.from(i % n); s >= 0 {
			to[i] = t.eligible[s]
			free.take(s)
		}
	}
	// The ownerless come first: where the limits leave room for some only, a queue that
	// nobody serves matters more than one whose owner has too many.
	for i, row := range t.rows {
		if to[i] == "" && row.Cur == "" {
			take(i)
		}
	}
	for i, row := range t.rows {
		if to[i] == "" && row.Cur != "" {
			take(i)
		}
	}
	return to
}

// quotas says how many queues each eligible server should have: the floor or the ceiling of
// the average, within the limit. The ceilings go to those that hold most, ties to the older (P2).
func (t *table) quotas(seats []int) []int {
	n := len(t.eligible)
	held := make([]int, n)
	for _, s := range seats {
		if s >= 0 {
			held[s]++
		}
	}
	quotas := make([]int, n)
	floor, ceilings := len(t.rows)/n, len(t.rows)%n
	if t.limit > 0 && floor >= t.limit {
		floor, ceilings = t.limit, 0
	}
	most := make([]int, n)
	for s := range quotas {
		quotas[s], most[s] = floor, s
	}
	slices.SortStableFunc(most, func(a, b int) int { return cmp.Compare(held[b], held[a]) })
	for _, s := range most[:ceilings] {
		quotas[s]++
	}
	return quotas
}

// keep lets each server keep its queues up to its quota, those at its own round-robin position
// first, then by index (P3), and leaves in room what it may still take.
func (t *table) keep(to []string, room, seats []int) {
	n := len(t.eligible)
	for _, ownPosition := range []bool{true, false} {
		for i, s := range seats {
			if s >= 0 && to[i] == "" && room[s] > 0 && (i%n == s) == ownPosition {
				to[i] = t.eligible[s]
				room[s]--
			}
		}
	}
}

// seats returns the owner's position for each row, -1 where nobody eligible owns it.
func (t *table) seats() []int {
	seats := make([]int, len(t.rows))
	for i, row := range t.rows {
		seats[i] = -1
		if s, ok := t.seat[row.Cur]; ok {
			seats[i] = s
		}
	}
	return seats
}

// changes lists what differs from the rows as they were read. Both are in natural order.
func (t *table) changes() []Change {
	var changes []Change
	for i, row := range t.rows {
		if old := t.was[i]; old.Cur != row.Cur || old.Req != row.Req {
			changes = append(changes, Change{row.ID, old.Cur, old.Epoch, row.Cur, row.Req})
		}
	}
	return changes
}

// ring finds the next server with room, going round. It skips the full ones by union-find, so
// that dealing stays near linear with thousands of servers.
type ring struct {
	room []int
	next []int // next[s] is s, or a server further on once s is full
	left int   // servers with room
}

func newRing(room []int) *ring {
	r := &ring{room: room, next: make([]int, len(room))}
	for s := range room {
		r.next[s] = s
	}
	for s, n := range room {
		if n > 0 {
			r.left++
		} else {
			r.next[s] = (s + 1) % len(room)
		}
	}
	return r
}

// from returns the first server with room at or after s, or -1.
func (r *ring) from(s int) int {
	if r.left == 0 {
		return -1
	}
	for r.next[s] != s {
		r.next[s] = r.next[r.next[s]]
		s = r.next[s]
	}
	return s
}

func (r *ring) take(s int) {
	r.room[s]--
	if r.room[s] == 0 {
		r.left--
		r.next[s] = (s + 1) % len(r.room)
	}
}
