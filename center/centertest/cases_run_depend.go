package centertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

func testDependants(t *testing.T, c *center.Center) {
	t.Run("R5 a run makes runs of all its dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "other")
		root := g["a"].submit("2026-08-01")
		g.want(root, "a READY", "b WAITING", "c WAITING")
		if run := g["c"].run(g.of("c", root)); run.Key != "2026-08-01" || run.Params != "p" || run.TraceParent != traceParent || run.RootID != root {
			t.Fatalf("the run of c is %+v, want key 2026-08-01, params p, the trace context and root %s", run, root)
		}
		g["b"].tick() // changes nothing: a has not ended
		g.want(root, "b WAITING")
		g.succeed("a")
		g.want(root, "a SUCCESS", "b READY", "c WAITING")
		g.succeed("b")
		g.succeed("c")
		g.want(root, "a SUCCESS", "b SUCCESS", "c SUCCESS")
		list, deps, err := c.Engine().Runs.Graph(t.Context(), g.of("b", root))
		if err != nil || len(list) != 3 || len(deps) != 2 || list[0].ID != root || deps[0].Upstream != root {
			t.Fatalf("graph of runs %+v, dependencies %+v, want 3 runs from %s on and 2 dependencies: %v", list, deps, root, err)
		}
	})
	t.Run("R5 a failed upstream counts although an earlier one still runs", func(t *testing.T) {
		g := newGraph(t, c, "a", "y after a", "z after a", "end after y z", "last after end")
		root := g["a"].submit("k")
		g.succeed("a")
		g.fail("z", "the disk is full")
		g.want(root, "y READY", "end DEPENDENT_FAILED", "last DEPENDENT_FAILED") // y has not started
		last := g.of("last", root)
		g["last"].wantMessage(last, "(run "+g.of("end", root)+") DEPENDENT_FAILED: ")
		g["last"].wantMessage(last, "(run "+g.of("z", root)+") FAILED: 1 of 1 queues failed, first queue 0: the disk is full")
		g.succeed("y")
		g.want(root, "y SUCCESS", "end DEPENDENT_FAILED")
	})
	t.Run("R5 a dependant waits for both its upstreams", func(t *testing.T) {
		g := newGraph(t, c, "a", "y after a", "z after a", "end after y z")
		root := g["a"].submit("k")
		g.succeed("a")
		g.succeed("y")
		g.want(root, "end WAITING")
		g.succeed("z")
		g.want(root, "end READY")
	})
}

func testUpstreamEnds(t *testing.T, c *center.Center) {
	t.Run("R5 a tick fails the dependants of a run that failed before a crash", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b")
		root := g["a"].submit("k")
		g["a"].exec("UPDATE schedule_run SET state = 'FAILED', message = 'x' WHERE run_id = '%s'", root)
		g["b"].tick()
		g.want(root, "b DEPENDENT_FAILED", "c DEPENDENT_FAILED")
	})
	t.Run("R5 a dependant with the rule FINISHED runs after a failure", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a?", "c after a")
		root := g["a"].submit("k")
		g.fail("a", "no")
		g.want(root, "b READY", "c DEPENDENT_FAILED")
	})
	t.Run("R5 a cancelled upstream fails its dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		g["a"].must(c.Engine().Runs.Cancel(t.Context(), root, "test"))
		g.want(root, "a CANCELLED", "b DEPENDENT_FAILED")
		g["b"].wantMessage(g.of("b", root), "CANCELLED: cancelled")
	})
}

func testDynamicDependencies(t *testing.T, c *center.Center) {
	t.Run("R5 a submitted run waits for the runs that it names", func(t *testing.T) {
		g := newGraph(t, c, "a", "b")
		done, failed := g["a"].submit("1"), g["a"].submit("2")
		both := g["b"].submit("both", done, failed)
		one := g["b"].submit("one", done)
		g["b"].wantState(one, runs.Waiting)
		g.succeed("a")
		g["b"].wantState(one, runs.Ready)
		g["b"].wantState(both, runs.Waiting)
		g.fail("a", "no")
		g["b"].wantState(both, runs.DependentFailed)
		g["b"].wantState(g["b"].submit("late", failed), runs.DependentFailed)
		g["b"].wantState(g["b"].submit("after success", done), runs.Ready)
	})
	t.Run("R5 a waiting run also waits for a new upstream with its key", func(t *testing.T) {
		g := newGraph(t, c, "a", "b", "end after any a b")
		a := g["a"].submit("k")
		end := g.of("end", a)
		g["b"].submit("k")
		g.succeed("a")
		g["end"].wantState(end, runs.Waiting)
		g.succeed("b")
		g["end"].wantState(end, runs.Ready)
		g["end"].wantRunStates(runs.Ready)
	})
}

func testTriggeredDependants(t *testing.T, c *center.Center) {
	t.Run("R5 R4 runs of a slow dependant with coalesce do not pile up", func(t *testing.T) {
		g := newGraph(t, c, "a", "slow after a")
		g["a"].hourly(nil)
		g["slow"].exec("UPDATE schedule_task_type SET coalesce_runs = TRUE WHERE task_type = '%s'", g["slow"].task)
		for range 4 {
			g.fire("a")
			g.succeed("a")
			g["slow"].tick()
		}
		g["slow"].wantRunStates("RUNNING", "READY", "SKIPPED", "SKIPPED")
	})
	t.Run("R4 a slow dependant has a run for each slot that is made up for", func(t *testing.T) {
		g := newGraph(t, c, "a", "slow after a")
		g["a"].hourly(nil)
		for range 4 {
			g.fire("a")
			g.succeed("a")
			g["slow"].tick()
		}
		g["slow"].wantRunStates("RUNNING", "READY", "READY", "READY")
	})
	t.Run("R4 a paused run of a dependant with coalesce skips none", func(t *testing.T) {
		g := newGraph(t, c, "a", "slow after a")
		g["a"].hourly(nil)
		g["slow"].exec("UPDATE schedule_task_type SET coalesce_runs = TRUE WHERE task_type = '%s'", g["slow"].task)
		first := g.fire("a")
		g.succeed("a")
		g["slow"].must(c.Engine().Runs.SetPaused(t.Context(), g.of("slow", first), true, "test"))
		g.fire("a")
		g.succeed("a")
		g["slow"].wantRunStates("READY", "READY")
	})
	t.Run("R5 a skipped run makes no runs of dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		g["a"].hourly(nil)
		g["a"].fire(g["a"].task)
		_, err := c.Engine().Triggers.Fire(t.Context(), g["a"].task, "test")
		g["a"].must(err)
		g["b"].wantRunStates(runs.Waiting)
	})
}

func testDependencyReruns(t *testing.T, c *center.Center) {
	t.Run("R11 a rerun lets the dependants wait that failed because of it", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "d after a?")
		root := g["a"].submit("k")
		g.fail("a", "no")
		g.want(root, "b DEPENDENT_FAILED", "c DEPENDENT_FAILED", "d READY")
		g["d"].tick() // opens the run of d, which the rerun does not touch
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), root, "test"))
		g.want(root, "a READY", "b WAITING", "c WAITING", "d RUNNING")
		g.succeed("a")
		g.succeed("b")
		g.succeed("c")
		g.want(root, "a SUCCESS", "b SUCCESS", "c SUCCESS", "d RUNNING")
	})
	t.Run("R11 a rerun of only the dependant fails again", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		root := g["a"].submit("k")
		g.fail("a", "no")
		g["b"].must(c.Engine().Runs.Rerun(t.Context(), g.of("b", root), "test"))
		g.want(root, "b DEPENDENT_FAILED")
	})
	t.Run("R6 the opening of a run checks its upstreams again", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a?", "c after a?")
		root := g["a"].submit("k")
		g.fail("a", "no")
		g.want(root, "b READY", "c READY")
		g["a"].must(c.Engine().Runs.Rerun(t.Context(), root, "test"))
		g["b"].tick()
		g.want(root, "b WAITING")
		g.succeed("a")
		g["b"].tick()
		g.want(root, "b RUNNING")
		g["c"].exec("UPDATE schedule_run_dep SET rule = 'SUCCESS' WHERE run_id = '%s'", g.of("c", root))
		g["a"].exec("UPDATE schedule_run SET state = 'FAILED' WHERE run_id = '%s'", root)
		g["c"].tick()
		g.want(root, "c DEPENDENT_FAILED")
	})
}

func testDependencyErrors(t *testing.T, c *center.Center) {
	t.Run("R5 cycles and unknown names are refused", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b")
		continuous := g["a"].sibling("continuous")
		continuous.define(center.Settings{Queues: 1})
		define := func(name string, after ...runs.After) error {
			return g[name].runAfter(after...)
		}
		up := func(name string) runs.After { return runs.After{Upstream: g[name].task} }
		wantErrors(t, map[string]error{
			"a cycle: " + g["a"].task + " after " + g["c"].task + " after " + g["b"].task + " after " + g["a"].task: define("a", up("c")),
			"a cycle: " + g["a"].task + " after " + g["a"].task:                                                     define("a", up("a")),
			"nobody: unknown task type":                  define("a", runs.After{Upstream: "nobody"}),
			"mode is CONTINUOUS":                         define("a", runs.After{Upstream: continuous.task}),
			`rule ("MAYBE") must be SUCCESS or FINISHED`: define("c", runs.After{Upstream: g["b"].task, Rule: "MAYBE"}),
			"is named twice":                             define("c", up("b"), up("b")),
		})
		after, err := c.Engine().Dependencies.After(t.Context(), g["c"].task)
		if diff := cmp.Diff([]runs.After{{Upstream: g["b"].task, Rule: runs.RuleSuccess}}, after); diff != "" || err != nil {
			t.Fatalf("upstreams of c after the refused definitions: %v (-want +got):\n%s", err, diff)
		}
		g["c"].must(define("c"))
		g["a"].must(define("a", up("c"))) // c has no upstream now, so this closes no cycle
	})
	t.Run("R5 a cycle in the tables is left out", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c after b", "d after a")
		g["b"].exec("INSERT INTO schedule_task_after (task_type, upstream) VALUES ('%s', '%s')", g["b"].task, g["c"].task)
		root := g["a"].submit("k")
		g.want(root, "d WAITING")
		g["b"].wantRunStates()
	})
}
