package main

import (
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// runGraph is a run with everything that it waits for and that waits for it.
type runGraph struct {
	Runs []center.Run
	Deps []center.RunDep
}

// runNode is a line of the graph.
type runNode struct {
	center.Run
	tree  string // what is drawn in front of its name
	after string // its upstreams
}

// text draws the graph as a tree: each run once, below the last of those that it waits for.
func (g runGraph) text(sc screen, focus string) string {
	d := drawing{below: map[string][]center.Run{}, after: map[string]string{}, focus: focus}
	rules := g.rules()
	var placed []center.Run
	for _, r := range g.ordered(rules) {
		parent := ""
		var names []string
		for _, u := range placed {
			if rule := rules[r.ID][u.ID]; rule != "" {
				parent, names = u.ID, append(names, u.TaskType+ruleText(rule))
			}
		}
		placed = append(placed, r)
		d.below[parent] = append(d.below[parent], r)
		d.after[r.ID] = strings.Join(names, ", ")
	}
	for _, r := range d.below[""] {
		d.draw(r, "", "")
	}
	return render(sc, d.nodes, runNodeFields)
}

// rules are those of the edges, by run and upstream.
func (g runGraph) rules() map[string]map[string]string {
	rules := map[string]map[string]string{}
	for _, d := range g.Deps {
		if rules[d.Run] == nil {
			rules[d.Run] = map[string]string{}
		}
		rules[d.Run][d.Upstream] = d.Rule
	}
	return rules
}

// ordered returns the runs, each after its upstreams. What is in a cycle, which only a hand can have made, comes last.
func (g runGraph) ordered(rules map[string]map[string]string) (order []center.Run) {
	rest := slices.Clone(g.Runs)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(r center.Run) bool {
			return !slices.ContainsFunc(rest, func(u center.Run) bool { return rules[r.ID][u.ID] != "" })
		})
		next = max(next, 0)
		order = append(order, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return order
}

func ruleText(rule string) string {
	if rule == center.RuleSuccess {
		return ""
	}
	return " (" + rule + ")"
}

// drawing is a graph on its way to the screen.
type drawing struct {
	below map[string][]center.Run // by the run that they are drawn below; "" for those that wait for none
	after map[string]string
	focus string // the run that was asked for
	nodes []runNode
}

// draw draws a run and what is below it: own is in front of its name, under in front of the lines below.
func (d *drawing) draw(r center.Run, own, under string) {
	mark := "  "
	if r.ID == d.focus {
		mark = "> "
	}
	d.nodes = append(d.nodes, runNode{r, mark + own, d.after[r.ID]})
	below := d.below[r.ID]
	for i, next := range below {
		if i < len(below)-1 {
			d.draw(next, under+"├─ ", under+"│  ")
		} else {
			d.draw(next, under+"└─ ", under+"   ")
		}
	}
}

var runNodeFields = []field[runNode]{
	{title: "  TASK", text: func(n runNode) string { return n.tree + n.TaskType }},
	{title: "STATE", text: func(n runNode) string { return runState(runRecord{Run: n.Run}) }, color: byMeaning[runNode]},
	{title: "RUN", text: func(n runNode) string { return n.ID }, spare: 2},
	{title: "AFTER", text: func(n runNode) string { return orDash(n.after) }, spare: 1, free: true},
	{title: "WHY", text: func(n runNode) string { return line(n.Message) }, free: true},
}
