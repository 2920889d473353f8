package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
	"github.com/dutyrota/rota/ops"
)

// Violation is a broken invariant. The package comment lists the invariants by number.
type Violation struct {
	Invariant int
	Text      string
}

func (v Violation) String() string { return fmt.Sprintf("invariant %d: %s", v.Invariant, v.Text) }

// slack is how much two readings of the same clock may differ: SQLite stores milliseconds.
const slack = time.Millisecond

// reaction is the time between the permission to start a call and the note of its start. A process that is stopped
// between the two writes the note when it wakes.
const reaction = 20 * time.Millisecond

// Check returns the violations of a history, ordered by invariant. It is pure.
func Check(h History) []Violation {
	c := &checker{History: h}
	c.index()
	c.epochsRise()
	c.fenceHolds()
	c.oneByOne()
	c.plannedMoves()
	c.onceEach()
	c.trustEnds()
	c.healthyLive()
	c.settled()
	c.drainsEnd()
	return c.sorted()
}

type checker struct {
	History
	findings
	grants map[string][]Event // by queue, in commit order: each change of owner
	spans  map[string][]Span  // by queue, in the order in which they began
}

// findings is the violations that a checker has found.
type findings []Violation

func (f *findings) fault(invariant int, format string, args ...any) {
	*f = append(*f, Violation{invariant, fmt.Sprintf(format, args...)})
}

// sorted returns the findings ordered by invariant.
func (f findings) sorted() []Violation {
	slices.SortStableFunc(f, func(a, b Violation) int { return cmp.Compare(a.Invariant, b.Invariant) })
	return f
}

func (c *checker) index() {
	c.grants, c.spans = map[string][]Event{}, map[string][]Span{}
	for _, e := range c.Events {
		switch {
		case changesOwner(e.Kind):
			c.grants[e.Queue] = append(c.grants[e.Queue], e)
		case e.Kind == ops.EventRemoved:
			if grants := c.grants[e.Queue]; len(grants) > 0 {
				c.raise(e, e.Queue, "", grants[len(grants)-1].Epoch+1)
			}
		case e.Kind == ops.EventResized:
			c.raise(e, e.Queue, e.To, e.Epoch)
		case e.Kind == ops.EventRepartitioned:
			for queue, grants := range c.grants {
				c.raise(e, queue, grants[len(grants)-1].To, e.Epoch)
			}
		case raisesAll(e):
			c.raiseAll(e)
		}
	}
	for _, s := range c.Spans {
		c.spans[s.Queue] = append(c.spans[s.Queue], s)
	}
	for _, list := range c.spans {
		slices.SortFunc(list, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	}
}

// raise adds a change that gives a queue a new epoch without an event of the queue.
func (c *checker) raise(e Event, queue, to string, epoch int64) {
	grants := c.grants[queue]
	c.grants[queue] = append(grants, Event{
		At: e.At, Kind: e.Kind, Queue: queue, From: grants[len(grants)-1].To, To: to, Epoch: epoch,
	})
}

// raiseAll adds the changes that give all queues a new epoch because history was lost. A queue whose row a transaction
// holds follows later, and does not move before.
func (c *checker) raiseAll(e Event) {
	for queue, grants := range c.grants {
		if last := grants[len(grants)-1]; last.Epoch < e.Epoch {
			c.raise(e, queue, last.To, e.Epoch)
		}
	}
}

// raisesAll reports whether all queues get an epoch above that of the event, because history was lost.
func raisesAll(e Event) bool { return e.Kind == ops.EventHistory && e.Epoch > 0 }

func changesOwner(kind string) bool {
	switch kind {
	case ops.EventGranted, ops.EventReleased, ops.EventTakenOver, ops.EventUnassigned,
		ops.EventForced, ops.EventRetaken, ops.EventReserved:
		return true
	}
	return false
}

// epochsRise checks 1: each owner follows the previous one, under a higher epoch.
func (c *checker) epochsRise() {
	for queue, grants := range c.grants {
		var before Event
		for _, e := range grants {
			if e.Epoch <= before.Epoch {
				c.fault(1, "queue %s: epoch %d (%s) comes after epoch %d", queue, e.Epoch, e.Kind, before.Epoch)
			}
			// the smaller number of queues did not include it
			regranted := before.Kind == ops.EventRepartitioned && e.From == ""
			if e.From != before.To && !regranted {
				c.fault(1, "queue %s: epoch %d is taken from %q, but epoch %d belongs to %q", queue, e.Epoch, e.From, before.Epoch,
					before.To)
			}
			before = e
		}
	}
}

// fenceHolds checks 2: each effect belongs to the owner of its epoch, and no effect of an older epoch committed after
// an effect of a newer epoch had counted.
func (c *checker) fenceHolds() {
	type grant struct {
		queue string
		epoch int64
	}
	owners, effects := map[grant]string{}, map[string][]Effect{}
	for queue, grants := range c.grants {
		for _, e := range grants {
			owners[grant{queue, e.Epoch}] = e.To
		}
	}
	users, below := map[grant]string{}, c.witnessedBelow()
	for _, e := range c.Effects {
		effects[e.Queue] = append(effects[e.Queue], e)
		g := grant{e.Queue, e.Epoch}
		owner := owners[g]
		if e.Epoch < below {
			owner = cmp.Or(users[g], e.Server)
		}
		users[g] = owner
		if owner != e.Server {
			c.fault(2, "item %d of queue %s took effect under epoch %d of %q by %q", e.Item, e.Queue, e.Epoch, owner, e.Server)
		}
	}
	for queue, list := range effects {
		c.noneLater(queue, list)
	}
}

// witnessedBelow returns the epoch below which the effects have outlived the grants, because the roster has lost
// history and the data databases have not. Such effects are compared with each other: an epoch has one owner there.
func (c *checker) witnessedBelow() (epoch int64) {
	for _, e := range c.Events {
		if c.Witnessed && raisesAll(e) {
			epoch = max(epoch, e.Epoch)
		}
	}
	return epoch
}

func (c *checker) noneLater(queue string, effects []Effect) {
	slices.SortStableFunc(effects, func(a, b Effect) int { return cmp.Compare(a.Epoch, b.Epoch) })
	older := 0
	for i, e := range effects {
		if i > 0 && effects[i-1].Epoch < e.Epoch {
			older = i
		}
		if e.Seen != int64(older) {
			c.fault(2, "queue %s: %d effects of epochs below %d were committed, but item %d, under that epoch, saw %d of them",
				queue, older, e.Epoch, e.Item, e.Seen)
		}
	}
}

// oneByOne checks 3: two processes execute one queue at the same time only if the process with the older epoch was in
// trouble for longer than its trust. Outside the database they do so only if that process stood still: a running
// process stops in time.
func (c *checker) oneByOne() {
	for _, spans := range c.spans {
		for i, a := range spans {
			for _, b := range spans[i+1:] {
				if !b.Begin.Before(a.over()) {
					break
				}
				if a.Process != b.Process {
					c.overlap(a, b)
				}
			}
		}
	}
}

func (c *checker) overlap(older, newer Span) {
	if older.Epoch > newer.Epoch {
		older, newer = newer, older
	}
	switch {
	case older.worked().After(newer.Begin) && newer.worked().After(older.Begin) && !c.excused(older, newer, Pause):
		c.fault(3, "worked at the same time: %s; %s", older, newer)
	case !c.excused(older, newer, Pause) && !c.excused(older, newer, Partition):
		c.fault(3, "executed at the same time: %s; %s", older, newer)
	}
}

// excused reports whether trouble that outlasted the trust hit the older call, and the newer call began after it.
func (c *checker) excused(older, newer Span, kind Kind) bool {
	return older.Epoch < newer.Epoch && slices.ContainsFunc(c.Windows, func(w Window) bool {
		return w.Kind == kind && w.of(older.Process) && c.tooLong(w) &&
			w.From.Before(newer.Begin) && w.From.Before(older.over()) && !older.Begin.After(w.To.Add(reaction))
	})
}

// tooLong reports whether the process outlived its trust in the window, whenever its last heartbeat was. A pause
// counts as soon as it uses up the margin between the trust and the judge_dead_interval, because it may come at the
// end of the trust.
func (c *checker) tooLong(w Window) bool {
	if w.Kind == Pause {
		return w.length() > (c.JudgeDead-c.Trust)/2
	}
	return w.length() > c.Trust
}

// plannedMoves checks 4: the last call of the old owner ends before the release, and the first call of the new owner
// begins after it.
func (c *checker) plannedMoves() {
	for queue, grants := range c.grants {
		for i, e := range grants {
			for _, s := range c.spans[queue] {
				if s.Epoch == e.Epoch && s.Begin.Before(e.At.Add(-slack)) {
					c.fault(4, "began before %s at %s: %s", e.Kind, clock(e.At), s)
				}
				if e.Kind == ops.EventReleased && i > 0 && s.Epoch == grants[i-1].Epoch && s.over().After(e.At.Add(slack)) {
					c.fault(4, "went on after %s at %s: %s", e.Kind, clock(e.At), s)
				}
			}
		}
	}
}

// onceEach checks 5: each item is done, by exactly one effect.
func (c *checker) onceEach() {
	rows := map[int64]int64{}
	for _, e := range c.Effects {
		rows[e.Item]++
	}
	for _, i := range c.Items {
		if !i.Done || i.Effects != 1 || rows[i.ID] != 1 {
			c.fault(5, "item %d: done %t, %d effects, %d in the history", i.ID, i.Done, i.Effects, rows[i.ID])
		}
		delete(rows, i.ID)
	}
	for id, n := range rows {
		c.fault(5, "item %d: %d effects, and there is no such item", id, n)
	}
}

// trustEnds checks 9: no call begins in a partition after the end of the trust, and no call of an expired server
// begins. The exception is a call that a pause interrupted while it began.
func (c *checker) trustEnds() {
	expired := map[string]time.Time{}
	for _, e := range c.Events {
		if e.Kind == ops.EventExpired {
			expired[e.From] = e.At
		}
	}
	for _, s := range c.Spans {
		if at, ok := expired[s.Server]; ok && s.Begin.After(at) && !c.waking(s) {
			c.fault(9, "began after the server had expired at %s: %s", clock(at), s)
		}
		for _, w := range c.Windows {
			if w.Kind == Partition && w.of(s.Process) && s.Begin.After(w.From.Add(c.Trust+reaction)) && s.Begin.Before(w.To) &&
				!c.waking(s) {
				c.fault(9, "began in a partition that had lasted since %s: %s", clock(w.From), s)
			}
		}
	}
}

// waking reports whether the call began while the process stood still, or just after.
func (c *checker) waking(s Span) bool {
	return slices.ContainsFunc(c.Windows, func(w Window) bool {
		return w.Kind == Pause && w.of(s.Process) && !s.Begin.Before(w.From) && !s.Begin.After(w.To.Add(reaction))
	})
}

// healthyLive checks 10: a server expires only if it was in trouble of its own.
func (c *checker) healthyLive() {
	for _, e := range c.Events {
		if e.Kind != ops.EventExpired || slices.Contains(c.Stillborn, e.From) {
			continue
		}
		pid := process(e.From)
		inTrouble := slices.ContainsFunc(c.Windows, func(w Window) bool {
			return w.Process == pid && w.From.Before(e.At) && (w.Kind == Death || w.Kind == Silence && w.To.After(e.At) ||
				w.length() > c.JudgeDead/2 && w.To.After(e.At.Add(-2*c.JudgeDead)))
		})
		if !inTrouble {
			c.fault(10, "%s was expired at %s and nothing was wrong with it", e.From, clock(e.At))
		}
	}
}

// settled checks 20: if no plan is due and no queue has a requester, the servers of all queues are legal and even.
func (c *checker) settled() {
	for _, r := range c.Rosters {
		if !r.Rest || slices.ContainsFunc(r.Plan.Queues, func(q plan.Queue) bool { return q.Requester != "" }) {
			continue
		}
		if why := plantest.Unsettled(r.Plan.Queues, r.Plan.Servers, r.Plan.Limits); why != "" {
			c.fault(20, "at %s: %s", clock(r.At), why)
		}
	}
}

// drainsEnd checks 21: a process that drains a queue begins no call of it, unless it stood still between the
// permission and the call.
func (c *checker) drainsEnd() {
	for _, d := range c.Drains {
		for _, s := range c.spans[d.Queue] {
			if s.Process == d.Process && s.Epoch == d.Epoch && s.Begin.After(d.From.Add(reaction)) &&
				(d.To.IsZero() || s.Begin.Before(d.To)) && !c.waking(s) {
				c.fault(21, "began although the process had drained the queue since %s: %s", clock(d.From), s)
			}
		}
	}
}

// process returns the process id in the uuid of a server (host:pid:random), or -1.
func process(server string) int {
	parts := strings.Split(server, ":")
	if len(parts) < 3 {
		return -1
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return -1
	}
	return pid
}
