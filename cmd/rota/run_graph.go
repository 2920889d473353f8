package main

import (
	"slices"

	"github.com/dutyrota/rota/center"
)

// runGraph is a run with all runs that it depends on and that depend on it.
type runGraph struct {
	Runs []center.Run
	Deps []center.RunDep
}

// upstreams are the rules of the dependencies, by run and upstream run.
type upstreams map[string]map[string]string

func (g runGraph) upstreams() upstreams {
	rules := upstreams{}
	for _, d := range g.Deps {
		if rules[d.Run] == nil {
			rules[d.Run] = map[string]string{}
		}
		rules[d.Run][d.Upstream] = d.Rule
	}
	return rules
}

// sorted returns the runs, each after its upstreams. A cycle can only come from
// rows that were edited by hand; its runs come last.
func (g runGraph) sorted() (order []center.Run) {
	rules := g.upstreams()
	rest := slices.Clone(g.Runs)
	for len(rest) > 0 {
		next := max(0, slices.IndexFunc(rest, func(r center.Run) bool { return !rules.anyOf(r, rest) }))
		order = append(order, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return order
}

// anyOf reports whether the run depends on one of the others.
func (u upstreams) anyOf(r center.Run, others []center.Run) bool {
	return slices.ContainsFunc(others, func(o center.Run) bool { return u[r.ID][o.ID] != "" })
}
