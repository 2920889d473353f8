package centertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testInspectRuns checks that the lists of runs show what the tables hold.
func testInspectRuns(t *testing.T, c *center.Center) {
	t.Run("runs with the states of their queues", func(t *testing.T) {
		r := newRunFixture(t, c, 12)
		if _, err := c.Engine().Runs.Latest(t.Context(), r.task); !errors.Is(err, runs.ErrUnknownRun) {
			t.Fatalf("latest run: error %v, want ErrUnknownRun before the first", err)
		}
		first := r.submitAndOpen("first")
		r.finishAll("A", "0", "10")
		r.failAll("A", "broken", "2")
		r.claimOne("A", "1")
		second := r.submit("second")
		list, err := c.Engine().Runs.List(t.Context(), runs.Filter{TaskType: r.task}, 10)
		r.must(err)
		if len(list) != 2 || list[0].ID != second || list[0].Queues() != 0 || list[0].State != runs.Ready || list[0].Now.IsZero() {
			t.Fatalf("runs %+v, want 2, and first the last one, READY and without queues", list)
		}
		if one := list[1]; one.QueuesDone != 2 || one.QueuesFailed != 1 || one.QueuesRunning != 1 || one.QueuesPending != 8 || one.Queues() != 12 || one.ItemsDone != 2 {
			t.Fatalf("the open run is %+v, want 12 queues: 2 DONE, 1 FAILED, 1 RUNNING, 8 PENDING", one)
		}
		if diff := cmp.Diff(r.run(second), list[0].Run); diff != "" {
			t.Fatalf("the last run (-Run +Record):\n%s", diff)
		}
		of, err := ops.New(c).Runs().OfQueue(t.Context(), r.task, "2", 10)
		r.must(err)
		if len(of) != 1 || of[0].RunID != first || of[0].QueueID != "2" || of[0].State != runs.QueueFailed || of[0].LastError != "broken" {
			t.Fatalf("queue 2 has the runs %+v, want the first one, FAILED", of)
		}
		task := r.taskRecord()
		if task.RunID == nil || *task.RunID != first {
			t.Fatalf("the task type has open run %v, want %s", task.RunID, first)
		}
		r.must(c.Engine().Runs.Cancel(t.Context(), first, "test"))
		list, err = c.Engine().Runs.List(t.Context(), runs.Filter{TaskType: r.task, State: runs.Cancelled}, 10)
		if err != nil || len(list) != 1 || list[0].QueuesCancelled != 9 || list[0].ItemsDone != 2 {
			t.Fatalf("cancelled runs %+v, want 1 with 9 queues CANCELLED: %v", list, err)
		}
		if latest, err := c.Engine().Runs.Latest(t.Context(), r.task); err != nil || latest.ID != second {
			t.Fatalf("latest run %+v, want %s: %v", latest, second, err)
		}
		if task := r.taskRecord(); task.RunID != nil {
			t.Fatalf("the task type has open run %s, want none after the cancel", *task.RunID)
		}
	})
}

// testRunDays checks that runs are counted by the day of UTC for which they were scheduled.
func testRunDays(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 1)
	now := r.now().UTC()
	for range 2 {
		r.submit("")
	}
	r.must(c.Engine().Runs.Cancel(t.Context(), r.submit(""), "test"))
	list, err := ops.New(c).Runs().Days(t.Context(), 3)
	r.must(err)
	list = slices.DeleteFunc(list, func(d runs.Day) bool { return d.TaskType != r.task })
	counts := map[string]int64{}
	for _, d := range list {
		counts[d.State] += d.Runs
		if day, err := time.Parse(time.DateOnly, d.Day); err != nil || now.Sub(day) > 25*time.Hour || day.Sub(now) > time.Hour {
			t.Errorf("the day of %+v: %v", d, err)
		}
	}
	if diff := cmp.Diff(map[string]int64{runs.Ready: 2, runs.Cancelled: 1}, counts); diff != "" {
		t.Errorf("runs by state (-want +got):\n%s", diff)
	}
	if signs, err := ops.New(c).OwnSigns(t.Context()); err != nil || !slices.Contains(signs, c.OwnSign()) || !slices.IsSorted(signs) {
		t.Errorf("environments %q: %v", signs, err)
	}
	other, err := c.In("elsewhere")
	r.must(err)
	if list, err := ops.New(other).Runs().List(t.Context(), runs.Filter{TaskType: r.task}, 10); err != nil || len(list) != 0 || other.OwnSign() != "elsewhere" {
		t.Errorf("runs of another environment: %+v, %v", list, err)
	}
	if _, err := c.In("a\tb"); err == nil {
		t.Error("In takes a name that no environment can have")
	}
}

func testRunLists(t *testing.T, c *center.Center) {
	t.Run("the queues of a run are in natural order", func(t *testing.T) {
		r := newRunFixture(t, c, 12)
		var ids []string
		for _, state := range r.queueStates(r.submitAndOpen("first")) {
			ids = append(ids, strings.Fields(state)[0])
		}
		if want := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11"); !slices.Equal(ids, want) {
			t.Fatalf("queues of the run %v, want %v", ids, want)
		}
	})
	t.Run("the latest run of a task type that has no runs is an error", func(t *testing.T) {
		if _, err := c.Engine().Runs.Latest(t.Context(), "no such"); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("unknown task type: error %v, want ErrUnknownTask", err)
		}
		r := newFixture(t, c, center.Settings{Queues: 1})
		if _, err := c.Engine().Runs.Latest(t.Context(), r.task); err == nil || !strings.Contains(err.Error(), "mode is CONTINUOUS") {
			t.Fatalf("mode CONTINUOUS: error %v, want the mode in it", err)
		}
	})
	t.Run("R1 a key is submitted once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first, there, err := c.Engine().Runs.Submit(t.Context(), r.task, runs.Submission{Key: "k"})
		if err != nil || there {
			t.Fatalf("first submission: run %s, there already: %t, want false: %v", first, there, err)
		}
		if again, there, err := c.Engine().Runs.Submit(t.Context(), r.task, runs.Submission{Key: "k"}); err != nil || !there || again != first {
			t.Fatalf("second submission: run %s, there already: %t, want true and run %s: %v", again, there, first, err)
		}
		if other, there, err := c.Engine().Runs.Submit(t.Context(), r.task, runs.Submission{}); err != nil || there || other == first {
			t.Fatalf("submission without a key: run %s, there already: %t, want a new run: %v", other, there, err)
		}
	})
	t.Run("triggers by name and by target", func(t *testing.T) { testInspectTriggers(t, c) })
	t.Run("the comparison of a trigger is what apply does", func(t *testing.T) { testCompareTrigger(t, c) })
}

// testInspectTriggers checks the list of triggers and its filters.
func testInspectTriggers(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 1)
	hourly, _ := r.hourly(nil)
	now := r.defineTrigger(hourly)
	for _, f := range []runs.TriggerFilter{{Name: r.task}, {Target: r.task}} {
		list, err := c.Engine().Triggers.List(t.Context(), f)
		r.must(err)
		if len(list) != 1 || list[0].OwnSign != c.OwnSign() || list[0].MisfireAfterMS != (3*time.Hour).Milliseconds() || list[0].Now.IsZero() {
			t.Fatalf("triggers under filter %+v: %+v, want 1 with its own_sign, misfire_after and the time", f, list)
		}
		if diff := cmp.Diff(now, list[0].Trigger); diff != "" {
			t.Fatalf("the trigger (-Define +List):\n%s", diff)
		}
	}
	if list, err := c.Engine().Triggers.List(t.Context(), runs.TriggerFilter{Name: "no such"}); err != nil || len(list) != 0 {
		t.Fatalf("triggers of an unknown name %+v, want none: %v", list, err)
	}
}

// testCompareTrigger checks that Apply makes the trigger that Compare returns.
func testCompareTrigger(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 1)
	start := r.now().Truncate(time.Hour).Add(24 * time.Hour)
	want := runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerEvery, Expression: "1h", StartAt: start, MaxFires: 3}
	compare := func(changes int) runs.TriggerDiff {
		t.Helper()
		a, err := c.Engine().Triggers.Compare(t.Context(), want, 5)
		r.must(err)
		if len(a.Changes) != changes {
			t.Fatalf("changes %+v, want %d", a.Changes, changes)
		}
		return a
	}
	a := compare(0)
	if a.Exists || a.Same() || !slices.Equal(a.Next, []time.Time{start, start.Add(time.Hour), start.Add(2 * time.Hour)}) {
		t.Fatalf("comparison %+v, want a new trigger with 3 firings, an hour apart", a)
	}
	if list, err := c.Engine().Triggers.List(t.Context(), runs.TriggerFilter{Name: r.task}); err != nil || len(list) != 0 {
		t.Fatalf("triggers after a comparison %+v, want none: %v", list, err)
	}
	now, err := c.Engine().Triggers.Apply(t.Context(), a, "test")
	r.must(err)
	if diff := cmp.Diff(a.Trigger, now); diff != "" {
		t.Fatalf("the trigger (-Compare +Apply):\n%s", diff)
	}
	if a := compare(0); !a.Same() {
		t.Fatalf("comparison after Apply %+v, want no difference", a)
	}
	want.Expression, want.Params = "2h", "new"
	a = compare(2)
	if diff := cmp.Diff([]runs.Difference{{Name: "expression", Row: "1h", Given: "2h"}, {Name: "params", Given: "new"}}, a.Changes); diff != "" || a.Same() {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
	want.Target = "no such"
	if _, err := c.Engine().Triggers.Compare(t.Context(), want, 5); !errors.Is(err, center.ErrUnknownTask) {
		t.Fatalf("compare with an unknown target: error %v, want ErrUnknownTask", err)
	}
}
