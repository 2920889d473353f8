package manager

import (
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// Observer is told what happens, for metrics: package manager/metrics is one. Its methods are called from
// goroutines of the manager, several at once; they must be quick and must not block.
type Observer interface {
	// Beat is called after each heartbeat: how long it took, and why it failed.
	Beat(took time.Duration, err error)
	// Moved is called when a queue begins or ceases to be this process's; kind is one of the Move constants.
	// took is what the constant says.
	Moved(taskType, kind string, took time.Duration)
	// Swept is called when a sweep of a queue of a run has ended here; result is one of the Sweep constants, took is
	// since its begin here.
	Swept(taskType, result string, took time.Duration)
}

// How sweeps end (mode RUN).
const (
	SweepDone      = "done"      // the queue is drained
	SweepRetry     = "retry"     // it has failed, and will be tried again
	SweepFailed    = "failed"    // it has failed for good, and with it the run
	SweepSuspended = "suspended" // the queue moves, or the run is paused: it goes on elsewhere or later
	SweepLost      = "lost"      // the run is over, or the queue another's
)

// How queues come and go.
const (
	MoveGranted   = "granted"    // a queue was taken up
	MoveReleased  = "released"   // it was handed over; took is from the drain's begin to its release
	MoveRetaken   = "retaken"    // it was kept, although a release had been sent
	MoveRemoved   = "removed"    // it is no more
	MoveLost      = "lost"       // it was taken away: the server was expired, or forced
	MoveTakenOver = "taken_over" // a dead server was buried by this process; took is for how long it had been silent
)

func (s *server) observe(kind string, took time.Duration) {
	if s.m.cfg.Observer != nil {
		s.m.cfg.Observer.Moved(s.task.name, kind, took)
	}
}

// Status is a task type as this process sees it, for metrics and for people.
type Status struct {
	TaskType, OwnSign string
	Server            string        // uuid; empty before it has joined
	State             string        // joining, serving, fenced or leaving
	Trusted           bool          // whether it may believe that it owns its queues
	BeatAge           time.Duration // since the start of the last successful heartbeat; 0 before it has joined
	Queues            int           // that it owns, as of the last look
	Draining          int           // of them
	Work              processor.Stats

	// In mode RUN: how many queues are being swept here, and what the last tick found.
	InRuns bool
	Sweeps int
	Runs   center.Ticked
}

// Status returns all task types of this process, in the order in which they were given to New. It asks no
// database, and may be called at any time.
func (m *Manager) Status() []Status {
	list := make([]Status, len(m.servers))
	for i, s := range m.servers {
		list[i] = s.status()
	}
	return list
}

func (s *server) status() Status {
	st := Status{TaskType: s.task.name, OwnSign: s.c.OwnSign(), State: s.state()}
	l := s.cur.Load()
	if l == nil {
		return st
	}
	st.Server, st.Trusted, st.BeatAge = l.uuid, l.lease.valid(), l.lease.age()
	st.Queues, st.Work = int(l.owned.Load()), s.proc.Stats()
	held := s.proc.Held()
	for _, h := range held {
		if h.Draining {
			st.Draining++
		}
	}
	if t := l.ticked.Load(); t != nil {
		st.InRuns, st.Sweeps, st.Runs = true, len(held), *t
	}
	return st
}
