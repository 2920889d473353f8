package centertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
)

// testInspectRuns checks that the lists of runs and triggers show what the tables hold.
func testInspectRuns(t *testing.T, c *center.Center) {
	t.Run("runs", func(t *testing.T) {
		r := newRunFixture(t, c, 12)
		if _, err := c.Engine().LatestRun(t.Context(), r.task); !errors.Is(err, center.ErrUnknownRun) {
			t.Fatal(err)
		}
		first := r.submitAndOpen("first")
		r.finishAll("A", "0", "10")
		r.failAll("A", "broken", "2")
		r.claimOne("A", "1")
		second := r.submit("second")
		list, err := c.Engine().RunRecords(t.Context(), center.RunFilter{TaskType: r.task}, 10)
		r.must(err)
		if len(list) != 2 || list[0].ID != second || list[0].Queues() != 0 || list[0].State != center.RunReady || list[0].Now.IsZero() {
			t.Fatalf("%+v", list)
		}
		if one := list[1]; one.QueuesDone != 2 || one.QueuesFailed != 1 || one.QueuesRunning != 1 || one.QueuesPending != 8 || one.Queues() != 12 || one.ItemsDone != 2 {
			t.Fatalf("%+v", one)
		}
		if diff := cmp.Diff(r.run(second), list[0].Run); diff != "" {
			t.Fatalf("RunRecords differs from Run (-Run +RunRecords):\n%s", diff)
		}
		task := r.taskRecord()
		if task.RunID == nil || *task.RunID != first {
			t.Fatalf("the task's running run is %v, want %s", task.RunID, first)
		}
		r.must(c.Engine().CancelRun(t.Context(), first, "test"))
		list, err = c.Engine().RunRecords(t.Context(), center.RunFilter{TaskType: r.task, State: center.RunCancelled}, 10)
		if err != nil || len(list) != 1 || list[0].QueuesCancelled != 9 || list[0].ItemsDone != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		if latest, err := c.Engine().LatestRun(t.Context(), r.task); err != nil || latest.ID != second {
			t.Fatalf("%+v, %v", latest, err)
		}
		if task := r.taskRecord(); task.RunID != nil {
			t.Fatalf("the task has running run %s, which is cancelled", *task.RunID)
		}
	})
	t.Run("queues in natural order", func(t *testing.T) {
		r := newRunFixture(t, c, 12)
		var ids []string
		for _, state := range r.queueStates(r.submitAndOpen("first")) {
			ids = append(ids, strings.Fields(state)[0])
		}
		if want := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11"); !slices.Equal(ids, want) {
			t.Fatalf("%v", ids)
		}
	})
	t.Run("latest run of a task type without runs", func(t *testing.T) {
		if _, err := c.Engine().LatestRun(t.Context(), "no such"); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatal(err)
		}
		r := newFixture(t, c, center.Settings{Queues: 1})
		if _, err := c.Engine().LatestRun(t.Context(), r.task); err == nil || !strings.Contains(err.Error(), "mode is CONTINUOUS") {
			t.Fatal(err)
		}
	})
	t.Run("submit once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first, there, err := c.Engine().SubmitOnce(t.Context(), r.task, "k", "")
		if err != nil || there {
			t.Fatal(first, there, err)
		}
		if again, there, err := c.Engine().SubmitOnce(t.Context(), r.task, "k", ""); err != nil || !there || again != first {
			t.Fatal(again, there, err)
		}
		if other, there, err := c.Engine().SubmitOnce(t.Context(), r.task, "", ""); err != nil || there || other == first {
			t.Fatal(other, there, err)
		}
	})
	t.Run("triggers", testInspectTriggers(c))
	t.Run("compare a trigger", testCompareTrigger(c))
}

func testInspectTriggers(c *center.Center) func(*testing.T) {
	return func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		hourly, _ := r.hourly(nil)
		now := r.defineTrigger(hourly)
		for _, f := range []center.TriggerFilter{{Name: r.task}, {Target: r.task}} {
			list, err := c.Engine().TriggerRecords(t.Context(), f)
			r.must(err)
			if len(list) != 1 || list[0].OwnSign != c.OwnSign() || list[0].MisfireAfterMS != (3*time.Hour).Milliseconds() || list[0].Now.IsZero() {
				t.Fatalf("%+v", list)
			}
			if diff := cmp.Diff(now, list[0].Trigger); diff != "" {
				t.Fatalf("TriggerRecords differs from Triggers:\n%s", diff)
			}
		}
		if list, err := c.Engine().TriggerRecords(t.Context(), center.TriggerFilter{Name: "no such"}); err != nil || len(list) != 0 {
			t.Fatal(list, err)
		}
	}
}

// testCompareTrigger checks that ApplyTrigger makes the trigger that CompareTrigger returns.
func testCompareTrigger(c *center.Center) func(*testing.T) {
	return func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		start := r.now().Truncate(time.Hour).Add(24 * time.Hour)
		want := center.Trigger{Name: r.task, Target: r.task, Kind: center.TriggerEvery, Expression: "1h", StartAt: start, MaxFires: 3}
		compare := func(changes int) center.TriggerDiff {
			t.Helper()
			a, err := c.Engine().CompareTrigger(t.Context(), want, 5)
			r.must(err)
			if len(a.Changes) != changes {
				t.Fatalf("%+v", a.Changes)
			}
			return a
		}
		a := compare(0)
		if a.Exists || a.Same() || !slices.Equal(a.Next, []time.Time{start, start.Add(time.Hour), start.Add(2 * time.Hour)}) {
			t.Fatalf("%+v", a)
		}
		if list, err := c.Engine().TriggerRecords(t.Context(), center.TriggerFilter{Name: r.task}); err != nil || len(list) != 0 {
			t.Fatalf("CompareTrigger wrote a trigger: %+v, %v", list, err)
		}
		now, err := c.Engine().ApplyTrigger(t.Context(), want, "test")
		r.must(err)
		if diff := cmp.Diff(a.Trigger, now); diff != "" {
			t.Fatalf("triggers differ (-CompareTrigger +ApplyTrigger):\n%s", diff)
		}
		if a := compare(0); !a.Same() {
			t.Fatalf("%+v", a)
		}
		want.Expression, want.Params = "2h", "new"
		a = compare(2)
		if diff := cmp.Diff([]center.Difference{{Name: "expression", Row: "1h", Given: "2h"}, {Name: "params", Given: "new"}}, a.Changes); diff != "" || a.Same() {
			t.Fatal(diff)
		}
		want.Target = "no such"
		if _, err := c.Engine().CompareTrigger(t.Context(), want, 5); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatal(err)
		}
	}
}
