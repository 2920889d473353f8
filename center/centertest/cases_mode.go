package centertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testModeChange checks that mode RUN does not end while something needs it.
func testModeChange(t *testing.T, c *center.Center) {
	apply := func(r *fixture) error {
		diff, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{Queues: 1})
		r.must(err)
		return ops.New(c).Tasks().Apply(t.Context(), diff, "test")
	}
	// stopAndApply changes the mode as an operator does, who stops all workers before.
	stopAndApply := func(r *fixture) error {
		r.Helper()
		r.wantNamed("mode", apply(r), "A", "mode (CONTINUOUS) takes effect when the worker starts again")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		return apply(r)
	}
	refused := func(r *fixture, want string) {
		r.Helper()
		if err := apply(r); err == nil || !strings.Contains(err.Error(), "mode must not change from RUN to CONTINUOUS: "+want) {
			r.Fatalf("the change of the mode: got %v, want an error with %q", err, want)
		}
		if s, err := ops.New(c).Tasks().Settings(t.Context(), r.task); err != nil || s.Mode != center.ModeRun {
			r.Fatalf("the mode after the refused change is %s, want RUN: %v", s.Mode, err)
		}
	}
	t.Run("R14 mode RUN does not end while a run is open", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		refused(r, "run "+id+" (own_sign BASE) is open: wait for its end or cancel it: rota run cancel "+id)
		other, err := ops.New(c).In("ELSEWHERE")
		r.must(err)
		diff, err := other.Tasks().Compare(t.Context(), r.task, center.Settings{Queues: 1})
		r.must(err)
		if err := other.Tasks().Apply(t.Context(), diff, "test"); err == nil || !strings.Contains(err.Error(), "rota --own-sign BASE run cancel "+id) {
			t.Errorf("the change in another environment: got %v, want an error with the command for this one", err)
		}
		r.finishAll("A", "0")
		r.must(stopAndApply(r))
		_, _, err = c.Engine().Runs.Submit(t.Context(), r.task, runs.Submission{Key: "late"})
		if err == nil || !strings.Contains(err.Error(), "mode is CONTINUOUS") {
			t.Fatalf("submission to a task type of mode CONTINUOUS: got %v, want an error", err)
		}
	})
	t.Run("R14 one change ends mode RUN and what the task type runs after", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		g["b"].must(stopAndApply(g["b"]))
		if n := g["b"].readInt("SELECT COUNT(*) FROM schedule_task_after WHERE task_type = '%s'", g["b"].task); n != 0 {
			t.Fatalf("%d dependencies are left, want none", n)
		}
	})
	t.Run("R14 no run is reopened after mode RUN has ended", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submitAndOpen("k")
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		r.must(stopAndApply(r))
		if err := c.Engine().Runs.Rerun(t.Context(), id, "test"); !errors.Is(err, runs.ErrNoRuns) {
			t.Errorf("a rerun in mode CONTINUOUS: got %v, want %v", err, runs.ErrNoRuns)
		}
		r.wantState(id, runs.Cancelled)
	})
	t.Run("R14 a rerun reopens no dependant whose mode RUN has ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b")
		root := g["a"].submit("k")
		g.fail("a", "broken")
		g["c"].must(g["c"].runAfter())
		g["b"].must(g["b"].runAfter())
		g["b"].must(stopAndApply(g["b"]))
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), root, "test"))
		g.succeed("a")
		g.want(root, "a SUCCESS", "b DEPENDENT_FAILED", "c DEPENDENT_FAILED")
	})
	t.Run("R14 R20 a rerun continues no backfill of a task type whose mode RUN has ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a?")
		id := g["a"].backfillHours(1, nil)
		g.succeed("a")
		g.fail("b", "broken")
		g["a"].tick()
		g["a"].wantBackfill(id, runs.BackfillFailed, 1, 0)
		b := g.of("b", g["a"].wantSlotStates(id, "SUCCESS")[0].RunID)
		g["b"].must(g["b"].runAfter())
		g["a"].must(stopAndApply(g["a"]))
		g["b"].must(c.Engine().Runs.Rerun(t.Context(), b, "test"))
		g["b"].wantState(b, runs.Ready)
		g["a"].wantBackfill(id, runs.BackfillFailed, 1, 0) // no server would end it
	})
	t.Run("R14 a rerun waits for a change of the mode of a dependant", func(t *testing.T) {
		if !locksReach(t, c) {
			return
		}
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		g.fail("a", "broken")
		g["b"].must(g["b"].runAfter())
		// A change of the mode has found no open run, and is not committed yet.
		tx, err := c.DB().BeginTx(t.Context(), nil)
		g["b"].must(err)
		defer tx.Rollback()
		for _, statement := range []string{
			"UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '%s'",
			"UPDATE schedule_task_type SET mode = 'CONTINUOUS' WHERE task_type = '%s'",
		} {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf(statement, g["b"].task))
			g["b"].must(err)
		}
		rerun := make(chan error, 1)
		go func() { rerun <- c.Engine().Runs.Rerun(t.Context(), root, "test") }()
		select {
		case err := <-rerun:
			g["a"].must(err) // the rerun decided from a mode that is out of date
			t.Fatal("the rerun did not wait for the lock row of the dependant")
		case <-time.After(100 * time.Millisecond): // the rerun waits: not every database shows its locks
		}
		g["b"].must(tx.Commit())
		g["a"].must(<-rerun)
		g.succeed("a")
		g.want(root, "a SUCCESS", "b DEPENDENT_FAILED")
	})
	t.Run("R14 mode RUN does not end while others run after it", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		refused(g["a"], "task type "+g["b"].task+" runs after it")
		g["b"].must(g["b"].runAfter())
		g["a"].must(stopAndApply(g["a"]))
	})
	t.Run("R14 mode RUN ends with the trigger of the settings, and not with others", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.hourly(nil) // it has the name of the task type, like the trigger of cron and every
		r.defineTrigger(runs.Trigger{Name: r.task + ".other", Kind: runs.TriggerEvery, Expression: time.Hour.String()})
		refused(r, "trigger "+r.task+".other (own_sign BASE) fires it")
		r.must(c.Engine().Triggers.Delete(t.Context(), r.task+".other", "test"))
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		diff, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{Queues: 1})
		r.must(err)
		r.must(ops.New(c).Tasks().Check(t.Context(), diff)) // the change deletes the trigger of the settings itself
		r.must(apply(r))
		if n := r.readInt("SELECT COUNT(*) FROM schedule_trigger WHERE target = '%s'", r.task); n != 0 {
			t.Fatalf("%d triggers are left, want none", n)
		}
	})
}
