//go:build linux

package faults

import (
	"math"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// operateScenarios are runs that fail, that somebody stops, and whose queues change.
var operateScenarios = []scenario{
	{name: "run-poison", play: poisonAndCure, power: poisoned, kinds: everywhere, idle: true, quick: true},
	{name: "run-endless", play: endlessAndCure, power: endless, kinds: everywhere, idle: true},
	{name: "run-rows-come", play: rowsCome, power: sweeping, kinds: everywhere},
	{name: "run-cancel", play: cancelWithDeadOwner, power: sweeping, kinds: everywhere},
	{name: "run-paused", play: pausedInRun, power: sweeping, kinds: everywhere},
	{name: "run-deadline", play: deadlineWithoutOwners, power: sweeping, kinds: everywhere},
	{name: "run-database-restart", play: inRun(databaseRestarts), power: sweeping, own: true, quick: true},
	{name: "run-database-outage", play: inRun(databaseFails), power: sweeping, own: true},
	{name: "run-queue-removed", play: queueRemovedInRun, power: byName, kinds: everywhere},
	{name: "run-repartitioned", play: repartitionedInRun, power: sweeping, kinds: everywhere},
}

// must is for what an operator does.
func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// poisonAndCure: items fail until their queues, and with these the run, have failed. All others are done by then, and
// after the cure a rerun does the rest.
func poisonAndCure(s *stage) {
	s.bulk(40)
	id := s.submit("")
	all, ill := s.count(`SELECT COUNT(*) FROM items`), s.count(`SELECT COUNT(*) FROM items WHERE id % 7 = 0`)
	s.wantItems(s.mustBe(id, center.RunFailed), all-ill, ill)
	if most, _ := s.attempts(id); most != s.settings.QueueMaxAttempts {
		s.t.Errorf("%d attempts", most)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.again(id)
	s.wantItems(s.succeeds(id), all, 0)
}

// again lets a run go on that has failed or was cancelled.
func (s *stage) again(id string) {
	s.t.Helper()
	s.must(s.c.Engine().Rerun(s.t.Context(), id, "test"))
	s.rerun[id] = true
}

func (s *stage) wantItems(r center.Run, done, failed int) {
	s.t.Helper()
	uncounted := r.ItemsDone < int64(done) && s.cancelled()
	if r.ItemsDone != int64(done) && !uncounted || r.ItemsFailed != int64(failed) {
		s.t.Errorf("%s: %d items done and %d failed, want %d and %d", name(r), r.ItemsDone, r.ItemsFailed, done, failed)
	}
}

// cancelled reports that a worker has cancelled a batch, as it does when the database does not answer its heartbeats: it
// may be done then, and counted by nobody.
func (s *stage) cancelled() bool {
	return slices.ContainsFunc(s.workers, func(w *worker) bool {
		return strings.Contains(w.lastWords(math.MaxInt), `msg="execute: cancelled"`)
	})
}

// endlessAndCure: a select that returns what is done would go on for ever.
func endlessAndCure(s *stage) {
	s.bulk(10)
	id := s.submit("")
	if r := s.mustBe(id, center.RunFailed); !strings.Contains(r.Message, "no progress") {
		s.t.Error(r.Message)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`, `DELETE FROM items`)
	clear(s.there)
	s.again(id)
	s.succeeds(id)
}

// rowsCome: as many items come as are done, for as long as the run lasts. It ends, and leaves them to the next.
func rowsCome(s *stage) {
	r := s.succeeds(s.submit(""))
	left := s.count(`SELECT COUNT(*) FROM items WHERE done = 0 AND made > ?`, r.StartedAt.UnixMilli())
	if left < queues*s.backlog/2 {
		s.t.Errorf("%d items have come meanwhile: this proves nothing", left)
	}
}

// cancelWithDeadOwner: a run is cancelled at once, though nobody knows yet that an owner of its queues is dead.
func cancelWithDeadOwner(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.kill(s.any())
	s.must(s.c.Engine().CancelRun(s.t.Context(), id, "test"))
	if r := s.run(id); r.State != center.RunCancelled {
		s.t.Fatalf("%s is %s", name(r), r.State)
	}
	next := s.submit("")
	s.succeeds(next)
	s.again(id)
	s.succeeds(id)
}

// pausedInRun: an operator pauses the run, or the task type, and a worker dies meanwhile. Nothing is done, and then the
// run goes on.
func pausedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	for _, pause := range []func(bool) error{
		func(on bool) error { return s.c.Engine().PauseRun(s.t.Context(), id, on, "test") },
		func(on bool) error { return s.c.Roster().Pause(s.t.Context(), taskType, on, "test") },
	} {
		s.must(pause(true))
		done := s.standstill()
		w := s.any()
		s.kill(w)
		s.expiry(w, w.ended)
		s.recruit()
		if n := s.standstill(); n != done {
			s.t.Errorf("%d items were done in a pause", n-done)
		}
		s.must(pause(false))
	}
	s.succeeds(id)
}

// standstill waits until nothing is done for two heartbeats, and returns how much is done by then.
func (s *stage) standstill() (done int) {
	s.t.Helper()
	s.until("nothing is done", func() bool {
		done = s.count(`SELECT COUNT(*) FROM history`)
		s.sleep(2 * s.settings.HeartbeatInterval)
		return done >= 0 && s.count(`SELECT COUNT(*) FROM history`) == done
	})
	return done
}

// deadlineWithoutOwners: the deadline passes while nobody is there. Who comes ends the run.
func deadlineWithoutOwners(s *stage) {
	id := s.submit("")
	s.midway(id)
	allDieInRun(s)
	s.exec(`UPDATE schedule_run SET deadline_at = started_at`)
	if r := s.mustBe(id, center.RunFailed); !strings.Contains(r.Message, "deadline") {
		s.t.Error(r.Message)
	}
	s.again(id)
	s.succeeds(id)
}

func databaseRestarts(s *stage) { s.down(s.server.Stop, 0) }

func databaseFails(s *stage) {
	s.down(s.server.Kill, s.dead(3))
	s.sleep(s.dead(1))
	s.down(s.server.Stop, s.upTo(s.dead(1)))
}

// queueRemovedInRun: a queue goes in mid-run, and does not hold the run up; one that comes is none of the run's; and
// when the first is back, the next run has it.
func queueRemovedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.must(s.c.Roster().RemoveQueue(s.t.Context(), taskType, "q5", "test"))
	s.must(s.c.Roster().AddQueue(s.t.Context(), taskType, "q6", "", "test"))
	r := s.succeeds(id)
	if len(s.queuesOf(id)) != queues || !strings.Contains(r.Message, "removed") {
		s.t.Errorf("%q: %+v", r.Message, s.queuesOf(id))
	}
	s.must(s.c.Roster().AddQueue(s.t.Context(), taskType, "q5", "", "test"))
	next := s.submit("")
	s.midway(next)
	s.must(s.c.Roster().RemoveQueue(s.t.Context(), taskType, "q6", "test"))
	s.succeeds(next)
}

// repartitionedInRun: with fewer queues the run has failed, and a rerun sweeps everything; with more it keeps its own.
func repartitionedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.must(s.c.Roster().Repartition(s.t.Context(), taskType, 4, "test"))
	if r := s.mustBe(id, center.RunFailed); !strings.Contains(r.Message, "fewer queues") {
		s.t.Error(r.Message)
	}
	s.again(id)
	s.wantTotal(s.succeeds(id), 4)
	id = s.submit("")
	s.midway(id)
	s.must(s.c.Roster().Repartition(s.t.Context(), taskType, 8, "test"))
	s.wantTotal(s.succeeds(id), 4)
	s.until("there are more queues", func() bool { return s.count(`SELECT queue_total FROM schedule_task_running`) == 8 })
	s.wantTotal(s.succeeds(s.submit("")), 8)
}

func (s *stage) wantTotal(r center.Run, total int) {
	s.t.Helper()
	if r.QueueTotal != total || len(s.queuesOf(r.ID)) != total {
		s.t.Errorf("%s has %d queues of %d, want %d", name(r), len(s.queuesOf(r.ID)), r.QueueTotal, total)
	}
}
