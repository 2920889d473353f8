package centertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func testRunFinaliser(t *testing.T, c *center.Center, url string) {
	t.Run("the Center that ends a run reports it once", func(t *testing.T) {
		var ended []runs.Run
		r := newRunFixture(t, Open(t, url, center.Options{OnRunEnd: func(r runs.Run) { ended = append(ended, r) }}), 1)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		r.tick()
		if len(ended) != 1 || ended[0].ID != id || ended[0].State != runs.Success || ended[0].StartedAt.IsZero() ||
			ended[0].FinishedAt.Before(ended[0].StartedAt) || ended[0].TraceParent != traceParent {
			t.Fatalf("the runs that were reported are %+v, want run %s", ended, id)
		}
	})
	t.Run("R10 the last two queues finish at the same time", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		other := Open(t, url, center.Options{})
		for i := range 20 {
			id := r.submitAndOpen(fmt.Sprint(i))
			sweeps := r.claim("A", "0", "1")
			var both sync.WaitGroup
			errs := make([]error, 2)
			for j, c := range []*center.Center{c, other} {
				both.Go(func() { errs[j] = c.Engine().Sweeps.Finish(t.Context(), sweeps[j], runs.Progress{}) })
			}
			both.Wait()
			r.must(errors.Join(errs...))
			r.wantState(id, runs.Success) // without a tick
		}
	})
	t.Run("R10 a tick ends a run whose last queue is done", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET state = 'DONE' WHERE run_id = '%s'", id)
		r.tick()
		r.wantState(id, runs.Success)
	})
	t.Run("R10 the finaliser waits for a concurrent rerun", func(t *testing.T) {
		if !locksReach(t, c) {
			return
		}
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET state = 'FAILED' WHERE run_id = '%s'", id)
		// A rerun that also opens the run is not committed yet. The finaliser has read the rows before it, and waits for the
		// row of the run.
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		for _, statement := range []string{
			"UPDATE schedule_run SET version = version + 1 WHERE run_id = '%s'",
			"UPDATE schedule_run_queue SET state = 'PENDING' WHERE run_id = '%s'",
		} {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf(statement, id))
			r.must(err)
		}
		finalised := make(chan error, 1)
		go func() { finalised <- second(c.Engine().Scheduler.Tick(t.Context(), r.task)) }()
		select {
		case err := <-finalised:
			r.must(err) // the finaliser decided from rows that are out of date
			r.Fatal("the finaliser did not wait for the row of the run")
		case <-time.After(100 * time.Millisecond): // the finaliser waits: not every database shows its locks
		}
		r.must(tx.Commit())
		r.must(<-finalised)
		r.wantState(id, runs.Running)
		r.finishAll("A", "0")
		r.wantState(id, runs.Success)
	})
}

func testRunEnd(t *testing.T, c *center.Center) {
	t.Run("R9 a run ends at its deadline while a server sweeps it", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		s := r.claimOne("A", "1")
		r.exec("UPDATE schedule_run SET deadline_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id)
		if ticked := r.tick(); ticked.Open != "" {
			t.Fatalf("run %s is open after its deadline, want none", ticked.Open)
		}
		r.wantState(id, runs.Failed)
		r.wantMessage(id, "the deadline of the run has passed: 1 of 2 queues were not done")
		r.wantQueueStates(id, "0 DONE", "1 FAILED")
		if err := c.Engine().Sweeps.Finish(t.Context(), s, runs.Progress{}); !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("finish a sweep after the deadline: error %v, want ErrRunOver", err)
		}
	})
	t.Run("R9 a run whose owner is dead is cancelled at once", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		s := r.claimOne("A", "1")
		r.makeSilent("A")
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.wantState(id, runs.Cancelled)
		r.wantQueueStates(id, "0 DONE", "1 CANCELLED")
		if err := c.Engine().Sweeps.Save(t.Context(), s, runs.Progress{}); !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("save a sweep of a cancelled run: error %v, want ErrRunOver", err)
		}
		if err := c.Engine().Runs.Cancel(t.Context(), id, "test"); !errors.Is(err, runs.ErrRunState) {
			t.Fatalf("cancel a run twice: error %v, want ErrRunState", err)
		}
	})
	t.Run("R9 a tick completes an interrupted cancel", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		running, ready := r.submitAndOpen("1"), r.submit("2")
		r.exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE task_type = '%s'", r.task)
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a queue was claimed although the cancel is requested")
		}
		r.tick()
		r.wantState(running, runs.Cancelled)
		r.wantState(ready, runs.Cancelled)
	})
}

func testRerun(t *testing.T, c *center.Center) {
	t.Run("R11 a rerun repeats only the queues that failed", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		id := r.submitAndOpen("k")
		r.finishAll("A", "0")
		first := r.claimOne("A", "1")
		r.moveCursor(first, "17")
		r.must(c.Engine().Sweeps.Save(t.Context(), first, runs.Progress{ItemsDone: 4}))
		r.failAll("A", "no", "1", "2")
		run := r.wantState(id, runs.Failed)
		next := r.submitAndOpen("next")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.wantQueueStates(id, "0 DONE", "1 PENDING", "2 PENDING")
		if ticked := r.tick(); ticked.Open != next {
			t.Fatalf("run %q is open, want only run %s", ticked.Open, next)
		}
		if len(r.claim("A", "1")) != 1 || r.runQueue(id, "1").State != runs.QueuePending {
			t.Fatal("the claim took the queue of the run that is not open")
		}
		r.must(c.Engine().Runs.Cancel(t.Context(), next, "test"))
		r.tick()
		again := r.wantState(id, runs.Running)
		if !again.StartedAt.Equal(run.StartedAt) || !again.DeadlineAt.After(run.DeadlineAt) {
			t.Fatalf("the rerun is %+v, want the first start and a later deadline", again)
		}
		if s := r.claimOne("A", "1"); s.Cursor != "17" || s.Attempt != 1 || s.Recoveries > 0 {
			t.Fatalf("claimed %+v, want a first attempt from cursor 17 that is not recovering", s)
		}
		if err := c.Engine().Runs.Rerun(t.Context(), id, "test"); !errors.Is(err, runs.ErrRunState) {
			t.Fatalf("rerun a run that is open: error %v, want ErrRunState", err)
		}
		r.finishAll("A", "1", "2")
		r.wantState(id, runs.Success)
	})
}

func testRunRetention(t *testing.T, c *center.Center) {
	t.Run("R12 an old run is deleted unless an open run waits for it", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		var ids []string
		for i := range 3 {
			ids = append(ids, r.submitAndOpen(fmt.Sprint(i)))
			r.finishAll("A", "0", "1")
		}
		old := func(id string) {
			// The id tells when a run was made: the run gets the id of an old one.
			r.exec("UPDATE schedule_run_queue SET run_id = '0%s' WHERE run_id = '%s'", id[1:], id)
			r.exec("UPDATE schedule_run SET run_id = '00000000%s', finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id[8:], id)
			r.exec("UPDATE schedule_run_queue SET run_id = '00000000%s' WHERE run_id = '0%s'", id[8:], id[1:])
		}
		old(ids[0])
		old(ids[1])
		needed := "00000000" + ids[1][8:]
		waits := r.submit("waits", needed)
		r.exec("UPDATE schedule_run SET state = 'WAITING' WHERE run_id = '%s'", waits)
		for range 5 {
			_, err := ops.New(c).Clean(t.Context(), time.Hour)
			r.must(err)
		}
		if got := r.readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' ORDER BY run_id", r.task); !slices.Equal(got, []string{needed, ids[2], waits}) {
			t.Fatalf("runs %v are left, want %v", got, []string{needed, ids[2], waits})
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = '00000000%s'", ids[0][8:]); n != 0 {
			t.Fatalf("%d queues of a deleted run are left, want 0", n)
		}
		r.exec("UPDATE schedule_run SET state = 'CANCELLED', finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", waits)
		_, err := ops.New(c).Clean(t.Context(), time.Hour)
		r.must(err)
		if n := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE run_id = '%s'", needed); n != 0 {
			t.Fatal("an upstream is kept although the run that waited for it has ended")
		}
	})
}
