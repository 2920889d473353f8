package runs

import (
	"slices"
)

// Cycle returns a path from a task type upstream to itself, nil if there is none.
func Cycle(edges []Edge, from string) []string {
	visited := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, e := range edges {
			if e.TaskType != path[len(path)-1] || visited[e.Upstream] {
				continue
			}
			next := append(slices.Clone(path), e.Upstream)
			if e.Upstream == from {
				return next
			}
			visited[e.Upstream] = true
			if found := walk(next); found != nil {
				return found
			}
		}
		return nil
	}
	return walk([]string{from})
}

// downstream returns the direct and indirect dependants of root, each after its upstreams. It leaves out the members of a
// cycle and their dependants, because their runs would wait for each other forever. Only manual changes of the rows can
// make a cycle.
func downstream(edges []Edge, root string) (order []string) {
	reached := map[string]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.Upstream] && !reached[e.TaskType] {
				reached[e.TaskType], grown = true, true
			}
		}
	}
	placed := map[string]bool{root: true}
	blocked := func(name string) bool {
		return slices.ContainsFunc(edges, func(e Edge) bool { return e.TaskType == name && reached[e.Upstream] && !placed[e.Upstream] })
	}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.TaskType] && !placed[e.TaskType] && !blocked(e.TaskType) {
				placed[e.TaskType], grown = true, true
				order = append(order, e.TaskType)
			}
		}
	}
	return order
}
