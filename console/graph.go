package console

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/ops"
)

// runGraph is the picture of the runs that depend on each other: a column for each step, upstreams to the left.
type runGraph struct {
	Width, Height int
	Nodes         []graphNode
	Edges         []graphEdge
	Text          string // the same in words
}

// graphNode is a run in the picture.
type graphNode struct {
	ID, Name, State string
	Bad, Here       bool
	X, Y            int
}

// graphEdge leads from an upstream to a run.
type graphEdge struct {
	Path, Tip string
	Open      bool // the run has not begun
}

const (
	maxNodes            = 100
	nodeWidth, nodeTall = 160, 58
	columnStep, rowStep = 250, 72
	graphEdgeSpace      = 20
)

// graphOf returns the picture, or nil if there is nothing to see, or too much.
func graphOf(g ops.RunGraph, here string) *runGraph {
	if len(g.Runs) < 2 || len(g.Runs) > maxNodes {
		return nil
	}
	upstreams, column, rows := g.Upstreams(), map[string]int{}, map[int]int{}
	at := map[string]graphNode{}
	p := &runGraph{}
	var words []string
	sorted := g.Sorted()
	for _, r := range sorted {
		c := 0
		for upstream := range upstreams[r.ID] {
			if before, ok := column[upstream]; ok { // a row that was edited by hand may be in a cycle
				c = max(c, before+1)
			}
		}
		column[r.ID] = c
		m := runMark(r.State, r.Paused)
		node := graphNode{
			ID: r.ID, Name: cut(r.TaskType, 18), State: m.Text, Bad: m.Kind == "bad", Here: r.ID == here,
			X: graphEdgeSpace + c*columnStep, Y: graphEdgeSpace + rows[c]*rowStep,
		}
		rows[c]++
		at[r.ID] = node
		p.Nodes = append(p.Nodes, node)
		p.Width, p.Height = max(p.Width, node.X+nodeWidth+graphEdgeSpace), max(p.Height, node.Y+nodeTall+graphEdgeSpace)
		words = append(words, r.TaskType+": "+m.Text)
	}
	for _, r := range sorted {
		for _, other := range sorted { // in the order of the runs, so that the page does not change by itself
			if upstreams[r.ID][other.ID] != "" {
				p.Edges = append(p.Edges, edgeOf(at[other.ID], at[r.ID], r.StartedAt.IsZero()))
			}
		}
	}
	p.Text = strings.Join(words, ", ")
	return p
}

func edgeOf(from, to graphNode, open bool) graphEdge {
	x1, y1, x2, y2 := from.X+nodeWidth, from.Y+nodeTall/2, to.X-6, to.Y+nodeTall/2
	bend := (x2 - x1) / 2
	return graphEdge{
		Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2),
		Tip:  fmt.Sprintf("M%d %dl7 4l-7 4z", x2-1, y2-4),
		Open: open,
	}
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
