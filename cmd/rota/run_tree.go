package main

import (
	"strings"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// runNode is a line of the tree.
type runNode struct {
	runs.Run
	branch string // is drawn in front of the task type
	after  string // the upstreams
}

var runNodeColumns = []column[runNode]{
	{title: "  TASK", text: func(n runNode) string { return n.branch + n.TaskType }},
	{title: "STATE", text: func(n runNode) string { return n.DisplayState() }, color: byMeaning[runNode]},
	{title: "RUN", text: func(n runNode) string { return n.ID }, dropRank: 2},
	{title: "AFTER", text: func(n runNode) string { return orDash(n.after) }, dropRank: 1, truncate: true},
	{title: "REASON", text: func(n runNode) string { return oneLine(n.Message) }, truncate: true},
}

// runTreeText renders the graph as a tree. Each run appears once, below the last of
// its upstreams. focus is the id of the run that is marked.
func runTreeText(sc screen, g ops.RunGraph, focus string) string {
	return render(sc, newRunTree(g, focus).lines(), runNodeColumns)
}

// runTree is a graph in which each run has one parent.
type runTree struct {
	children map[string][]runs.Run // by the parent's id; "" for runs without upstreams
	after    map[string]string     // the names of the upstreams, by run id
	focus    string
	nodes    []runNode
}

func newRunTree(g ops.RunGraph, focus string) *runTree {
	t := &runTree{children: map[string][]runs.Run{}, after: map[string]string{}, focus: focus}
	rules := g.Upstreams()
	var placed []runs.Run
	for _, r := range g.Sorted() {
		parent := ""
		var names []string
		for _, u := range placed {
			if rule := rules[r.ID][u.ID]; rule != "" {
				parent, names = u.ID, append(names, u.TaskType+ruleText(rule))
			}
		}
		placed = append(placed, r)
		t.children[parent] = append(t.children[parent], r)
		t.after[r.ID] = strings.Join(names, ", ")
	}
	return t
}

// ruleText leaves out the rule SUCCESS, which is the usual one.
func ruleText(rule string) string {
	if rule == runs.RuleSuccess {
		return ""
	}
	return " (" + rule + ")"
}

func (t *runTree) lines() []runNode {
	for _, r := range t.children[""] {
		t.add(r, "", "")
	}
	return t.nodes
}

// add appends a run and its descendants. branch is drawn in front of the run,
// indent in front of its children's branches.
func (t *runTree) add(r runs.Run, branch, indent string) {
	mark := "  "
	if r.ID == t.focus {
		mark = "> "
	}
	t.nodes = append(t.nodes, runNode{r, mark + branch, t.after[r.ID]})
	children := t.children[r.ID]
	for i, child := range children {
		if i < len(children)-1 {
			t.add(child, indent+"├─ ", indent+"│  ")
		} else {
			t.add(child, indent+"└─ ", indent+"   ")
		}
	}
}
