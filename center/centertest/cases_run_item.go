package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// itemFailures returns failures of items that have just occurred.
func itemFailures(keys ...string) (list []runs.ItemFailure) {
	for _, key := range keys {
		list = append(list, runs.ItemFailure{Key: key, Error: key + " is broken", At: time.Now()})
	}
	return list
}

// wantRunItems checks the failed items of a run, as "queue/key/attempt".
func (r runSteps) wantRunItems(id string, want ...string) {
	r.Helper()
	list, err := ops.New(r.c).Runs().FailedItems(r.Context(), runs.FailedItemFilter{RunID: id}, 1_000)
	r.must(err)
	var got []string
	for _, i := range list {
		got = append(got, fmt.Sprintf("%s/%s/%d", i.QueueID, i.Key, i.Attempt))
	}
	if !slices.Equal(got, want) {
		r.Fatalf("the failed items of the run are %v, want %v", got, want)
	}
}

// saveFailed saves that the items of a sweep have failed.
func (r runSteps) saveFailed(s runs.Sweep, keys ...string) {
	r.Helper()
	p := runs.Progress{ItemsFailed: int64(len(keys)), Failed: itemFailures(keys...)}
	r.must(r.c.Engine().Sweeps.Save(r.Context(), s, p))
}

// failWith fails a sweep after a whole pass, and makes its next attempt due.
func (r runSteps) failWith(s runs.Sweep, final bool, keys ...string) {
	r.Helper()
	p := runs.Progress{ItemsFailed: int64(len(keys)), Failed: itemFailures(keys...), Whole: true}
	r.must(second(r.c.Engine().Sweeps.Fail(r.Context(), s, p, "no", final)))
	r.exec("UPDATE schedule_run_queue SET next_attempt_at = NULL WHERE run_id = '%s'", s.RunID)
}

// testRunItems checks which failed items a run shows.
func testRunItems(t *testing.T, c *center.Center) {
	t.Run("R8 failed items are recorded once", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		r.saveFailed(s, "b", "a")
		r.saveFailed(s, "b", "a", "c", "c")
		r.saveFailed(r.claimOne("A", "1"), strings.Repeat("ü", 300), "z\x00")
		r.wantRunItems(id, "0/b/1", "0/a/1", "0/c/1", "1/"+strings.Repeat("ü", 255)+"/1", "1/z/1")
		list, err := ops.New(c).Runs().FailedItems(t.Context(), runs.FailedItemFilter{RunID: id, QueueID: "0"}, 2)
		if err != nil || len(list) != 2 || list[0].LastError != "b is broken" || list[0].RunID != id || r.now().Sub(list[0].FailedAt).Abs() > time.Minute {
			t.Fatalf("listed %+v, want the first two of queue 0 with their errors: %v", list, err)
		}
	})
	t.Run("R8 a server that has lost the queue records no failed items", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		zombie := r.claimOne("A", "0")
		r.saveFailed(zombie, "a")
		r.moveQueue("0", "B")
		late := runs.Progress{Failed: itemFailures("late"), Whole: true}
		for name, err := range map[string]error{
			"save": c.Engine().Sweeps.Save(t.Context(), zombie, late),
			"done": c.Engine().Sweeps.Finish(t.Context(), zombie, late),
			"fail": second(c.Engine().Sweeps.Fail(t.Context(), zombie, late, "no", true)),
			"stop": c.Engine().Sweeps.Suspend(t.Context(), zombie, late),
		} {
			if !center.IsFenced(err) {
				t.Errorf("%s under an old epoch: error %v, want ErrFenced", name, err)
			}
		}
		r.wantRunItems(id, "0/a/1")
		r.saveFailed(r.claimOne("B", "0"), "b", "a") // the next owner finds the item again, and another one
		r.wantRunItems(id, "0/a/1", "0/b/1")
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.wantRunItems(id, "0/a/1", "0/b/1")
	})
	t.Run("R8 a sweep that is over records no failed items", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		if err := c.Engine().Sweeps.Save(t.Context(), s, runs.Progress{Failed: itemFailures("late")}); !errors.Is(err, runs.ErrRunOver) {
			t.Fatalf("save after the end: error %v, want ErrRunOver", err)
		}
		r.wantRunItems(id)
	})
}

// testAttemptItems checks which failed items a run keeps from one attempt to the next.
func testAttemptItems(t *testing.T, c *center.Center) {
	t.Run("R11 an attempt keeps what earlier ones have recorded until it is through", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.failWith(r.claimOne("A", "0"), false, "a", "b", "c")
		s := r.claimOne("A", "0")
		r.saveFailed(s, "b")
		r.wantRunItems(id, "0/a/1", "0/c/1", "0/b/2")
		r.must(c.Engine().Sweeps.Suspend(t.Context(), s, runs.Progress{Failed: itemFailures("b", "d"), ItemsFailed: 2}))
		r.wantRunItems(id, "0/a/1", "0/c/1", "0/b/2", "0/d/2")
		r.failWith(r.claimOne("A", "0"), false, "c", "d")
		r.wantRunItems(id, "0/d/2", "0/c/2")
		r.must(c.Engine().Sweeps.Finish(t.Context(), r.claimOne("A", "0"), runs.Progress{ItemsDone: 4}))
		r.wantRunItems(id) // all of them have succeeded
	})
	t.Run("R11 a rerun knows which items have failed", func(t *testing.T) {
		r := newRunFixture(t, c, 2)
		id := r.submitAndOpen("k")
		r.failWith(r.claimOne("A", "0"), true, "a")
		r.finishAll("A", "1")
		r.wantState(id, runs.Failed)
		r.wantRunItems(id, "0/a/1")
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.wantRunItems(id, "0/a/1")
		if n := r.runQueue(id, "0").ItemsFailed; n != 1 {
			t.Fatalf("the queue begins with %d failed items, want those of before", n)
		}
		r.tick()
		s := r.claimOne("A", "0")
		if !slices.Equal(s.FailedBefore, []string{"a"}) || s.ItemsFailed != 1 || s.Attempt != 1 {
			t.Fatalf("the sweep is %+v, want attempt 1 with a as the item that failed before", s)
		}
		r.wantRunItems(id, "0/a/0")
		r.saveFailed(s, "b")
		r.moveQueue("0", "B")
		if s = r.claimOne("B", "0"); !slices.Equal(s.FailedBefore, []string{"a", "b"}) {
			t.Fatalf("the sweep after a takeover is %+v, want a and b as the items that failed before", s)
		}
		if err := c.Engine().Runs.Rerun(t.Context(), id, "test"); !errors.Is(err, runs.ErrRunState) {
			t.Fatalf("rerun of an open run: error %v, want ErrRunState", err)
		}
		r.failWith(s, true, "a")
		r.wantRunItems(id, "0/a/1") // b has succeeded
	})
}

// testManyRunItems checks the bounds of the failed items of a run.
func testManyRunItems(t *testing.T, c *center.Center) {
	var keys []string
	for i := range 250 {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	t.Run("R8 a queue has at most 100 failed items", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		s := r.claimOne("A", "0")
		p := runs.Progress{ItemsFailed: 250, Failed: itemFailures(keys[:150]...)}
		r.must(c.Engine().Sweeps.Save(t.Context(), s, p))
		p.Failed = itemFailures(keys[100:]...)
		r.must(c.Engine().Sweeps.Save(t.Context(), s, p))
		list, err := ops.New(c).Runs().FailedItems(t.Context(), runs.FailedItemFilter{RunID: id}, 1_000)
		if err != nil || len(list) != 100 || list[99].Key != "k099" {
			t.Fatalf("%d failed items are listed, want the first 100: %v", len(list), err)
		}
		if n := r.runQueue(id, "0").ItemsFailed; n != 250 {
			t.Fatalf("%d items have failed, want 250", n)
		}
		p.Whole, p.Failed = true, itemFailures(keys[200:]...)
		r.must(second(c.Engine().Sweeps.Fail(t.Context(), s, p, "no", true)))
		list, err = ops.New(c).Runs().FailedItems(t.Context(), runs.FailedItemFilter{RunID: id}, 1_000)
		if err != nil || len(list) != 50 || list[0].Key != "k200" {
			t.Fatalf("%d failed items are listed, want those of the last attempt: %v", len(list), err)
		}
	})
	t.Run("R12 the failed items go with their run, some at a time", func(t *testing.T) {
		r := newRunFixture(t, c, 11)
		id := r.submitAndOpen("k")
		for q := range 11 {
			s := r.claimOne("A", fmt.Sprint(q))
			r.must(second(c.Engine().Sweeps.Fail(t.Context(), s, runs.Progress{Failed: itemFailures(keys[:100]...)}, "no", true)))
		}
		r.wantState(id, runs.Failed)
		r.must(c.Engine().Runs.Ack(t.Context(), id, "test"))
		old := "00000000" + id[8:] // the id contains the time at which the run was made
		for _, table := range []string{"schedule_run_queue", "schedule_run_item", "schedule_run"} {
			r.exec("UPDATE %s SET run_id = '%s' WHERE run_id = '%s'", table, old, id)
		}
		r.exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000' WHERE run_id = '%s'", old)
		left := func(table string) int64 {
			return r.readInt("SELECT COUNT(*) FROM %s WHERE run_id = '%s'", table, old)
		}
		for range 5 {
			before := left("schedule_run_item")
			_, err := ops.New(c).Clean(t.Context(), time.Hour)
			r.must(err)
			if n := before - left("schedule_run_item"); n > runs.CleanRows {
				t.Fatalf("one step has deleted %d rows, want at most %d", n, runs.CleanRows)
			}
			if left("schedule_run_item") > 0 && left("schedule_run_queue") == 0 {
				t.Fatal("the queues are deleted before their items")
			}
		}
		if n := left("schedule_run_item") + left("schedule_run_queue") + left("schedule_run"); n != 0 {
			t.Fatalf("%d rows of the run are left", n)
		}
	})
}
