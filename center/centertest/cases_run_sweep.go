package centertest

import (
	"errors"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

func testSweepClaims(t *testing.T, c *center.Center) {
	t.Run("R7 a take-over resumes from the cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		old := r.claimOne("A", "0")
		r.moveCursor(old, "17")
		r.must(c.Engine().Sweeps.Save(t.Context(), old, runs.Progress{ItemsDone: 3}))
		r.moveQueue("0", "B")
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("a server claimed a queue that it had lost")
		}
		s := r.claimOne("B", "0")
		if s.Cursor != "17" || s.ItemsDone != 3 || s.Recoveries == 0 || s.Attempt != 1 {
			t.Fatalf("the new owner claimed %+v, want a recovering first attempt with cursor 17 and 3 items done", s)
		}
		r.must(c.Engine().Sweeps.Finish(t.Context(), s, runs.Progress{ItemsDone: 5}))
		if run := r.wantState(id, runs.Success); run.ItemsDone != 5 {
			t.Fatalf("the run has %d items done, want 5", run.ItemsDone)
		}
	})
	t.Run("R7 a server claims a queue again after a lost reply", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		r.claimOne("A", "0") // the server never sees this reply
		if s := r.claimOne("A", "0"); s.Recoveries == 0 || s.Attempt != 1 {
			t.Fatalf("claimed %+v, want a recovering first attempt", s)
		}
	})
	t.Run("R7 a claim returns at most as many sweeps as asked for", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		r.submitAndOpen("k")
		held := []center.QueueEpoch{{ID: "0", Epoch: r.epoch("0")}, {ID: "1", Epoch: r.epoch("1")}, {ID: "2", Epoch: r.epoch("2")}}
		for i, want := range []int{2, 1} {
			sweeps, err := c.Engine().Sweeps.Claim(t.Context(), r.task, r.uuid("A"), held[2*i:], 2)
			if err != nil || len(sweeps) != want {
				t.Fatalf("claimed %d sweeps, want %d: %v", len(sweeps), want, err)
			}
		}
	})
}

func testSweepSuspension(t *testing.T, c *center.Center) {
	t.Run("R8 a suspended sweep is neither an attempt nor a take-over", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		for range 10 {
			s := r.claimOne("A", "0")
			if s.Attempt != 1 || s.Recoveries > 0 {
				t.Fatalf("claimed %+v, want a first attempt that is not recovering", s)
			}
			r.moveCursor(s, "4")
			r.must(c.Engine().Sweeps.Suspend(t.Context(), s, runs.Progress{}))
		}
		if s := r.claimOne("A", "0"); s.Cursor != "4" {
			t.Fatalf("claimed cursor %q, want 4", s.Cursor)
		}
	})
}

func testSweepFence(t *testing.T, c *center.Center) {
	t.Run("R8 the late writes of a server that has lost the queue are rejected", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		zombie := r.claimOne("A", "0")
		r.moveQueue("0", "B") // B has not claimed it yet
		for name, err := range map[string]error{
			"done": c.Engine().Sweeps.Finish(t.Context(), zombie, runs.Progress{}),
			"save": c.Engine().Sweeps.Save(t.Context(), zombie, runs.Progress{ItemsDone: 99}),
			"fail": second(c.Engine().Sweeps.Fail(t.Context(), zombie, runs.Progress{}, "no", true)),
			"stop": c.Engine().Sweeps.Suspend(t.Context(), zombie, runs.Progress{}),
		} {
			if !center.IsFenced(err) {
				t.Errorf("%s under an old epoch: error %v, want ErrFenced", name, err)
			}
		}
		s := r.claimOne("B", "0")
		if s.Cursor != "" {
			t.Fatalf("the new owner claimed cursor %q, want none", s.Cursor)
		}
		if err := c.Engine().Sweeps.Finish(t.Context(), zombie, runs.Progress{}); !center.IsFenced(err) {
			t.Fatalf("finish after the claim of the new owner: error %v, want ErrFenced", err)
		}
		r.wantQueueStates(id, "0 RUNNING")
	})
	t.Run("R8 a sweep ends when another server has claimed its queue", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		r.exec("UPDATE schedule_run_queue SET server = 'other' WHERE run_id = '%s'", s.RunID)
		if err := c.Engine().Sweeps.Finish(t.Context(), s, runs.Progress{}); !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("finish the lost sweep: error %v, want ErrRunOver", err)
		}
	})
}

// LoneSweep checks that a transaction that saves the cursor of the only sweep of the database holds no place beside its
// row, as testPlaceBesideFence does for the row of the queue. MariaDB finds the only RUNNING row by the index of states.
// So the case needs a database of its own.
func LoneSweep(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	r := newRunFixture(t, c, 500)
	r.submitAndOpen("k")
	s := r.claimOne("A", "99")
	if c.Dialect().Family() == schema.MySQL {
		r.exec("ANALYZE TABLE schedule_run_queue")
	}
	tx, err := c.DB().BeginTx(t.Context(), nil)
	r.must(err)
	defer tx.Rollback()
	r.must(center.Fence(r.sweepBatch(s, "", "x"), tx))
	r.claimOne("A", "1")
}

func testSweepCursor(t *testing.T, c *center.Center) {
	t.Run("R8 F4 the fence saves the cursor of a sweep in the row of the run", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		ctx := r.sweepBatch(s, "", "17")
		r.must(center.Fence(ctx, tx))
		r.must(tx.Commit())
		r.must(center.SaveCursor(ctx)) // writes nothing, since the fence has saved it
		if got := r.runQueue(s.RunID, "0").Cursor; got != "17" {
			t.Fatalf("cursor %q, want 17", got)
		}
		r.must(center.SaveCursor(r.sweepBatch(s, "17", "18")))
		if got := r.runQueue(s.RunID, "0").Cursor; got != "18" || r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cursor_value <> ''", r.task) > 0 {
			t.Fatalf("cursor %q, want 18 in the run and none in schedule_queue", got)
		}
		tx, err = c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		if err := center.Fence(r.sweepBatch(s, "17", "19"), tx); !center.IsFenced(err) {
			t.Fatalf("save a cursor from where it does not stand: error %v, want ErrFenced", err)
		}
		r.must(tx.Rollback())
		r.must(c.Engine().Runs.Cancel(t.Context(), s.RunID, "test"))
		if err := center.SaveCursor(r.sweepBatch(s, "18", "19")); !center.IsFenced(err) || !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("save the cursor of a cancelled run: error %v, want ErrFenced and ErrRunOver", err)
		}
	})
	t.Run("F4 only the server that sweeps a queue reads the cursor", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		own := center.QueueEpoch{ID: "0", Epoch: s.Epoch}
		r.moveCursor(s, "17")
		if cursor, err := c.Engine().Sweeps.Cursor(t.Context(), s.RunID, s.Server, own); err != nil || cursor != "17" {
			t.Fatalf("cursor %q, want 17: %v", cursor, err)
		}
		r.moveQueue("0", "B")
		r.claimOne("B", "0")
		if _, err := c.Engine().Sweeps.Cursor(t.Context(), s.RunID, s.Server, own); !center.IsFenced(err) || !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("read the cursor of the sweep of B: error %v, want ErrFenced and ErrRunOver", err)
		}
	})
	t.Run("R8 F4 a cursor is not saved under an old epoch", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		r.moveQueue("0", "B") // B has not claimed it yet
		if err := center.SaveCursor(r.sweepBatch(s, "", "17")); !center.IsFenced(err) {
			t.Fatalf("save a cursor under an old epoch: error %v, want ErrFenced", err)
		}
	})
}

func testSweepRetries(t *testing.T, c *center.Center) {
	t.Run("R11 a failed queue is tried again after a pause that doubles", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.finishAll("A", "1")
		for attempt, pause := range []time.Duration{30 * time.Second, time.Minute} {
			s := r.claimOne("A", "0")
			if s.Attempt != attempt+1 || s.Recoveries > 0 {
				t.Fatalf("claimed %+v, want attempt %d and not recovering", s, attempt+1)
			}
			r.moveCursor(s, "3")
			failed, err := c.Engine().Sweeps.Fail(t.Context(), s, runs.Progress{ItemsFailed: 1}, "no luck", false)
			if err != nil || failed {
				t.Fatalf("the queue has failed: %t, want another attempt: %v", failed, err)
			}
			q := r.runQueue(id, "0")
			if got := q.NextAttemptAt.Sub(q.ProgressAt).Round(time.Second); got != pause || q.State != runs.QueuePending || q.LastError != "no luck" {
				t.Fatalf("the next attempt is after %s, want %s, and the queue PENDING with its error: %+v", got, pause, q)
			}
			if len(r.claim("A", "0")) != 0 {
				t.Fatal("the queue was claimed during the pause")
			}
			r.wantMessage(id, "no luck")
			r.exec("UPDATE schedule_run_queue SET next_attempt_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", id)
		}
		s := r.claimOne("A", "0")
		if s.Cursor != "3" || s.ItemsFailed != 1 {
			t.Fatalf("claimed %+v, want cursor 3 and 1 failed item", s)
		}
		failed, err := c.Engine().Sweeps.Fail(t.Context(), s, runs.Progress{}, "no luck at all", false)
		if err != nil || !failed {
			t.Fatalf("the queue has failed: %t, want true after the last attempt: %v", failed, err)
		}
		r.wantState(id, runs.Failed)
		r.wantMessage(id, "1 of 2 queues failed, first queue 0: no luck at all")
		r.wantQueueStates(id, "0 FAILED", "1 DONE")
	})
	t.Run("R11 take-overs without progress fail a queue", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.exec("UPDATE schedule_task_type SET max_recoveries = 2 WHERE task_type = '%s'", r.task)
		id := r.submitAndOpen("k")
		r.claimOne("A", "0")
		r.claimOne("A", "0")
		r.must(c.Engine().Sweeps.Save(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 1})) // progress: the count starts anew
		r.claimOne("A", "0")
		r.must(c.Engine().Sweeps.Save(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 1})) // no progress
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("the queue was taken over more than max_recoveries times")
		}
		r.wantState(id, runs.Failed)
		r.wantMessage(id, "first queue 0: taken over more than 2 times without progress")
	})
	t.Run("S14 take-overs that an item explains fail no queue", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		r.exec("UPDATE schedule_task_type SET max_recoveries = 1 WHERE task_type = '%s'", r.task)
		id := r.submitAndOpen("k")
		killer := func(state string) {
			t.Helper()
			r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "a", QueueID: "1", Partition: r.partition(), State: state}}))
		}
		r.claimOne("A", "0")
		r.claimOne("A", "0")
		killer(ops.ItemStarted) // of another queue of the same process
		r.claimOne("A", "0")
		killer(ops.ItemDead)
		r.claimOne("A", "0")
		if len(r.claim("A", "0")) != 0 {
			t.Fatal("the queue was taken over once more, although no item has died since")
		}
		r.wantQueueStates(id, "0 FAILED", "1 PENDING")
	})
	t.Run("X4 the unfinished queues of a run are counted", func(t *testing.T) {
		r := newRunFixture(t, c, 3)
		id := r.submitAndOpen("k")
		want := func(server string, own, all int) {
			t.Helper()
			gotOwn, gotAll, err := c.Engine().Sweeps.Unfinished(t.Context(), id, r.uuid(server))
			r.must(err)
			if gotOwn != own || gotAll != all {
				t.Errorf("%s owns %d of %d unfinished queues, want %d of %d", server, gotOwn, gotAll, own, all)
			}
		}
		want("A", 3, 3)
		r.claimOne("A", "1")
		want("A", 3, 3)
		r.finishAll("A", "0")
		want("A", 2, 2)
		r.exec("UPDATE schedule_queue SET cur_server = NULL WHERE queue_id = '1' AND task_type = '%s'", r.task)
		want("A", 1, 2)
	})
}
