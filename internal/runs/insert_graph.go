package runs

import "time"

// graphBuilder collects runs, and the edges between them, to be inserted.
type graphBuilder struct {
	newID    func() string
	edges    []Edge
	order    []string // the dependants of the roots' task type, each after its upstreams
	existing map[taskKey]string
	others   map[taskKey][]graphRun // runs of upstreams outside the graph, by slot or key
	detached bool                   // existing runs do not wait for the new ones, because a root might be waiting for them

	runs     []Run
	deps     []RunDep
	lateDeps []RunDep // edges whose dependant existed before
}

// graphRun is a run that dependants wait for.
type graphRun struct {
	Run
	fresh   bool // it is new, or the root
	outside bool // it is outside the graph, or waits for a run that is
}

// upstreamRun is an upstream of a run, with the edge between their task types.
type upstreamRun struct {
	graphRun
	Edge
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
	made := map[string][]graphRun{root.TaskType: {{Run: root, fresh: true}}} // the runs of this graph, by task type
	for _, name := range g.order {
		for _, p := range g.plans(name, root, made) {
			made[name] = append(made[name], g.addDependant(name, root, p))
		}
	}
}

// addDependant adds a run like that of its first upstream, unless it exists, and the edges to its upstreams.
func (g *graphBuilder) addDependant(name string, root Run, p runPlan) graphRun {
	id, there := g.existing[taskKey{name, p.key}]
	r := graphRun{Run: p.upstreams[0].Run, fresh: !there}
	r.ID, r.TaskType, r.Key, r.State, r.RootID, r.ScheduledAt, r.Backfill = id, name, p.key, RunWaiting, root.ID, root.ScheduledAt, root.Backfill
	r.NotBefore, r.EndBefore, r.MaxAttempts = time.Time{}, time.Time{}, 0
	if !there {
		r.ID = g.newID()
		g.runs = append(g.runs, r.Run)
		g.existing[taskKey{name, p.key}] = r.ID
	}
	for _, up := range p.upstreams {
		d := RunDep{r.ID, up.ID, up.Rule}
		switch {
		case !there:
			g.deps = append(g.deps, d)
		case up.fresh && !up.outside && !g.detached: // a run outside might be waiting for the existing one
			g.lateDeps = append(g.lateDeps, d)
		}
		r.outside = r.outside || up.outside
	}
	return r
}
