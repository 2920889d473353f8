//go:build linux

package faults

import (
	"syscall"
	"time"

	"github.com/dutyrota/rota/runs"
)

// runScenarios are faults during the sweeps of runs. New items arrive all the time. A run leaves the items that arrive
// after its beginning to the next run.
var runScenarios = []scenario{
	{name: "run-kill", play: inRun(killInItem), variant: sweeping, kinds: everywhere, quick: true},
	{name: "run-kill-before-commit", play: inRun(killAtCommit), variant: sweeping},
	{name: "run-kill-after-the-last-select", play: inRun(killWhenEmpty), variant: sweeping, kinds: everywhere},
	{name: "run-kill-at-random", play: killAtRandomInRuns, variant: sweeping, kinds: everywhere},
	{name: "run-pause-in-item", play: pauseInRun("work"), variant: sweeping, threads: 1, kinds: everywhere},
	{name: "run-pause-before-commit", play: pauseInRun("commit"), variant: sweeping, threads: 1},
	{name: "run-pause-after-the-last-select", play: pauseInRun("empty"), variant: sweeping, threads: 1, kinds: everywhere},
	{name: "run-terminate", play: terminateInRun, variant: sweeping, kinds: everywhere, quick: true},
	{name: "run-rolling-restart", play: inRun(rollingRestartInRun), variant: sweeping, kinds: everywhere},
	{name: "run-all-die", play: inRun(allDieInRun), variant: sweeping, kinds: everywhere},
	{name: "run-replies-lost-at-random", play: inRun(loseReplies), variant: sweeping, proxied: true},
	{name: "run-cursor-kill", play: inPreparedRun(killInItem), variant: tracking, idle: true, kinds: everywhere},
	{name: "run-cursor-kill-before-commit", play: inPreparedRun(killAtCommit), variant: tracking, idle: true},
}

// inRun plays a fault in the middle of a run, which must still succeed.
func inRun(play func(*stage)) func(*stage) {
	return func(s *stage) {
		id := s.submit("")
		s.midway(id)
		play(s)
		s.succeeds(id)
	}
}

// inPreparedRun is inRun for items that all exist before the run: a dealer that reads in order skips an item that is
// committed late.
func inPreparedRun(play func(*stage)) func(*stage) {
	return func(s *stage) {
		s.addItems(70)
		inRun(play)(s)
	}
}

func killInItem(s *stage) { s.trapped("kill work") }

func killAtCommit(s *stage) { s.trapped("kill commit") }

func killWhenEmpty(s *stage) { s.trapped("kill empty") }

// trapped makes a worker kill itself.
func (s workerSteps) trapped(how string) {
	s.t.Helper()
	w := s.any()
	w.arm(how)
	s.dies(w)
}

// killAtRandomInRuns: one worker after the other is killed at a random time, also while a run opens or ends.
func killAtRandomInRuns(s *stage) {
	id := s.submit("")
	for range 6 {
		s.sleep(s.upTo(s.dead(0.7)))
		if s.run(id).Ended() {
			s.succeeds(id)
			id = s.submit("")
		}
		s.kill(s.any())
		s.launch()
	}
	s.succeeds(id)
}

// pauseInRun: a worker stands still in a sweep until others have swept its queue and ended the run. When it wakes, the
// fence rejects the work that it had begun.
func pauseInRun(point string) func(*stage) {
	return func(s *stage) {
		id := s.submit("")
		s.midway(id)
		w := s.any()
		from := time.Now()
		w.arm("stop " + point)
		s.until("the worker has stopped itself", w.Stopped)
		s.awaitTakeover(w)
		if point != "commit" { // there the open transaction keeps the queue
			s.succeeds(id)
		}
		s.wake(w, from)
		s.succeeds(id)
		s.succeeds(s.submit(""))
	}
}

// terminateInRun: a planned move of a queue counts neither as an attempt nor as a take-over.
func terminateInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.leave(s.any())
	s.launch()
	s.succeeds(id)
	if attempt, recoveries := s.attempts(id); attempt != 1 || recoveries > 0 {
		s.t.Errorf("a planned move left the run at attempt %d with %d take-overs, want attempt 1 without take-overs", attempt,
			recoveries)
	}
}

func rollingRestartInRun(s *stage) {
	for _, w := range s.live() {
		s.leave(w)
		s.launch()
	}
}

// allDieInRun: all workers die, the run waits, and the next worker continues it.
func allDieInRun(s *stage) {
	for _, w := range s.live() {
		w.signal(syscall.SIGSTOP) // stop all first, so that the last worker cannot end the run
	}
	for _, w := range s.live() {
		s.kill(w)
	}
	if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE state = ?`, runs.Running); n != 1 {
		s.t.Errorf("%d runs are open, want 1", n)
	}
	s.launch()
}

func loseReplies(s *stage) { s.loseReplies(10) }
