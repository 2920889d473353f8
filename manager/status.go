package manager

import (
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// Status is the state of one task type in this process, for metrics and for people.
type Status struct {
	TaskType, OwnSign string
	Server            string        // uuid; empty before the server has joined
	State             string        // joining, serving, fenced or leaving
	LeaseValid        bool          // the server may trust that it owns its queues
	HeartbeatAge      time.Duration // since the start of the last successful heartbeat; 0 before the server has joined
	Queues            int           // number of queues that the server owned at its last read
	MaxInFlight       int           // most calls of Execute in flight, its share of max_in_flight; -1: no limit
	InFlight          int           // number of calls of Execute that it has in flight
	Draining          int           // number of queues that drain
	Empty             int           // number of queues whose last select found nothing to execute
	Work              processor.Stats
	Backlog           BacklogStatus // of the queues that the server owns
	Failing           *FailingError // the dealer's failures, if it does nothing but fail; nil otherwise
	FailingQueues     int           // number of queues whose calls have all failed for ten minutes
	Hears             bool          // hints of other processes reach this one (Center.Wake)

	InRuns bool            // the mode is RUN, and the server has ticked
	Sweeps int             // number of queues that this process sweeps
	Runs   runs.TickResult // of the last tick
}

// Status returns all task types of this process, in the order of the tasks of New. It asks no database, and may be
// called at any time.
func (m *Manager) Status() []Status {
	list := make([]Status, len(m.servers))
	for i, s := range m.servers {
		list[i] = s.status()
		list[i].Hears = m.hearing.on.Load()
	}
	return list
}

// Conditions returns the conditions that this process sees and that last. Each is there once, however many servers of
// the process see it. They need not be about a task type that the process serves. Problems of runs are at most 30 s
// old. Conditions asks no database, and may be called at any time.
func (m *Manager) Conditions() (list []condition.Condition) {
	seen := map[string]bool{}
	for _, s := range m.servers {
		for _, c := range *s.episodes.seen.Load() {
			if !seen[c.Key()] {
				c.Hint = ops.New(s.roster).CommandLines(c.Hint)
				seen[c.Key()], list = true, append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b condition.Condition) int { return strings.Compare(a.Key(), b.Key()) })
	return list
}

func (s *server) status() Status {
	st := Status{TaskType: s.taskType, OwnSign: s.roster.OwnSign(), State: s.state.Load().(string), MaxInFlight: -1}
	session := s.session.Load()
	if session == nil {
		return st
	}
	lease := session.reg.lease
	st.Server, st.LeaseValid, st.HeartbeatAge = session.uuid, lease.valid(), lease.age()
	st.Queues, st.Work = int(session.view.owned.Load()), s.proc.Stats()
	st.InFlight = s.proc.BatchesInFlight()
	st.Failing, st.Backlog = s.failing(st.Work), s.backlog.status()
	for _, h := range s.proc.Queues() {
		if h.Draining {
			st.Draining++
		}
		if !h.EmptySince.IsZero() {
			st.Empty++
		}
		if fails(h.Failing) {
			st.FailingQueues++
		}
	}
	for _, p := range session.parts {
		if p.status != nil {
			p.status(&st)
		}
	}
	return st
}

// Observer receives what happens, for metrics: package manager/metrics has one. Goroutines of the manager call its
// methods concurrently. They must be quick and must not block.
type Observer interface {
	// Heartbeat is called after each heartbeat with its duration and its error.
	Heartbeat(took time.Duration, err error)
	// Statistics is called after each write of the servers' statistics with its duration and its error. It is apart from
	// the heartbeat: an error costs no server its lease.
	Statistics(took time.Duration, err error)
	// Moved is called when this process gets or loses a queue.
	Moved(Move)
	// Planned is called after this process has planned the owners of the queues, has expired servers, or has failed to.
	// It is not called when another process was planning, nor for the plan with which a server leaves.
	Planned(Plan)
	// Swept is called when this process has ended its sweep of a queue.
	Swept(Sweep)
}

// Sweep is the sweep of one queue of a run by this process, which has ended.
type Sweep struct {
	TaskType, OwnSign string
	Result            string        // one of the Sweep constants
	Took              time.Duration // since this process began it
}

// The results of sweeps (mode RUN).
const (
	SweepDone      = "done"      // the queue is drained
	SweepRetry     = "retry"     // it has failed, and will be tried again
	SweepFailed    = "failed"    // it has failed for the last time, and the run fails with it
	SweepSuspended = "suspended" // the queue moves, or the run is paused: another sweep continues it
	SweepLost      = "lost"      // the run is over, or another server owns the queue
)

// Move is a queue that this process got or lost.
type Move struct {
	TaskType, OwnSign string
	Server            string // uuid of the server of this process
	Queue             string // its ID
	Epoch             int64  // under which the server owns the queue, or owned it
	Kind              string // one of the Move constants
	To                string // for MoveReleased, the uuid of the next owner; empty if the server left the roster with it

	// Of MoveReleased, by the local clock: when this process saw that another server requests the queue, when it began to
	// drain the queue, when it saw that nothing is in flight any more, and when the hand-over was committed. A time is
	// zero if there was no such step.
	Requested, Draining, Drained, Released time.Time
}

// DrainedFor returns the time from the beginning of the drain to the release; 0 if the queue was not worked.
func (m Move) DrainedFor() time.Duration {
	if m.Draining.IsZero() {
		return 0
	}
	return m.Released.Sub(m.Draining)
}

// Plan is one attempt of this process to plan the owners of the queues of a task type, in one transaction under the
// lock row.
type Plan struct {
	TaskType, OwnSign string
	Server            string // uuid of the server of this process
	Began, Ended      time.Time
	Err               error // nothing was written

	// Moves are the changes that were written: the number of queues that are given to a server, requested, or taken
	// away, by the name of the rule, such as "balance", for which docs/operating.md has the words.
	Moves map[string]int
	// Expired has for each dead server that was expired the time since its last heartbeat.
	Expired []time.Duration
	// Skipped is the number of queues that are to move while transactions hold their rows.
	Skipped int
}

// The kinds of moves.
const (
	MoveGranted  = "granted"  // the server started to work the queue
	MoveReleased = "released" // it handed the queue over
	MoveRetaken  = "retaken"  // it took the queue back after a release that had no effect
	MoveRemoved  = "removed"  // it gave up a queue that an operator removed
	MoveResized  = "resized"  // it split a drained queue, or gave it up to be merged, or to get another number of queues
	MoveLost     = "lost"     // it lost the queue: it was expired, or an operator forced the hand-over
)
