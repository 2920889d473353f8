//go:build linux

package faults

import (
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
)

// runScenarios are what happens to runs while they sweep. Items keep coming all the time: what comes after the
// beginning of a run is left to the next.
var runScenarios = []scenario{
	{name: "run-kill", play: inRun(killInItem), power: sweeping, kinds: everywhere, quick: true},
	{name: "run-kill-before-commit", play: inRun(killAtCommit), power: sweeping},
	{name: "run-kill-after-the-last-select", play: inRun(killWhenEmpty), power: sweeping, kinds: everywhere},
	{name: "run-kill-at-random", play: killAtRandomInRuns, power: sweeping, kinds: everywhere},
	{name: "run-pause-in-item", play: pauseInRun("work"), power: sweeping, threads: 1, kinds: everywhere},
	{name: "run-pause-before-commit", play: pauseInRun("commit"), power: sweeping, threads: 1},
	{name: "run-pause-after-the-last-select", play: pauseInRun("empty"), power: sweeping, threads: 1, kinds: everywhere},
	{name: "run-terminate", play: terminateInRun, power: sweeping, kinds: everywhere, quick: true},
	{name: "run-rolling-restart", play: inRun(rollingRestartInRun), power: sweeping, kinds: everywhere},
	{name: "run-all-die", play: inRun(allDieInRun), power: sweeping, kinds: everywhere},
	{name: "run-replies-lost-at-random", play: inRun(loseReplies), power: sweeping, proxied: true},
	{name: "run-cursor-kill", play: inPreparedRun(killInItem), power: tracking, idle: true, kinds: everywhere},
	{name: "run-cursor-kill-before-commit", play: inPreparedRun(killAtCommit), power: tracking, idle: true},
	{name: "run-cursor-rolling-restart", play: inPreparedRun(rollingRestartInRun), power: tracking, idle: true},
	{name: "run-cursor-replies-lost-at-random", play: inPreparedRun(loseReplies), power: tracking, idle: true, proxied: true, quick: true},
}

// inRun plays something in the middle of a run, which succeeds all the same.
func inRun(play func(*stage)) func(*stage) {
	return func(s *stage) {
		id := s.submit("")
		s.midway(id)
		play(s)
		s.succeeds(id)
	}
}

// inPreparedRun is inRun for items that were all there before: who reads in order passes what is committed late.
func inPreparedRun(play func(*stage)) func(*stage) {
	return func(s *stage) {
		s.bulk(70)
		inRun(play)(s)
	}
}

func killInItem(s *stage) { s.trapped("kill work") }

func killAtCommit(s *stage) { s.trapped("kill commit") }

func killWhenEmpty(s *stage) { s.trapped("kill empty") }

// trapped has a worker kill itself.
func (s *stage) trapped(how string) {
	s.t.Helper()
	w := s.any()
	w.arm(how)
	s.dies(w)
}

// killAtRandomInRuns: one worker after the other is killed, at any moment of the life of a run, its opening and its end
// among them.
func killAtRandomInRuns(s *stage) {
	id := s.submit("")
	for range 6 {
		s.sleep(s.upTo(s.dead(0.7)))
		if s.run(id).Ended() {
			s.succeeds(id)
			id = s.submit("")
		}
		s.kill(s.any())
		s.recruit()
	}
	s.succeeds(id)
}

// pauseInRun: a worker stands still in a sweep until others have swept its queue and ended the run. When it wakes,
// nothing of what it had begun counts.
func pauseInRun(point string) func(*stage) {
	return func(s *stage) {
		id := s.submit("")
		s.midway(id)
		w := s.any()
		from := time.Now()
		w.arm("stop " + point)
		s.until("the worker has stopped itself", w.stopped)
		s.outcast(w)
		if point != "commit" { // whose transaction keeps the queue
			s.succeeds(id)
		}
		s.wake(w, from)
		s.succeeds(id)
		s.succeeds(s.submit(""))
	}
}

// terminateInRun: a planned move is neither another attempt nor a take-over.
func terminateInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.leave(s.any())
	s.recruit()
	s.succeeds(id)
	if attempt, recoveries := s.attempts(id); attempt != 1 || recoveries > 0 {
		s.t.Errorf("attempt %d and %d take-overs after a planned move", attempt, recoveries)
	}
}

func rollingRestartInRun(s *stage) {
	for _, w := range s.living() {
		s.leave(w)
		s.recruit()
	}
}

// allDieInRun: nobody is left, the run waits, and goes on with the first that comes.
func allDieInRun(s *stage) {
	for _, w := range s.living() {
		w.signal(syscall.SIGSTOP) // so that the last of them finds something to do
	}
	for _, w := range s.living() {
		s.kill(w)
	}
	if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE state = ?`, center.RunRunning); n != 1 {
		s.t.Errorf("%d runs are open", n)
	}
	s.recruit()
}

func loseReplies(s *stage) { s.loseReplies(10) }
