//go:build linux

package faults

import (
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// processScenarios are faults of processes.
var processScenarios = []scenario{
	{name: "kill", play: kill, kinds: everywhere, quick: true},
	{name: "kill-before-commit", play: killBeforeCommit},
	{name: "pause-in-item", play: pauseInItem, kinds: everywhere, quick: true, threads: 1},
	{name: "pause-before-commit", play: pauseBeforeCommit, quick: true, threads: 1},
	{name: "vanish-before-commit", play: vanishBeforeCommit, proxied: true, idleTx: 5 * time.Second},
	{name: "pause-idle", play: pauseIdle, kinds: everywhere, idle: true},
	{name: "pause-in-heartbeat", play: pauseInHeartbeat, proxied: true, idle: true},
	{name: "pause-below-lease", play: pauseBelowLease, kinds: everywhere},
	{name: "pause-around-lease", play: pauseAroundLease},
	{name: "terminate", play: terminate, kinds: everywhere, quick: true},
	{name: "rolling-restart", play: rollingRestart, kinds: everywhere, quick: true},
	// longer than a restart takes on a slow machine
	{name: "named-restart", play: namedRestart, kinds: everywhere, quick: true, returns: patience},
	{name: "all-die", play: allDie, kinds: everywhere, quick: true},
}

func kill(s *stage) {
	w := s.any()
	w.arm("kill work")
	s.dies(w)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	s.works(20)
}

func killBeforeCommit(s *stage) {
	w := s.any()
	w.arm("kill commit")
	s.dies(w)
	s.awaitBalance()
	s.start(1)
	s.works(20)
}

// pauseInItem: a call wakes after the others have taken over its queue. It ignores its context, and the fence rejects
// its transaction.
func pauseInItem(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop work")
	s.until("the worker has stopped itself", w.Stopped)
	s.awaitTakeover(w)
	s.works(queues * backlog) // the item in flight among them
	s.wake(w, from)
	s.works(20)
}

// pauseBeforeCommit: a transaction that has its fence stands still before its commit. Its queue waits for it, and the
// other queues do not.
func pauseBeforeCommit(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	s.awaitTakeover(w)
	s.until("the others own all queues except that of the transaction", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid <> ?`, w.PID) >= queues-1
	})
	s.wake(w, from)
	s.works(20)
}

// vanishBeforeCommit: the host of a worker vanishes in the middle of a fenced transaction, and its connections never
// end. The database ends the transaction after idle_tx_timeout. Then the others own all queues.
func vanishBeforeCommit(s *stage) {
	w := s.any()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	w.proxy.Vanish()
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	s.works(20)
}

func pauseIdle(s *stage) {
	w := s.any()
	s.sleep(s.upTo(s.settings.HeartbeatInterval)) // at any time between two heartbeats
	from := time.Now()
	w.signal(syscall.SIGSTOP)
	s.awaitTakeover(w)
	s.wake(w, from)
}

// pauseInHeartbeat: the process sends a heartbeat and stops before it receives the reply.
func pauseInHeartbeat(s *stage) {
	w := s.any()
	from := time.Now()
	w.proxy.LoseReplies(true)
	s.sleep(s.settings.HeartbeatInterval)
	w.signal(syscall.SIGSTOP)
	s.heal((*testdb.Proxy).LoseReplies, w)
	s.awaitTakeover(w)
	s.wake(w, from)
}

// awaitTakeover waits until the others have expired a stopped worker, and for some time more.
func (s workerSteps) awaitTakeover(w *worker) {
	s.t.Helper()
	since := time.Now()
	s.awaitExpiry(w, since)
	s.outlast(since)
}

// wake continues a worker that has stood still since the given time.
func (s workerSteps) wake(w *worker, since time.Time) {
	s.t.Helper()
	w.signal(syscall.SIGCONT)
	s.addWindow(w, Pause, since)
	s.awaitBalance()
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

// pauseAroundLease: pauses last from just below the lease to just above the judge_dead_interval of the others.
func pauseAroundLease(s *stage) {
	for range 6 {
		w := s.any()
		from := time.Now()
		if s.IntN(2) == 0 {
			w.arm("stop work")
			s.until("the worker has stopped itself", w.Stopped)
		} else {
			w.signal(syscall.SIGSTOP)
		}
		s.sleep(s.trust() + s.upTo(3*margin(s.settings)))
		s.wake(w, from)
	}
}

// terminate: a worker that leaves finishes its items in flight and hands its queues over. No server expires it.
func terminate(s *stage) {
	w := s.any()
	s.leave(w)
	s.awaitBalance()
	s.works(20)
}

func rollingRestart(s *stage) {
	for _, w := range s.live() {
		if s.IntN(2) == 0 { // either starts the new worker first, or stops the old one first
			s.start(1)
			s.leave(w)
		} else {
			s.leave(w)
			s.start(1)
		}
	}
	s.works(20)
}

// namedRestart: workers with names are restarted one after the other. Each gets its queues back, and no other queue
// changes its owner. Then one does not return, and its queues go to the others when the scenario ends its
// reservation.
func namedRestart(s *stage) {
	named := s.startNamed()
	for i, w := range named {
		moves, own := s.count(`SELECT SUM(epoch) FROM schedule_queue`), s.owned(w)
		s.leaveReserved(w)
		s.works(5)
		named[i] = s.launchAs(webName(i))
		s.awaitBalance()
		if n := s.count(`SELECT SUM(epoch) FROM schedule_queue`); n != moves+2*own {
			s.t.Errorf("the epochs rose by %d, want %d: twice for each queue of the worker that was restarted", n-moves, 2*own)
		}
		s.works(5)
	}
	s.leave(named[0])
	s.exec(`UPDATE schedule_queue SET reserved_for = NULL, reserved_until = NULL`)
	s.exec(`UPDATE schedule_task_running SET membership_version = membership_version + 1, reserved_until = NULL`) // a plan is due
	s.awaitBalance()
	s.works(20)
}

func allDie(s *stage) {
	for _, w := range s.live() {
		if s.IntN(2) == 0 {
			w.signal(syscall.SIGSTOP) // is killed while it stands still
		}
		s.kill(w)
	}
	s.start(1)
	s.works(20)
}
