package manager

import (
	"time"

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
}

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
	Queues            int           // that it has, those that drain included
	Draining          int           // of them
	Work              processor.Stats
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
	for _, h := range s.proc.Held() {
		st.Queues++
		if h.Draining {
			st.Draining++
		}
	}
	st.Work = s.proc.Stats()
	return st
}
