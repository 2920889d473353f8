//go:build linux

package faults

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// step is a transaction in the life of a run, known by a part of one of its statements.
type step string

const (
	opening   step = "UPDATE schedule_run SET state = 'RUNNING'"
	claiming  step = "recoveries = CASE WHEN state = 'RUNNING'"
	finishing step = "), last_error = ''"             // a queue
	closing   step = "UPDATE schedule_run SET items_" // a run
	giving    step = "attempt = attempt - 1"          // a queue that moves
	firing    step = "UPDATE schedule_trigger SET version"
	settling  step = "o.trigger_name = r.trigger_name" // a run whose upstreams have succeeded
	fencing   step = "SELECT q.queue_id, q.cur_server, q.epoch"
)

// stepScenarios strike before and after each step of a run.
var stepScenarios = []scenario{
	{name: "run-kill-at-opening", play: killAt(opening), power: sweeping, proxied: true},
	{name: "run-kill-at-claiming", play: killAt(claiming), power: sweeping, proxied: true},
	{name: "run-kill-at-finishing", play: killAt(finishing), power: sweeping, proxied: true, quick: true},
	{name: "run-kill-at-closing", play: killAt(closing), power: sweeping, proxied: true},
	{name: "run-kill-at-giving", play: killInDrain, power: sweeping, proxied: true},
	{name: "run-replies-lost-at-steps", play: replyLostAt(opening, claiming, finishing, closing), power: sweeping, proxied: true, quick: true},
	{name: "run-pause-before-finishing", play: zombieFinishes, power: sweeping, proxied: true, idle: true, threads: 1, quick: true},
	{name: "run-pause-in-finishing", play: pauseInFinishing, power: sweeping, proxied: true},
}

var moments = []testdb.Moment{testdb.BeforeStatement, testdb.BeforeCommit, testdb.AfterCommit}

// some returns all of them where all scenarios are played, else one that the seed chooses.
func some[T any](s *stage, all []T) []T {
	if os.Getenv(which) == "all" {
		return all
	}
	n := s.IntN(len(all))
	return all[n : n+1]
}

// waylay lays an ambush for some workers, all that live if none is named, and for the first that runs into it.
func (s *stage) waylay(at step, skip int, m testdb.Moment, strike func(*worker) (pass bool), whom ...*worker) (struck <-chan *worker) {
	if len(whom) == 0 {
		whom = s.living()
	}
	victims := make(chan *worker, 1)
	var taken atomic.Bool
	for _, w := range whom {
		w.proxy.Ambush(testdb.Ambush{Text: string(at), Skip: skip, Moment: m, Strike: func() bool {
			if !taken.CompareAndSwap(false, true) {
				return true
			}
			victims <- w
			return strike(w)
		}})
	}
	return victims
}

// victim waits for the worker that runs into an ambush.
func (s *stage) victim(struck <-chan *worker, what string) (w *worker) {
	s.t.Helper()
	s.until(what, func() bool {
		select {
		case w = <-struck:
			return true
		default:
			return false
		}
	})
	return w
}

// murder is a strike.
func murder(w *worker) bool {
	_ = syscall.Kill(w.pid, syscall.SIGKILL) // it lives: it has just sent something
	return false
}

// killAt kills whoever takes a step: before it is taken, in the middle, and when it is taken and nobody knows.
func killAt(at step) func(*stage) {
	return func(s *stage) {
		for _, m := range some(s, moments) {
			struck := s.waylay(at, 0, m, murder)
			id := s.submit("")
			s.dies(s.victim(struck, fmt.Sprintf("%s: %s", m, at)))
			s.recruit()
			s.succeeds(id)
		}
	}
}

// killInDrain kills a worker that leaves, when it gives up its sweeps.
func killInDrain(s *stage) {
	for _, m := range moments {
		for killed := false; !killed; {
			id := s.submit("")
			s.midway(id)
			killed = s.leaveOrDie(m)
			s.recruit()
			s.succeeds(id)
		}
	}
}

// leaveOrDie lets a worker leave, and reports whether it was killed: one that is through with its sweeps just now has
// none to give up.
func (s *stage) leaveOrDie(m testdb.Moment) (killed bool) {
	s.t.Helper()
	w := s.any()
	struck := s.waylay(giving, 0, m, murder, w)
	s.leave(w)
	if killed = len(struck) > 0; killed {
		s.dies(w)
	}
	return killed
}

// replyLostAt: the steps are taken, and whoever has taken them does not know.
func replyLostAt(steps ...step) func(*stage) {
	return func(s *stage) {
		for _, at := range some(s, steps) {
			struck := s.waylay(at, 0, testdb.AfterCommit, func(*worker) bool { return false })
			id := s.submit("")
			s.victim(struck, "the reply is lost: "+string(at))
			s.succeeds(id)
		}
	}
}

// zombieFinishes: a worker stands still when it is about to note that a queue is drained. Others do so, end the run, and
// begin another, before it wakes and tries to.
func zombieFinishes(s *stage) {
	release, from := make(chan struct{}), time.Now()
	free := sync.OnceFunc(func() { close(release) })
	s.t.Cleanup(free)
	// There is nothing to do, so that the fences are those of the two claims, and then that of the DONE.
	struck := s.waylay(fencing, queues/workers, testdb.BeforeStatement, hold(release))
	first := s.submit("")
	w := s.victim(struck, "the fence of a DONE")
	s.expiry(w, from)
	s.succeeds(first)
	before := fmt.Sprint(s.queuesOf(first))
	second := s.submit("")
	s.succeeds(second)
	w.signal(syscall.SIGCONT)
	free()
	s.between(w, Pause, from)
	s.settle()
	if after := fmt.Sprint(s.queuesOf(first)); after != before {
		s.t.Errorf("the rows of the run were\n%s, and then\n%s", before, after)
	}
	for _, q := range s.queuesOf(second) {
		if process(q.Server) == w.pid {
			s.t.Errorf("queue %s of a run that came later is that of the worker that stood still: %+v", q.QueueID, q)
		}
	}
}

// hold is a strike that stops a process and keeps what it has sent until it is released.
func hold(release <-chan struct{}) func(*worker) bool {
	return func(w *worker) bool {
		_ = syscall.Kill(w.pid, syscall.SIGSTOP) // it lives: it has just sent something
		<-release
		return true
	}
}

// pauseInFinishing: a worker stands still between the DONE and its commit. Its queue waits for it, and the run.
func pauseInFinishing(s *stage) {
	from := time.Now()
	struck := s.waylay(finishing, 0, testdb.BeforeCommit, func(w *worker) bool {
		_ = syscall.Kill(w.pid, syscall.SIGSTOP)
		return true
	})
	id := s.submit("")
	w := s.victim(struck, "the commit of a DONE")
	s.outcast(w)
	s.wake(w, from)
	s.succeeds(id)
}
