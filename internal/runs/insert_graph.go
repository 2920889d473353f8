package runs

// graphBuilder collects runs, and the edges between them, to be inserted.
type graphBuilder struct {
	newID    func() string
	edges    []Edge
	order    []string // the dependants of the roots' task type, each after its upstreams
	existing map[taskKey]string
	detached bool // existing runs do not wait for the new ones, because a root might be waiting for them

	runs     []Run
	deps     []RunDep
	lateDeps []RunDep // edges whose dependant existed before
}

// add adds a root and the runs of its dependants. A SKIPPED root has none until it is reopened.
func (g *graphBuilder) add(root Run) {
	g.runs = append(g.runs, root)
	if root.State != RunSkipped {
		g.addDependants(root)
	}
}

// addDependants adds the runs of the dependants of a root.
func (g *graphBuilder) addDependants(root Run) {
	ids := map[string]string{root.TaskType: root.ID} // the runs of this graph, by task type
	fresh := map[string]bool{root.TaskType: true}
	for _, name := range g.order {
		id, there := g.existing[taskKey{name, root.Key}]
		if !there {
			id = g.newID()
			r := root
			r.ID, r.TaskType, r.State = id, name, RunWaiting
			g.runs = append(g.runs, r)
		}
		ids[name], fresh[name] = id, !there
		for _, e := range g.edges {
			d := RunDep{id, ids[e.Upstream], e.Rule}
			switch {
			case e.TaskType != name || d.Upstream == "":
			case fresh[name]:
				g.deps = append(g.deps, d)
			case fresh[e.Upstream] && !g.detached:
				g.lateDeps = append(g.lateDeps, d)
			}
		}
	}
}
