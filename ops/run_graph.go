package ops

import (
	"slices"

	"github.com/dutyrota/rota/runs"
)

// RunGraph is a run with all runs that it depends on and that depend on it.
type RunGraph struct {
	Runs []runs.Run
	Deps []runs.RunDep
}

// RunUpstreams holds the rules of the dependencies, by the id of the run and the id of its upstream.
type RunUpstreams map[string]map[string]string

// Upstreams returns the dependencies of the graph by run.
func (g RunGraph) Upstreams() RunUpstreams {
	rules := RunUpstreams{}
	for _, d := range g.Deps {
		if rules[d.Run] == nil {
			rules[d.Run] = map[string]string{}
		}
		rules[d.Run][d.Upstream] = d.Rule
	}
	return rules
}

// Sorted returns the runs, each after its upstreams. Only rows that were edited by hand can contain a cycle: its runs keep
// their order.
func (g RunGraph) Sorted() []runs.Run {
	rules := g.Upstreams()
	return upstreamsFirst(g.Runs, func(r, o runs.Run) bool { return rules[r.ID][o.ID] != "" })
}

// upstreamsFirst sorts a list so that each element comes after the elements that it runs after. It breaks a cycle at the
// first element that is left. Elements that do not depend on each other keep their order as far as possible.
func upstreamsFirst[T any](list []T, runsAfter func(e, other T) bool) (order []T) {
	rest := slices.Clone(list)
	for len(rest) > 0 {
		next := max(0, slices.IndexFunc(rest, func(e T) bool {
			return !slices.ContainsFunc(rest, func(other T) bool { return runsAfter(e, other) })
		}))
		order = append(order, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return order
}
