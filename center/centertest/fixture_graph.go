package centertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// graph is task types of mode RUN by their short names. Each has one queue, which server A owns.
type graph map[string]*fixture

// newGraph defines task types and their upstreams: "a", "b after a", "c after a b?", "d after any a b". A question mark
// stands for the rule FINISHED.
func newGraph(t *testing.T, c *center.Center, tasks ...string) graph {
	t.Helper()
	g := graph{}
	base := newFixture(t, c, center.Settings{Mode: center.ModeRun, Queues: 1})
	for _, text := range tasks {
		name, after, _ := strings.Cut(text, " after ")
		r := base.sibling(name)
		r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
		r.join("A")
		g[name] = r
		var list []runs.After
		after, anyOf := strings.CutPrefix(after, "any ")
		for up := range strings.FieldsSeq(after) {
			up, finished := strings.CutSuffix(up, "?")
			a := runs.After{Upstream: g[up].task, Any: anyOf}
			if finished {
				a.Rule = runs.RuleFinished
			}
			list = append(list, a)
		}
		r.must(r.runAfter(list...))
	}
	return g
}

func (r *fixture) runAfter(after ...runs.After) error {
	r.Helper()
	return RunAfter(r.Context(), r.c, r.task, after...)
}

// of returns the id of the run of a task type that the root run led to.
func (g graph) of(name, root string) string {
	r := g[name]
	r.Helper()
	ids := r.readColumn("SELECT run_id FROM schedule_run WHERE task_type = '%s' AND root_run_id = '%s'", r.task, root)
	if len(ids) != 1 {
		r.Fatalf("root run %s led to %d runs of %s, want 1", root, len(ids), name)
	}
	return ids[0]
}

// fire fires the trigger that has the name of a task type, and returns the id of the run.
func (g graph) fire(name string) string {
	r := g[name]
	r.Helper()
	id, err := r.c.Engine().Triggers.Fire(r.Context(), r.task, "test")
	r.must(err)
	return id
}

// succeed opens the next run of a task type and finishes it.
func (g graph) succeed(name string) {
	g[name].Helper()
	g[name].tick()
	g[name].finishAll("A", "0")
}

// fail opens the next run of a task type and fails it.
func (g graph) fail(name, cause string) {
	g[name].Helper()
	g[name].tick()
	g[name].failAll("A", cause, "0")
}

// clean lets retention delete what it may.
func (g graph) clean(t *testing.T) {
	t.Helper()
	for _, r := range g {
		for range 5 {
			_, err := ops.New(r.c).Clean(t.Context(), time.Hour)
			r.must(err)
		}
		return
	}
}

// want checks the states of the runs that a root run led to: "a SUCCESS", "b WAITING".
func (g graph) want(root string, want ...string) {
	var r *fixture
	for _, r = range g {
		break
	}
	r.Helper()
	var got []string
	for _, text := range want {
		name, _, _ := strings.Cut(text, " ")
		got = append(got, name+" "+r.run(g.of(name, root)).State)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("states of the runs of root run %s (-want +got):\n%s", root, diff)
	}
}
