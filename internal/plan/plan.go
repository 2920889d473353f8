package plan

import (
	"slices"
	"time"
)

// Version is the version of the rules by which Plan divides the queues. It rises with each rule on which programs of
// two versions would disagree (P11).
const Version = 1

// Queue is a queue as the planner reads it. An empty Owner or Requester is a NULL in the table.
type Queue struct {
	ID        string
	Owner     string // cur_server
	Requester string // req_server: the server to which the owner hands the queue over
	Epoch     int64
	// Removing marks a queue that is given up for a change (N1, N2, N3). It is not assigned any more and counts in no
	// quota. A live owner keeps it until it has drained it. A dead owner loses it, and no other server gets it.
	Removing bool
	// ReservedFor is the name of the server for which the queue is reserved while it has no owner (P13). Empty means
	// that it is not, or not any more.
	ReservedFor string
	// Pin says which labels a server must have to get the queue (P14). The zero value demands none.
	Pin Selector
}

// Server is a live server. A server that is not eligible (paused or draining) keeps its queues until an eligible
// server can take them, and gets no other.
type Server struct {
	UUID         string
	Host         string
	Name         string // a later server may have the same; empty: none
	Labels       Labels
	RegisterTime time.Time
	Eligible     bool
	// Leaving says that the server is about to leave and reserves its queues for its Name (P13): it is not eligible,
	// and keeps the queues that no other server has requested.
	Leaving bool
	// Weight is the server's part of the queues, from 0 to MaxWeight: in proportion to the weights of the others. A
	// server of weight 0 gets only queues that no server with a weight may get, or has room for. If no eligible server
	// has a weight, all count alike.
	Weight int
	// New says that the server registered a short time ago. It then gets its part of the load at once (P16), also in a
	// plan that repeats one which skipped rows (L5).
	New bool
	// Elsewhere is how many queues of other task types the server's process has. Of two servers that may have the queue
	// that is left over, the one whose process has less of all task types for its weight gets it (P15).
	Elsewhere int
	// HungQueues are the queues that the server must not get, because calls of a former session of its process are
	// still in flight for them (P9).
	HungQueues []string
}

// Change is what a plan writes to one row. The write is a compare-and-set on the old owner and epoch (L4).
type Change struct {
	QueueID  string
	OldOwner string
	OldEpoch int64
	// OldRequester is the server that loses its request with the change, unless it is Requester or Owner.
	OldRequester string
	Owner        string
	Requester    string
	// Rule is why the queue goes to Requester, or without one to Owner, or why no server gets it. Stays means that the
	// change only withdraws a request. Reason says it in words.
	Rule   Rule
	Reason string
}

// ChangesOwner reports whether the change gives the queue another owner, or none. Such a change adds one to the
// epoch. A change of the request alone does not.
func (c Change) ChangesOwner() bool { return c.Owner != c.OldOwner }

// Limits bound what a plan assigns. Zero means no limit.
type Limits struct {
	QueuesPerServer int `db:"max_queues_per_server"` // most queues of one server
	InFlight        int `db:"max_in_flight"`         // at most so many servers get queues, as each needs a call (P10)
	Servers         int `db:"max_servers"`           // most servers that get queues (P12)
	ServersPerHost  int `db:"max_servers_per_host"`  // most servers of one host that do (P12)

	Require Selector `db:"require_labels"` // the labels that a server must have to get queues (P14)
	Prefer  Selector `db:"prefer_labels"`  // the others get queues only if no server has these, or has room (P14)
	Spread  string   `db:"spread_label"`   // label whose values share the queues evenly, such as zone; empty: none (P14)

	Loads *Loads `db:"-"` // even the loads and not the numbers of queues (P16); nil: the numbers
}

// Result is a plan.
type Result struct {
	Changes []Change // the rows to change, in natural order of their ids
	Stands  []Change // the requests that are written already and stay, in the same order
	// Waiting says, by id, why the queues that have no owner after the plan have none. Removed and reserved queues are
	// not among them.
	Waiting map[string]Waiting
	Loads   *LoadResult // of a plan with Limits.Loads
}

// Plan assigns the queues to the live servers by the rules P1 to P16. Of all results that are as even it takes one that
// gives the fewest queues another owner, unless it evens loads (P8). Applying the result and planning again changes
// nothing.
func Plan(queues []Queue, servers []Server, limits Limits) Result {
	p := newPlanning(queues, servers, limits)
	p.assignOwnerless()
	p.request() // assigns once more, over the result of the first pass (P6)
	return p.result()
}

func (p *planning) result() Result {
	b, _ := p.measure.(*loadBalancing)
	result := Result{Waiting: map[string]Waiting{}, Loads: b.result()}
	for _, r := range p.rows {
		if r.owner == none {
			waiting := p.waitsFor(r.Queue)
			r.rule, result.Waiting[r.ID] = waiting.Rule, waiting
		}
		result.add(p, r)
	}
	for _, r := range p.unassigned {
		if r.owner == none && r.Removing {
			r.rule = Removed
		}
		result.add(p, r)
	}
	if len(p.unassigned) > 0 {
		slices.SortFunc(result.Changes, func(a, b Change) int { return CompareIDs(a.QueueID, b.QueueID) })
	}
	return result
}

// add adds the row if it differs from the row as it was read, or if its owner is to hand it over.
func (r *Result) add(p *planning, w row) {
	owner, requester := p.uuid(w.owner), p.uuid(w.requester)
	same := owner == w.Owner && requester == w.Requester
	if same && requester == "" {
		return
	}
	reason := w.rule.reason(p.limits)
	if waiting, ok := r.Waiting[w.ID]; ok {
		reason = waiting.Text
	}
	c := Change{
		QueueID: w.ID, OldOwner: w.Owner, OldEpoch: w.Epoch, OldRequester: w.Requester, Owner: owner, Requester: requester,
		Rule: w.rule, Reason: reason,
	}
	if same {
		r.Stands = append(r.Stands, c)
	} else {
		r.Changes = append(r.Changes, c)
	}
}
