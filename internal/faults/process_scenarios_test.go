//go:build linux

package faults

import (
	"slices"
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// processScenarios are what happens to processes.
var processScenarios = []scenario{
	{name: "kill", play: kill, kinds: everywhere, quick: true},
	{name: "kill-before-commit", play: killBeforeCommit},
	{name: "pause-in-item", play: pauseInItem, kinds: everywhere, quick: true, threads: 1},
	{name: "pause-before-commit", play: pauseBeforeCommit, quick: true, threads: 1},
	{name: "pause-idle", play: pauseIdle, kinds: everywhere, idle: true},
	{name: "pause-in-heartbeat", play: pauseInHeartbeat, proxied: true, idle: true},
	{name: "pause-below-lease", play: pauseBelowLease, kinds: everywhere},
	{name: "pause-around-lease", play: pauseAroundLease},
	{name: "terminate", play: terminate, kinds: everywhere, quick: true},
	{name: "rolling-restart", play: rollingRestart, kinds: everywhere, quick: true},
	{name: "all-die", play: allDie, kinds: everywhere, quick: true},
}

func kill(s *stage) {
	w := s.any()
	w.arm("kill work")
	s.dies(w)
	s.expiry(w, w.ended)
	s.settle()
	s.works(20)
}

func killBeforeCommit(s *stage) {
	w := s.any()
	w.arm("kill commit")
	s.dies(w)
	s.settle()
	s.start(1)
	s.works(20)
}

// pauseInItem: the call wakes when its queue is another's, ignores its context, and asks for the fence.
func pauseInItem(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop work")
	s.until("the worker has stopped itself", w.stopped)
	s.outcast(w)
	s.works(queues * backlog) // the item that it has in hand, for one
	s.wake(w, from)
	s.works(20)
}

// pauseBeforeCommit: the transaction has its fence, so that its queue waits for it, and no other.
func pauseBeforeCommit(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.stopped)
	s.outcast(w)
	s.until("the others have all queues but the one of the transaction", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid <> ?`, w.pid) >= queues-1
	})
	s.wake(w, from)
	s.works(20)
}

func pauseIdle(s *stage) {
	w := s.any()
	s.sleep(s.upTo(s.settings.HeartbeatInterval)) // anywhere in the rhythm of its heart
	from := time.Now()
	w.signal(syscall.SIGSTOP)
	s.outcast(w)
	s.wake(w, from)
}

// pauseInHeartbeat: the heartbeat is sent and the process stops before its reply.
func pauseInHeartbeat(s *stage) {
	w := s.any()
	from := time.Now()
	w.proxy.LoseReplies(true)
	s.sleep(s.settings.HeartbeatInterval)
	w.signal(syscall.SIGSTOP)
	s.heal((*testdb.Proxy).LoseReplies, w)
	s.outcast(w)
	s.wake(w, from)
}

// outcast waits until a worker that stands still has been expired, and beyond.
func (s *stage) outcast(w *worker) {
	s.t.Helper()
	since := time.Now()
	s.expiry(w, since)
	s.outlast(since)
}

// wake lets a worker go on that has stood still.
func (s *stage) wake(w *worker, since time.Time) {
	s.t.Helper()
	w.signal(syscall.SIGCONT)
	s.between(w, Pause, since)
	s.settle()
}

func pauseBelowLease(s *stage) {
	for range 5 {
		w := s.any()
		from := time.Now()
		w.signal(syscall.SIGSTOP)
		s.sleep(s.trust()/4 + s.upTo(s.trust()/4))
		s.wake(w, from)
		s.works(5)
	}
}

// pauseAroundLease: from just below the lease to just above the others' judgement.
func pauseAroundLease(s *stage) {
	for range 6 {
		w := s.any()
		from := time.Now()
		if s.IntN(2) == 0 {
			w.arm("stop work")
			s.until("the worker has stopped itself", w.stopped)
		} else {
			w.signal(syscall.SIGSTOP)
		}
		s.sleep(s.trust() + s.upTo(3*margin(s.settings)))
		s.wake(w, from)
	}
}

// terminate: who leaves finishes what it has in hand and hands over; nobody has to expire it.
func terminate(s *stage) {
	w := s.any()
	s.leave(w)
	s.settle()
	s.works(20)
}

func rollingRestart(s *stage) {
	for _, w := range slices.Clone(s.workers) {
		if s.IntN(2) == 0 { // the new one first, or the old one
			s.start(1)
			s.leave(w)
		} else {
			s.leave(w)
			s.start(1)
		}
	}
	s.works(20)
}

func allDie(s *stage) {
	for _, w := range s.living() {
		if s.IntN(2) == 0 {
			w.signal(syscall.SIGSTOP) // killed in its sleep
		}
		s.kill(w)
	}
	s.start(1)
	s.works(20)
}
