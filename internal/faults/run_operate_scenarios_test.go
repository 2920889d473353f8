//go:build linux

package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// operateScenarios are runs that fail, that an operator stops, or whose queues change.
var operateScenarios = []scenario{
	{name: "run-poison", play: poisonAndCure, variant: poisoned, kinds: everywhere, idle: true, quick: true},
	{name: "run-poison-kill", play: killBesidePoison, variant: spoiled, kinds: everywhere, idle: true},
	{
		name: "run-failed-beside-a-success", play: failsBesideASuccess, variant: refused, kinds: everywhere, idle: true,
		seldom: true,
	},
	{name: "run-endless", play: endlessAndCure, variant: endless, kinds: everywhere, idle: true},
	{name: "run-rows-come", play: rowsCome, variant: sweeping, kinds: everywhere},
	{name: "run-cancel", play: cancelWithDeadOwner, variant: sweeping, kinds: everywhere},
	{name: "run-paused", play: pausedInRun, variant: sweeping, kinds: everywhere},
	{name: "run-deadline", play: deadlineWithoutOwners, variant: sweeping, kinds: everywhere},
	{name: "run-database-restart", play: inRun(databaseRestarts), variant: sweeping, own: true, quick: true},
	{name: "run-database-outage", play: inRun(databaseFails), variant: sweeping, own: true},
	{name: "run-queue-removed", play: queueRemovedInRun, variant: byName, kinds: everywhere},
	{name: "run-repartitioned", play: repartitionedInRun, variant: sweeping, kinds: everywhere},
}

// must ends the test if an operation of the operator has failed.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// poisonAndCure: items fail until their queues fail, and with them the run. All other items are done by then. After the
// cure, a rerun does the rest.
func poisonAndCure(s *stage) {
	s.addItems(40)
	id := s.submit("")
	all, ill := s.count(`SELECT COUNT(*) FROM items`), s.count(`SELECT COUNT(*) FROM items WHERE id % 7 = 0`)
	s.wantItems(s.endsAs(id, runs.Failed), all-ill, ill)
	if most, _ := s.attempts(id); most != s.settings.QueueMaxAttempts {
		s.t.Errorf("the run has %d attempts, want %d", most, s.settings.QueueMaxAttempts)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.rerunEnded(id)
	s.wantItems(s.succeeds(id), all, 0)
}

// killBesidePoison: three items in a hundred fail, and a worker is killed in the middle of the run. The run ends soon
// after its healthy items are done, and lists the others. So does a rerun, although nothing was repaired and a worker
// is killed.
func killBesidePoison(s *stage) {
	s.addItems(100)
	id := s.submit("")
	s.midway(id)
	s.kill(s.any())
	s.launch()
	s.endsBesidePoison(id)
	s.rerunEnded(id)
	s.kill(s.any())
	s.launch()
	s.endsBesidePoison(id)
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.rerunEnded(id)
	s.succeeds(id)
}

// endsBesidePoison waits until all items but the failing ones are done, and checks that the run then fails within a
// minute, or as long as the healthy items took, and lists the failing ones.
func (s runSteps) endsBesidePoison(id string) {
	s.t.Helper()
	ill, from := s.count(`SELECT COUNT(*) FROM items WHERE id % 35 = 0`), time.Now()
	s.until("the healthy items are done", func() bool {
		return s.count(`SELECT COUNT(*) FROM items WHERE done = 0`) == ill
	})
	healthy := time.Now()
	r := s.endsAs(id, runs.Failed)
	took, most := time.Since(healthy), max(time.Minute, healthy.Sub(from))
	s.t.Logf("the run took %s, and failed after %s more with %d failed items", healthy.Sub(from), took, r.ItemsFailed)
	if took > most {
		s.t.Errorf("the run failed %s after its healthy items were done, want at most %s", took, most)
	}
	s.wantFailedItems(id)
}

// failsBesideASuccess: a run fails, and a run of another key succeeds at once. The failure is told until its own run
// has succeeded.
func failsBesideASuccess(s *stage) {
	s.addItems(20)
	failed := s.submit("fileA")
	s.endsAs(failed, runs.Failed)
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.succeeds(s.submit("fileB"))
	told := func() int {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, ops.EventAlert,
			condition.RunFailed.Name+": run "+failed+"%")
	}
	problems := func() []runs.Problem {
		list, err := ops.New(s.c).Runs().Problems(s.t.Context(), taskType)
		s.must(err)
		return list
	}
	s.until("the failed run is told", func() bool { return told() == 1 })
	if list := problems(); len(list) != 1 || list[0].RunID != failed {
		s.t.Errorf("the problems are %+v, want that of run %s", list, failed)
	}
	s.rerunEnded(failed)
	s.succeeds(failed)
	if list := problems(); len(list) != 0 {
		s.t.Errorf("the run has succeeded, and the problems are %+v", list)
	}
}

// rerunEnded reruns a run that failed or was cancelled.
func (s runSteps) rerunEnded(id string) {
	s.t.Helper()
	s.must(s.c.Engine().Runs.Rerun(s.t.Context(), id, "test"))
	s.rerun[id] = true
}

func (s runSteps) wantItems(r runs.Run, done, failed int) {
	s.t.Helper()
	uncounted := r.ItemsDone < int64(done) && s.cancelled()
	if r.ItemsDone != int64(done) && !uncounted || r.ItemsFailed != int64(failed) {
		s.t.Errorf("%s: %d items done and %d failed, want %d and %d", name(r), r.ItemsDone, r.ItemsFailed, done, failed)
	}
}

// cancelled reports whether a worker has cancelled a batch, as it does when the database does not answer its
// heartbeats. Such a batch may be committed although no server has counted its items.
func (s runSteps) cancelled() bool {
	return slices.ContainsFunc(s.workers, func(w *worker) bool {
		return strings.Contains(w.Log(), `msg="execute: cancelled"`)
	})
}

// endlessAndCure: without a limit, a select that returns done items would never let its run end.
func endlessAndCure(s *stage) {
	s.addItems(10)
	id := s.submit("")
	if r := s.endsAs(id, runs.Failed); !strings.Contains(r.Message, "no progress") {
		s.t.Errorf("the run failed with the message %q, want no progress", r.Message)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`, `DELETE FROM items`)
	clear(s.there)
	s.rerunEnded(id)
	s.succeeds(id)
}

// rowsCome: new items arrive as fast as items are done, during the whole run. The run ends and leaves them to the next
// run.
func rowsCome(s *stage) {
	r := s.succeeds(s.submit(""))
	left := s.count(`SELECT COUNT(*) FROM items WHERE done = 0 AND made > ?`, r.StartedAt.UnixMilli())
	if left < queues*s.backlog/2 {
		s.t.Errorf("only %d items arrived during the run: the scenario proves nothing", left)
	}
}

// cancelWithDeadOwner: a run is cancelled at once, although no server has noticed yet that an owner of its queues is
// dead.
func cancelWithDeadOwner(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.kill(s.any())
	s.must(s.c.Engine().Runs.Cancel(s.t.Context(), id, "test"))
	if r := s.run(id); r.State != runs.Cancelled {
		s.t.Fatalf("%s is %s", name(r), r.State)
	}
	next := s.submit("")
	s.succeeds(next)
	s.rerunEnded(id)
	s.succeeds(id)
}

// pausedInRun: an operator pauses the run or the task type, and a worker dies meanwhile. No item is done until the
// operator resumes it.
func pausedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	for _, pause := range []func(bool) error{
		func(on bool) error { return s.c.Engine().Runs.SetPaused(s.t.Context(), id, on, "test") },
		func(on bool) error { return s.c.Roster().Operator("test").Pause(s.t.Context(), taskType, on) },
	} {
		s.must(pause(true))
		done := s.standstill()
		w := s.any()
		s.kill(w)
		s.awaitExpiry(w, w.Ended)
		s.launch()
		if n := s.standstill(); n != done {
			s.t.Errorf("%d items were done during the pause", n-done)
		}
		s.must(pause(false))
	}
	s.succeeds(id)
}

// standstill waits until no item is done for two heartbeat intervals, and returns the number of effects by then.
func (s runSteps) standstill() (done int) {
	s.t.Helper()
	s.until("no more items are done", func() bool {
		done = s.count(`SELECT COUNT(*) FROM history`)
		s.sleep(2 * s.settings.HeartbeatInterval)
		return done >= 0 && s.count(`SELECT COUNT(*) FROM history`) == done
	})
	return done
}

// deadlineWithoutOwners: the deadline passes while no server is alive. The next server ends the run.
func deadlineWithoutOwners(s *stage) {
	id := s.submit("")
	s.midway(id)
	allDieInRun(s)
	s.exec(`UPDATE schedule_run SET deadline_at = started_at`)
	if r := s.endsAs(id, runs.Failed); !strings.Contains(r.Message, "deadline") {
		s.t.Errorf("the run failed with the message %q, want the deadline", r.Message)
	}
	s.rerunEnded(id)
	s.succeeds(id)
}

func databaseRestarts(s *stage) { s.stopDatabase(s.server.Stop, 0) }

func databaseFails(s *stage) {
	s.stopDatabase(s.server.Kill, s.dead(3))
	s.sleep(s.dead(1))
	s.stopDatabase(s.server.Stop, s.upTo(s.dead(1)))
}

// queueRemovedInRun: a queue that is removed during a run does not block the run. A queue that is added during a run is
// not part of it. When the first queue is added again, the next run has it.
func queueRemovedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.must(s.c.Roster().Operator("test").RemoveQueue(s.t.Context(), taskType, "q5"))
	s.must(s.c.Roster().Operator("test").AddQueue(s.t.Context(), taskType, "q6", ""))
	r := s.succeeds(id)
	if len(s.queuesOf(id)) != queues || !strings.Contains(r.Message, "removed") {
		s.t.Errorf("%s has the message %q, want a removed queue, and %d queues in %+v", name(r), r.Message, queues,
			s.queuesOf(id))
	}
	s.must(s.c.Roster().Operator("test").AddQueue(s.t.Context(), taskType, "q5", ""))
	next := s.submit("")
	s.midway(next)
	s.must(s.c.Roster().Operator("test").RemoveQueue(s.t.Context(), taskType, "q6"))
	s.succeeds(next)
}

// repartitionedInRun: with fewer queues the run fails, and a rerun sweeps all queues. With more queues the run keeps
// its own number.
func repartitionedInRun(s *stage) {
	id := s.submit("")
	s.midway(id)
	s.must(s.c.Roster().Operator("test").Repartition(s.t.Context(), taskType, 4, 0))
	if r := s.endsAs(id, runs.Failed); !strings.Contains(r.Message, "fewer queues") {
		s.t.Errorf("the run failed with the message %q, want fewer queues", r.Message)
	}
	s.rerunEnded(id)
	s.wantTotal(s.succeeds(id), 4)
	id = s.submit("")
	s.midway(id)
	s.must(s.c.Roster().Operator("test").Repartition(s.t.Context(), taskType, 8, 0))
	s.wantTotal(s.succeeds(id), 4)
	s.until("there are more queues", func() bool { return s.count(`SELECT queue_total FROM schedule_task_running`) == 8 })
	s.wantTotal(s.succeeds(s.submit("")), 8)
}

func (s runSteps) wantTotal(r runs.Run, total int) {
	s.t.Helper()
	if r.QueueTotal != total || len(s.queuesOf(r.ID)) != total {
		s.t.Errorf("%s has %d queues of %d, want %d", name(r), len(s.queuesOf(r.ID)), r.QueueTotal, total)
	}
}
