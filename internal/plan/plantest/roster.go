// Package plantest keeps a roster in memory: the rows that a plan reads and writes, and the rules by which they change.
// Tests of the planner, the simulation of large rosters and the walks over real databases use it. It knows neither time
// nor concurrency.
package plantest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/plan"
)

// Roster is the rows of a task type. The zero value is an empty roster. After the first call of a method, only methods
// add and remove rows.
type Roster struct {
	Queues  []plan.Queue
	Servers []plan.Server // the live servers, in the order in which they joined

	Limits plan.Limits

	rows, live map[string]int // the positions in Queues and Servers, by id
	joined     int            // the number of servers that have ever joined
}

// Clone returns a copy that shares nothing with the roster.
func (r *Roster) Clone() *Roster {
	return &Roster{Queues: slices.Clone(r.Queues), Servers: slices.Clone(r.Servers), Limits: r.Limits, joined: r.joined}
}

// Numbered returns n queues without owner, with the ids from first on.
func Numbered(first, n int) []plan.Queue {
	queues := make([]plan.Queue, n)
	for i := range queues {
		queues[i].ID = strconv.Itoa(first + i)
	}
	return queues
}

// Join adds eligible servers. Each is younger than all before it.
func (r *Roster) Join(uuids ...string) {
	for _, uuid := range uuids {
		r.joined++
		r.Servers = append(r.Servers, plan.Server{UUID: uuid, RegisterTime: time.Unix(int64(r.joined), 0), Eligible: true})
	}
}

// Drain makes a server ineligible. It keeps its queues until it releases them.
func (r *Roster) Drain(uuid string) {
	if s := r.server(uuid); s != nil {
		s.Eligible = false
	}
}

// Remove removes a server that leaves or expires. The next plan takes its queues.
func (r *Roster) Remove(uuid string) {
	r.live = nil
	r.Servers = slices.DeleteFunc(r.Servers, func(s plan.Server) bool { return s.UUID == uuid })
}

// Plan computes a plan and writes nothing.
func (r *Roster) Plan() []plan.Change { return plan.Plan(r.Queues, r.Servers, r.Limits).Changes }

// Rebalance computes a plan and applies it.
func (r *Roster) Rebalance() error { return r.Apply(r.Plan()) }

// Apply writes the changes of a plan. Like internal/roster, it writes by compare-and-set (L4). It refuses a change that
// takes a queue from a live owner (P5), one that names a server on which a call of the queue hangs (P9), and a request
// that the owner could not carry out.
func (r *Roster) Apply(changes []plan.Change) error {
	for _, c := range changes {
		q := r.Queue(c.QueueID)
		switch {
		case q == nil:
			return fmt.Errorf("apply %+v: no such queue", c)
		case q.Owner != c.OldOwner || q.Epoch != c.OldEpoch:
			return fmt.Errorf("apply %+v: row changed meanwhile: %+v", c, *q)
		case c.ChangesOwner() && r.server(q.Owner) != nil:
			return fmt.Errorf("apply %+v: the old owner is live", c)
		case c.Owner != "" && r.server(c.Owner) == nil:
			return fmt.Errorf("apply %+v: the new owner is dead", c)
		case c.ChangesOwner() && r.hangs(c.QueueID, c.Owner) || r.hangs(c.QueueID, c.Requester):
			return fmt.Errorf("apply %+v: a call of the queue hangs on the new owner or requester", c)
		case c.Requester != "" && (!r.eligible(c.Requester) || c.Requester == c.Owner || c.Owner == ""):
			return fmt.Errorf("apply %+v: the owner cannot hand over to this requester", c)
		}
		setOwner(q, c.Owner)
		q.Requester = c.Requester
	}
	return nil
}

// Release hands a queue that its owner has drained over to the requester (H2). It reports whether it did: whether the
// owner still owned the queue under the epoch and an eligible server requested it.
func (r *Roster) Release(queueID, owner string, epoch int64) bool {
	q := r.Queue(queueID)
	if q == nil || q.Owner != owner || q.Epoch != epoch || !r.eligible(q.Requester) || r.hangs(queueID, q.Requester) {
		return false
	}
	setOwner(q, q.Requester)
	q.Requester = ""
	return true
}

// ReleaseAll hands over every queue that is requested from a server, or from any server if owner is empty.
func (r *Roster) ReleaseAll(owner string) {
	for _, q := range r.Queues {
		if owner == "" || q.Owner == owner {
			r.Release(q.ID, q.Owner, q.Epoch)
		}
	}
}

// Queue returns a row, or nil.
func (r *Roster) Queue(id string) *plan.Queue {
	if len(r.rows) != len(r.Queues) {
		r.rows = make(map[string]int, len(r.Queues))
		for i, q := range r.Queues {
			r.rows[q.ID] = i
		}
	}
	if i, ok := r.rows[id]; ok {
		return &r.Queues[i]
	}
	return nil
}

// server returns a live server, or nil.
func (r *Roster) server(uuid string) *plan.Server {
	if len(r.live) != len(r.Servers) {
		r.live = make(map[string]int, len(r.Servers))
		for i, s := range r.Servers {
			r.live[s.UUID] = i
		}
	}
	if i, ok := r.live[uuid]; ok {
		return &r.Servers[i]
	}
	return nil
}

func (r *Roster) eligible(uuid string) bool {
	s := r.server(uuid)
	return s != nil && s.Eligible
}

// hangs reports whether the server must not get the queue (P9).
func (r *Roster) hangs(queueID, uuid string) bool {
	s := r.server(uuid)
	return s != nil && slices.Contains(s.HungQueues, queueID)
}

// Owned counts the queues by owner. The queues without owner count under "".
func (r *Roster) Owned() map[string]int {
	owned := map[string]int{}
	for _, q := range r.Queues {
		owned[q.Owner]++
	}
	return owned
}

// Rows shows each row as "A", or as "A>B" if B has requested it from A. A queue without owner is "-".
func (r *Roster) Rows() []string {
	rows := make([]string, len(r.Queues))
	for i, q := range r.Queues {
		rows[i] = q.Owner
		if q.Owner == "" {
			rows[i] = "-"
		}
		if q.Requester != "" {
			rows[i] += ">" + q.Requester
		}
	}
	return rows
}

// setOwner adds one to the epoch if the owner changes (P5, H2, H6).
func setOwner(q *plan.Queue, owner string) {
	if q.Owner != owner {
		q.Owner = owner
		q.Epoch++
	}
}
