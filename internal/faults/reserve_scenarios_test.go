//go:build linux

package faults

import (
	"fmt"
	"syscall"
	"time"

	"github.com/dutyrota/rota/schema"
)

// reserveScenarios are faults while queues are reserved for a worker with a name (P13). In the end each queue has one
// owner, and nothing is reserved.
var reserveScenarios = []scenario{
	{name: "reserved-beside-a-stop", play: reservedBesideAStop, idle: true, returns: patience},
	{name: "reserved-in-a-pause", play: reservedInAPause, kinds: everywhere, quick: true, returns: patience},
	{name: "reserved-for-two", play: reservedForTwo, kinds: everywhere, returns: patience},
	{
		name: "reserved-before-the-clock-is-set-back", play: reservedAfterNow, kinds: everywhere, returns: patience,
		seldom: true,
	},
}

// startNamed replaces all workers by workers with names.
func (s workerSteps) startNamed() []*worker {
	s.t.Helper()
	unnamed, named := s.live(), make([]*worker, workers)
	for i := range named {
		named[i] = s.launchAs(webName(i))
	}
	s.awaitBalance()
	s.leave(unnamed...)
	s.awaitBalance()
	return named
}

func webName(i int) string { return fmt.Sprintf("web-%d", i) }

// reserved returns the number of reserved queues.
func (s *scene) reserved() int {
	return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE reserved_for IS NOT NULL AND cur_server IS NULL`)
}

// owned returns the number of queues of a worker.
func (s *scene) owned(w *worker) int {
	return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE cur_pid = ?`, w.PID)
}

// leaveReserved terminates a worker, which reserves its queues.
func (s workerSteps) leaveReserved(w *worker) {
	s.t.Helper()
	own := s.owned(w)
	s.leave(w)
	if n := s.reserved(); own == 0 || n != own {
		s.t.Errorf("%d queues are reserved, and the worker owned %d", n, own)
	}
}

// reservedBesideAStop: a worker leaves, and reserves its queues, while another one is stopped: before the others have
// expired that one, meanwhile, or after that. They get the queues of the stopped worker, and not those that are
// reserved. Then both come back, in either order.
func reservedBesideAStop(s *stage) {
	named := s.startNamed()
	stopped, leaving, left := named[0], named[1], named[2]
	from := time.Now()
	stopped.signal(syscall.SIGSTOP)
	s.sleep(s.upTo(s.dead(1.5)))
	s.leave(leaving)
	s.awaitTakeover(stopped)
	s.until("the last worker owns all queues that are not reserved",
		func() bool { return s.owned(left)+s.reserved() == queues })
	if s.reserved() == 0 {
		s.t.Error("nothing is reserved: the scenario proves nothing")
	}
	back := []func(){
		func() {
			stopped.signal(syscall.SIGCONT)
			s.addWindow(stopped, Pause, from)
		},
		func() { s.launchAs(webName(1)) },
	}
	first := s.IntN(2)
	back[first]()
	s.sleep(s.upTo(s.dead(1)))
	back[1-first]()
	s.rest()
}

// rest waits for the balance, and then for work in all queues.
func (s *stage) rest() {
	s.t.Helper()
	s.awaitBalance()
	if n := s.reserved(); n != 0 {
		s.t.Errorf("%d queues are reserved at rest", n)
	}
	s.stopSupply()
	s.addItems(3) // close waits for them
}

// reservedInAPause: the pause of the task type ends a reservation, also if the lock row does not know of it. A worker
// that leaves during the pause reserves nothing.
func reservedInAPause(s *stage) {
	named := s.startNamed()
	s.leaveReserved(named[0])
	if s.IntN(2) == 0 {
		s.exec(`UPDATE schedule_task_running SET reserved_until = NULL`)
	}
	pause := func(on bool) { s.must(s.c.Roster().Operator("test").Pause(s.t.Context(), taskType, on)) }
	pause(true)
	if n := s.reserved(); n != 0 {
		s.t.Errorf("%d queues are reserved in a pause", n)
	}
	s.leave(named[1])
	if n := s.reserved(); n != 0 {
		s.t.Errorf("%d queues are reserved by a worker that left in a pause", n)
	}
	done := s.standstill()
	s.sleep(s.upTo(s.dead(1)))
	if n := s.count(`SELECT COUNT(*) FROM history`); n != done {
		s.t.Errorf("%d items were done in the pause", n-done)
	}
	pause(false)
	s.awaitBalance()
	s.works(20)
	s.launchAs(webName(0))
	s.launchAs(webName(1))
	s.rest()
}

// reservedForTwo: two workers of the name start at once.
func reservedForTwo(s *stage) {
	s.leaveReserved(s.startNamed()[0])
	s.launchAs(webName(0))
	s.launchAs(webName(0))
	s.rest()
}

// reservedAfterNow: the reservation ends a day too late, which is what a clock that was set back by a day leaves
// behind. The others get the queues: at once if the lock row says the same, otherwise after an audit.
func reservedAfterNow(s *stage) {
	s.leaveReserved(s.startNamed()[0])
	later := map[schema.Dialect]string{
		schema.Postgres: `reserved_until + interval '1 day'`,
		schema.MySQL:    `reserved_until + INTERVAL 1 DAY`,
		schema.SQLite:   `strftime('%Y-%m-%d %H:%M:%f', reserved_until, '+1 day') || '000'`,
	}[s.c.Dialect().Family()]
	from := time.Now()
	s.exec(`UPDATE schedule_queue SET reserved_until = ` + later + ` WHERE reserved_until IS NOT NULL`)
	if s.IntN(2) == 0 {
		s.exec(`UPDATE schedule_task_running SET reserved_until = ` + later)
	}
	s.awaitBalance()
	if took := time.Since(from); took > patience*2/3 {
		s.t.Errorf("the queues had no owner for %s", took)
	}
	s.rest()
}
