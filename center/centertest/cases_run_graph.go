package centertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// diamond is a graph of six runs with a join: a leads to b and c, d joins them, and e and f run after d.
var diamond = []string{"a", "b after a", "c after a", "d after b c", "e after d", "f after d"}

// testRunGraph checks what is done to all runs of a graph.
func testRunGraph(t *testing.T, c *center.Center) {
	rs := c.Engine().Runs
	t.Run("R22 a graph is paused and resumed as a whole", func(t *testing.T) {
		g := newGraph(t, c, diamond...)
		root := g["a"].submit("k")
		g.succeed("a")
		g["b"].tick()
		ids, err := rs.SetGraphPaused(t.Context(), g.of("e", root), true, "alice")
		g["a"].must(err)
		g.wantGraph(root, ids, "b", "c", "d", "e", "f")
		g["c"].tick()
		g.want(root, "a SUCCESS", "b RUNNING", "c READY", "d WAITING", "e WAITING", "f WAITING")
		if sweeps := g["b"].claim("A", "0"); len(sweeps) != 0 {
			t.Fatalf("a server claimed %+v of a paused graph", sweeps)
		}
		late := g["f"].submit("late", g.of("b", root)) // it waits for a paused run
		if g["f"].run(late).Paused {
			t.Fatal("a run that got into the graph after the pause is paused")
		}
		ids, err = rs.SetGraphPaused(t.Context(), root, false, "alice")
		g["a"].must(err)
		g.wantGraph(root, ids, "b", "c", "d", "e", "f") // the late run is not paused
		ids, err = rs.SetGraphPaused(t.Context(), root, false, "alice")
		if g["a"].must(err); len(ids) != 0 {
			t.Fatalf("a graph without a paused run was resumed: %v", ids)
		}
		g["b"].finishAll("A", "0")
		g.succeed("c")
		g.succeed("d")
		g.want(root, "d SUCCESS", "e READY", "f READY")
		if got := g["e"].readInt("SELECT COUNT(*) FROM schedule_event WHERE task_type = '%s' AND actor = 'alice'", g["e"].task); got != 2 {
			t.Fatalf("%d events of e name the operator, want one of the pause and one of its end", got)
		}
	})
	t.Run("R22 a graph is cancelled as a whole", func(t *testing.T) {
		g := newGraph(t, c, diamond...)
		root := g["a"].submit("k")
		other := g["a"].submit("other")
		g.succeed("a")
		g["b"].tick()
		g["b"].claim("A", "0")
		ids, err := rs.CancelGraph(t.Context(), g.of("f", root), "test")
		g["a"].must(err)
		g.wantGraph(root, ids, "b", "c", "d", "e", "f")
		g.want(root, "a SUCCESS", "b CANCELLED", "c CANCELLED", "d CANCELLED", "e CANCELLED", "f CANCELLED")
		g.want(other, "a READY", "b WAITING")
		if _, err := rs.CancelGraph(t.Context(), root, "test"); !errors.Is(err, runs.ErrRunState) {
			t.Fatalf("cancel a graph that has ended: error %v, want ErrRunState", err)
		}
	})
	t.Run("R22 ticks cancel the rest of a graph after a crash", func(t *testing.T) {
		g := newGraph(t, c, diamond...)
		root := g["a"].submit("k")
		g.succeed("a")
		g["b"].tick()
		for _, r := range g { // what the one transaction writes
			r.exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE task_type = '%s' AND state IN ('WAITING', 'READY', 'RUNNING')", r.task)
		}
		for _, name := range []string{"b", "d", "f", "e", "c"} {
			g[name].tick()
		}
		g.want(root, "a SUCCESS", "b CANCELLED", "c CANCELLED", "d CANCELLED", "e CANCELLED", "f CANCELLED")
	})
	t.Run("R22 a tick does not fail a run that is to be cancelled", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		b := g.of("b", root)
		g["b"].exec("UPDATE schedule_run SET state = 'CANCELLED', finished_at = created_at WHERE run_id = '%s'", root)
		g["b"].exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE run_id = '%s'", b)
		g["b"].tick()
		g["b"].wantState(b, runs.Cancelled)
	})
	t.Run("R22 a tick fails none of many runs that are to be cancelled", func(t *testing.T) {
		g := newGraph(t, c, "a", "b")
		root := g["a"].submit("k")
		var want []string
		for i := range 102 { // more than one tick ends
			g["b"].submit(fmt.Sprint(i), root)
			want = append(want, runs.Cancelled)
		}
		g["b"].exec("UPDATE schedule_run SET state = 'FAILED', finished_at = created_at WHERE run_id = '%s'", root)
		g["b"].exec("UPDATE schedule_run SET cancel_requested = TRUE WHERE task_type = '%s'", g["b"].task)
		g["b"].tick()
		g["b"].wantRunStates(want...)
	})
	t.Run("R22 a graph with a failed middle is rerun as a whole", func(t *testing.T) {
		g := newGraph(t, c, diamond...)
		root := g["a"].submit("k")
		g.succeed("a")
		g.fail("b", "no")
		g["c"].must(rs.Cancel(t.Context(), g.of("c", root), "test"))
		g.want(root, "a SUCCESS", "b FAILED", "c CANCELLED", "d DEPENDENT_FAILED", "e DEPENDENT_FAILED", "f DEPENDENT_FAILED")
		ids, err := rs.RerunGraph(t.Context(), g.of("e", root), "test")
		g["a"].must(err)
		g.wantGraph(root, ids, "b", "c", "d", "e", "f")
		g.want(root, "a SUCCESS", "b READY", "c READY", "d WAITING", "e WAITING", "f WAITING")
		for _, name := range []string{"c", "b", "d", "e", "f"} {
			g.succeed(name)
		}
		g.want(root, "d SUCCESS", "e SUCCESS", "f SUCCESS")
	})
	t.Run("R22 a rerun graph keeps the order, also under rule FINISHED", func(t *testing.T) {
		g := newGraph(t, c, "z", "a after z?")
		// the dependant has the smaller id, as after Depend
		a := g["a"].submit("first")
		z := g["z"].submit("k")
		g["a"].exec("INSERT INTO schedule_run_dep (run_id, upstream_run_id, rule) VALUES ('%s', '%s', 'FINISHED')", a, z)
		g["a"].exec("UPDATE schedule_run SET state = 'CANCELLED', finished_at = created_at WHERE run_id IN ('%s', '%s')", a, z)
		_, err := rs.RerunGraph(t.Context(), a, "test")
		g["a"].must(err)
		g["z"].wantState(z, runs.Ready)
		g["a"].wantState(a, runs.Waiting)
	})
	t.Run("R22 R11 two reruns of a graph at once reopen each run once", func(t *testing.T) {
		g := newGraph(t, c, diamond...)
		root := g["a"].submit("k")
		g.fail("a", "no")
		var all, refused []string
		var mu sync.Mutex
		var wait sync.WaitGroup
		for _, of := range []string{"a", "f"} {
			id := g.of(of, root)
			wait.Go(func() {
				ids, err := rs.RerunGraph(t.Context(), id, "test")
				mu.Lock()
				defer mu.Unlock()
				if all = append(all, ids...); err != nil {
					refused = append(refused, err.Error())
				}
			})
		}
		wait.Wait()
		g.wantGraph(root, all, "a", "b", "c", "d", "e", "f")
		if len(refused) != 1 || !strings.Contains(refused[0], "no run of the graph can be started again") {
			t.Fatalf("errors of the reruns %q, want that one of them found nothing to do", refused)
		}
		g.want(root, "a READY", "b WAITING", "d WAITING", "f WAITING")
	})
	t.Run("R22 a rerun leaves out a task type that has no runs any more", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		g.fail("a", "no")
		g["b"].exec("UPDATE schedule_task_type SET mode = 'CONTINUOUS' WHERE task_type = '%s'", g["b"].task)
		ids, err := rs.RerunGraph(t.Context(), root, "test")
		g["a"].must(err)
		g.wantGraph(root, ids, "a")
		g.want(root, "a READY", "b DEPENDENT_FAILED")
	})
	t.Run("R22 R20 a rerun of a graph lets its backfill go on", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].backfillHours(1, nil)
		g.fail("a", "no")
		g["a"].tick()
		run := g["a"].wantSlotStates(id, "FAILED")[0].RunID
		g["a"].wantBackfill(id, runs.BackfillFailed, 1, 0)
		_, err := rs.RerunGraph(t.Context(), g.of("b", run), "test")
		g["a"].must(err)
		g["a"].wantBackfill(id, runs.BackfillRunning, 1, 0)
	})
	t.Run("R22 R12 retention takes the ended runs of a graph, and the rest is operated", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "d after a")
		root := g["a"].submit("k")
		g.succeed("a")
		g.succeed("b")
		g.succeed("d")
		g["a"].exec("UPDATE schedule_run SET finished_at = '2020-01-01 00:00:00.000000' WHERE finished_at IS NOT NULL")
		b, waits := g.of("b", root), g.of("c", root)
		old := g["a"].backdate(root)
		g.clean(t)
		list, _, err := rs.Graph(t.Context(), waits)
		g["a"].must(err)
		if got := idsOf(list); !slices.Contains(got, b) || slices.Contains(got, old) {
			t.Fatalf("the graph is %v, want run %s in it, and run %s deleted", got, b, old)
		}
		ids, err := rs.SetGraphPaused(t.Context(), waits, true, "test")
		if err != nil || !slices.Equal(ids, []string{waits}) {
			t.Fatalf("paused %v (%v), want %s", ids, err, waits)
		}
		if _, err := rs.CancelGraph(t.Context(), old, "test"); !errors.Is(err, runs.ErrUnknownRun) {
			t.Fatalf("cancel the graph of a deleted run: error %v, want ErrUnknownRun", err)
		}
	})
	t.Run("R12 R11 a run is rerun after retention has deleted its upstreams", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after a?", "d after b")
		root := g["a"].submit("k")
		g.succeed("a")
		g.fail("b", "no")
		g.fail("c", "no")
		b, wait := g.of("b", root), g.of("d", root)
		g["a"].backdate(root)
		g["b"].must(rs.Rerun(t.Context(), b, "test"))
		g["b"].wantState(b, runs.Ready) // so that its upstream stays
		g.clean(t)
		g["a"].wantRunStates("SUCCESS")
		g.fail("b", "no")
		g.clean(t)
		g["a"].wantRunStates()
		for _, name := range []string{"b", "c"} {
			g[name].must(rs.Rerun(t.Context(), g.of(name, root), "test"))
		}
		g.want(root, "b READY", "c READY", "d WAITING")
		g.fail("b", "no")
		g["b"].exec("UPDATE schedule_run SET acked_at = finished_at WHERE run_id = '%s'", b)
		g["b"].backdate(b)
		g.clean(t)
		g["b"].wantRunStates()
		g["d"].must(rs.Rerun(t.Context(), wait, "test"))
		g["d"].wantState(wait, runs.DependentFailed) // nobody has done the work of b
	})
	t.Run("R22 a graph that is too large is shown in part and not changed", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		b := g.of("b", root)
		values := make([]string, 1001)
		for i := range values {
			values[i] = fmt.Sprintf("('%s-%d', '%s', 'SUCCESS')", root[:8], i, b)
		}
		for part := range slices.Chunk(values, 200) {
			g["a"].exec("INSERT INTO schedule_run_dep (run_id, upstream_run_id, rule) VALUES %s", strings.Join(part, ", "))
		}
		if list, _, err := rs.Graph(t.Context(), root); !errors.Is(err, runs.ErrGraphTooLarge) || len(list) != 2 {
			t.Fatalf("the graph has %d runs (%v), want 2 with ErrGraphTooLarge", len(list), err)
		}
		if _, err := rs.SetGraphPaused(t.Context(), root, true, "test"); !errors.Is(err, runs.ErrGraphTooLarge) {
			t.Fatalf("error %v, want ErrGraphTooLarge", err)
		}
		g["a"].exec("DELETE FROM schedule_run_dep WHERE upstream_run_id = '%s'", b)
	})
	t.Run("R22 a graph has a name", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "other")
		name := "nightly of " + g["a"].task
		root := g["a"].ask(runs.Submission{Key: "k", Name: name})
		late := g["other"].ask(runs.Submission{Key: "late", After: []string{g.of("b", root)}})
		g["other"].ask(runs.Submission{Key: "unnamed"})
		list, err := ops.New(c).Runs().List(t.Context(), runs.Filter{Name: name}, 10)
		if err != nil || len(list) != 3 || list[0].ID != late || list[2].ID != root {
			t.Fatalf("the runs of the name are %+v (%v), want those of a, b and other", list, err)
		}
		if r, err := ops.New(c).Runs().Find(t.Context(), name); err != nil || r.ID != late {
			t.Fatalf("found run %s (%v) by the name, want the newest, %s", r.ID, err, late)
		}
		for _, bad := range []string{" ", "\n", strings.Repeat("x", 101)} {
			if _, _, err := rs.Submit(t.Context(), g["a"].task, runs.Submission{Name: bad}); err == nil || !strings.Contains(err.Error(), "name (") {
				t.Fatalf("submit with the name %q: error %v, want one that names it", bad, err)
			}
		}
	})
}

// testDepend checks runs that wait for another one later than their submission.
func testDepend(t *testing.T, c *center.Center) {
	rs := c.Engine().Runs
	depend := func(r *fixture, run, upstream string) {
		r.Helper()
		r.must(rs.Depend(t.Context(), run, upstream, "alice"))
	}
	t.Run("R22 a run waits for one that it did not know", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "c")
		a, b := g["a"].submit("k"), g["b"].submit("k")
		depend(g["b"], b, a)
		depend(g["b"], b, a) // changes nothing
		g["b"].wantState(b, runs.Waiting)
		g["b"].tick()
		g["b"].wantState(b, runs.Waiting)
		waits := g["c"].submit("k", b)
		other := g["a"].submit("other")
		depend(g["c"], waits, other)
		g.succeed("a")
		g.succeed("b")
		g["c"].wantState(waits, runs.Waiting)
		g.succeed("a")
		g["c"].wantState(waits, runs.Ready)
		if got := g["b"].readInt("SELECT COUNT(*) FROM schedule_event WHERE task_type = '%s' AND actor = 'alice' AND reason LIKE '%%waits for run %s'", g["b"].task, a); got != 1 {
			t.Fatalf("%d events name the dependency, want 1", got)
		}
	})
	t.Run("R22 an upstream that has ended counts as it has ended", func(t *testing.T) {
		g := newGraph(t, c, "a", "b")
		done, failed := g["a"].submit("1"), g["a"].submit("2")
		g.succeed("a")
		g.fail("a", "no")
		b, next := g["b"].submit("k"), g["b"].submit("next")
		depend(g["b"], b, done)
		g["b"].wantState(b, runs.Ready)
		depend(g["b"], next, failed)
		g["b"].wantState(next, runs.DependentFailed)
		g["b"].wantMessage(next, failed)
	})
	t.Run("R22 what is refused", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "elsewhere")
		root := g["a"].submit("k")
		b, last := g.of("b", root), g.of("c", root)
		other := g["elsewhere"].submit("k")
		g["elsewhere"].exec("UPDATE schedule_run SET own_sign = 'ELSEWHERE' WHERE run_id = '%s'", other)
		cycle := fmt.Sprintf("forever: %s (run %s) after %s (run %s) after %s (run %s) after %s (run %s)",
			g["a"].task, root, g["c"].task, last, g["b"].task, b, g["a"].task, root)
		begun := g["a"].submit("begun")
		g["a"].exec("UPDATE schedule_run SET priority = 9 WHERE run_id = '%s'", begun)
		g["a"].tick()
		for _, x := range []struct {
			run, upstream string
			want          error
			text          string
		}{
			{root, last, runs.ErrRunCycle, cycle},
			{root, root, runs.ErrRunCycle, "forever: " + g["a"].task},
			{b, other, runs.ErrUnknownRun, other},
			{b, "nonsense", runs.ErrUnknownRun, "nonsense"},
			{"nonsense", b, runs.ErrUnknownRun, "nonsense"},
			{begun, last, runs.ErrRunState, "RUNNING"},
		} {
			err := rs.Depend(t.Context(), x.run, x.upstream, "test")
			if !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.text) {
				t.Errorf("let run %s wait for %s: error %v, want %v with %q", x.run, x.upstream, err, x.want, x.text)
			}
		}
		g["b"].must(rs.Cancel(t.Context(), begun, "test"))
		g.want(root, "a READY", "b WAITING", "c WAITING")
	})
	t.Run("R22 dependencies at once close no cycle", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "c", "d")
		names := []string{"a", "b", "c", "d"}
		for range 3 {
			var ids []string
			for _, name := range names {
				ids = append(ids, g[name].submit(""))
			}
			errs := make([]error, len(ids))
			var wait sync.WaitGroup
			for i := range ids {
				wait.Go(func() { errs[i] = rs.Depend(context.WithoutCancel(t.Context()), ids[i], ids[(i+1)%len(ids)], "test") })
			}
			wait.Wait()
			refused := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
			if len(refused) != 1 || !errors.Is(refused[0], runs.ErrRunCycle) {
				t.Fatalf("errors %v, want ErrRunCycle of exactly one", errs)
			}
			_, err := rs.CancelGraph(t.Context(), ids[0], "test")
			g["a"].must(err)
		}
	})
	t.Run("R22 a dependency and the end of the upstream at once", func(t *testing.T) {
		g := newGraph(t, c, "a", "b")
		for range 5 {
			a, b := g["a"].submit(""), g["b"].submit("")
			g["a"].tick()
			var wait sync.WaitGroup
			wait.Go(func() { g.finish("a") })
			wait.Go(func() { depend(g["b"], b, a) })
			wait.Wait()
			g["b"].wantState(b, runs.Ready)
			g["b"].must(rs.Cancel(t.Context(), b, "test"))
		}
	})
	t.Run("R22 R5 a run that is made later closes no cycle", func(t *testing.T) {
		g := newGraph(t, c, "gate", "r", "e after r", "x after r", "f after e x", "d after f")
		d := g["d"].submit("k", g["gate"].submit("k"))
		e := g["e"].submit("k", d)
		root := g["r"].submit("k") // makes f, which waits for e: d, which e waits for, does not wait for f
		for _, name := range []string{"gate", "d", "r", "x", "e", "f"} {
			g.succeed(name)
		}
		g.want(root, "r SUCCESS", "x SUCCESS", "f SUCCESS")
		g["d"].wantState(d, runs.Success)
		g["e"].wantState(e, runs.Success)
	})
}

// wantGraph checks the ids of runs of a graph by the names of their task types.
func (g graph) wantGraph(root string, ids []string, want ...string) {
	r := g["a"]
	r.Helper()
	var got []string
	for _, id := range ids {
		got = append(got, strings.TrimPrefix(r.run(id).TaskType, strings.TrimSuffix(r.task, "a")))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("runs of the graph of %s (-want +got):\n%s", root, diff)
	}
}

// finish finishes the open run of a task type.
func (g graph) finish(name string) {
	g[name].Helper()
	g[name].finishAll("A", "0")
}

func idsOf(list []runs.Run) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}
