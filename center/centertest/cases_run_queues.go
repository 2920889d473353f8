package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// namedRun is a task type of mode RUN with named queues.
var namedRun = center.Settings{Mode: center.ModeRun, QueueNames: []string{"north", "south"}}

func testNamedQueuesInRun(t *testing.T, c *center.Center) {
	t.Run("R6 a queue that is added during a run is not swept", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		r.must(c.Roster().Operator("test").AddQueue(t.Context(), r.task, "west", ""))
		r.rebalance("A")
		if len(r.claim("A", "west")) != 0 {
			t.Fatal("the queue was claimed for a run that began without it")
		}
		r.finishAll("A", "north", "south")
		r.wantState(id, runs.Success)
		r.submitAndOpen("next")
		r.claimOne("A", "west")
	})
	t.Run("N2 a queue that is removed during a run is cancelled in it", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "south")
		r.finishAll("A", "north")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.wantQueueStates(id, "north DONE", "south RUNNING") // until the owner has drained it
		r.must(c.Engine().Sweeps.Suspend(t.Context(), s, runs.Progress{}))
		if !r.finishRemoval("A", "south") {
			t.Fatal("the drained queue was not removed")
		}
		r.wantQueueStates(id, "north DONE", "south CANCELLED")
		r.tick()
		r.wantState(id, runs.Success)
		r.wantMessage(id, "without 1 queue that was removed")
	})
	t.Run("R6 N2 a queue under removal is not swept", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.wantQueueStates(r.submitAndOpen("k"), "north PENDING")
	})
	t.Run("R11 N2 a rerun leaves out a queue that is gone", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		r.failAll("A", "no", "north", "south")
		r.must(c.Roster().Operator("test").RemoveQueue(t.Context(), r.task, "south"))
		r.finishRemoval("A", "south")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		r.wantQueueStates(id, "north PENDING", "south CANCELLED")
	})
	t.Run("R12 a rerun sweeps the queues whose rows retention has deleted", func(t *testing.T) {
		r := newFixture(t, c, namedRun)
		r.join("A")
		id := r.submitAndOpen("k")
		r.failAll("A", "no", "north", "south")
		// As after a step of retention that was full: the other rows are left to the next audit.
		r.exec("DELETE FROM schedule_run_queue WHERE run_id = '%s' AND queue_id = 'north'", id)
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		r.wantQueueStates(id, "north PENDING", "south PENDING")
	})
}

func testRepartitionInRun(t *testing.T, c *center.Center) {
	repartition := func(r *fixture, total int) {
		r.Helper()
		r.repartition(total)
		r.drainAll("A")
		r.wantChanges("")
	}
	t.Run("N1 an open run keeps its number of queues", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		r.must(c.Engine().Sweeps.Suspend(t.Context(), r.claimOne("A", "1"), runs.Progress{}))
		repartition(r, 4)
		if s := r.claimOne("A", "1"); s.QueueTotal != 2 {
			t.Fatalf("claimed %+v, want a sweep of 2 queues", s)
		}
		r.finishAll("A", "1")
		if run := r.wantState(id, runs.Success); run.QueueTotal != 2 {
			t.Fatalf("the run has %d queues, want 2", run.QueueTotal)
		}
		if r.submitAndOpen("next"); len(r.claim("A", "0", "1", "2", "3")) != 4 {
			t.Fatal("the next run does not have 4 queues")
		}
	})
	t.Run("N1 fewer queues fail an open run, and a rerun sweeps all", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		repartition(r, 2)
		r.wantQueueStates(id, "0 DONE", "1 PENDING", "2 FAILED")
		r.finishAll("A", "1")
		r.wantState(id, runs.Failed)
		r.wantMessage(id, "first queue 2: there are fewer queues now: rerun the run")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		if run := r.wantState(id, runs.Running); run.QueueTotal != 2 {
			t.Fatalf("the rerun has %d queues, want 2", run.QueueTotal)
		}
		r.wantQueueStates(id, "0 PENDING", "1 PENDING")
	})
}

func testBarrierInRun(t *testing.T, c *center.Center) {
	t.Run("N1 no run is opened during the barrier", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		r.repartition(3)
		id := r.submit("k")
		_, hour := r.hourly(func(t *runs.Trigger) { t.Priority = -1 })
		r.downSince(hour) // the tick also has a trigger to fire
		if r.tick(); r.run(id).State != runs.Ready || !r.readTrigger(r.task).PrevFireAt.Equal(hour) {
			t.Fatalf("during the barrier the run is %s and the trigger is %+v, want READY and its slot taken", r.run(id).State, r.readTrigger(r.task))
		}
		r.drainAll("A")
		r.tick()
		if run := r.wantState(id, runs.Running); run.QueueTotal != 3 {
			t.Fatalf("the run has %d queues, want 3", run.QueueTotal)
		}
	})
}

func testHandoverInRun(t *testing.T, c *center.Center) {
	t.Run("R8 H2 a queue that is handed over goes on at its cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "1")
		r.join("B") // requests queue 1
		r.moveCursor(s, "5")
		r.must(c.Engine().Sweeps.Suspend(t.Context(), s, runs.Progress{ItemsDone: 2}))
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B")
		if s := r.claimOne("B", "1"); s.Cursor != "5" || s.Recoveries > 0 {
			t.Fatalf("the new owner claimed %+v, want cursor 5 and not recovering", s)
		}
		r.finishAll("B", "1")
		r.finishAll("A", "0")
		r.wantState(id, runs.Success)
	})
}
