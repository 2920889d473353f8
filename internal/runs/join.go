package runs

import (
	"slices"
	"strings"
	"time"
)

// joins reports whether a task type with these upstreams has one run for the runs of all of them (R18).
func joins(upstreams []Edge) bool { return len(upstreams) > 1 && !upstreams[0].Any }

// upstreamsOf returns the edges of a task type to its upstreams, by upstream.
func upstreamsOf(edges []Edge, taskType string) (upstreams []Edge) {
	for _, e := range edges {
		if e.TaskType == taskType {
			upstreams = append(upstreams, e)
		}
	}
	return upstreams
}

// slotKey returns what the runs that belong together have in common: the slot, or the key if no trigger fired them. It
// is the key of the run of a join whose upstreams have different keys.
func slotKey(r Run) string {
	if r.Trigger == "" {
		return r.Key
	}
	return "slot/" + r.ScheduledAt.UTC().Format(time.RFC3339Nano)
}

// runPlan is a run of a dependant that is to be made.
type runPlan struct {
	key       string
	upstreams []upstreamRun // never empty
}

// plans returns the runs of a dependant that the runs of this graph lead to: one for each key among its upstreams or,
// if it is a join, one when all its upstreams have a run.
func (g *graphBuilder) plans(name string, root Run, made map[string][]graphRun) (plans []runPlan) {
	upstreams := upstreamsOf(g.edges, name)
	var missing []Edge
	for _, e := range upstreams {
		for _, r := range made[e.Upstream] {
			plans = addUpstream(plans, r.Key, upstreamRun{r, e})
		}
		if len(made[e.Upstream]) == 0 {
			missing = append(missing, e)
		}
	}
	if !joins(upstreams) || len(plans) == 0 || len(missing) == 0 && len(plans) == 1 {
		return plans
	}
	return g.joinPlans(name, root, plans, missing)
}

func addUpstream(plans []runPlan, key string, up upstreamRun) []runPlan {
	for i := range plans {
		if plans[i].key == key {
			plans[i].upstreams = append(plans[i].upstreams, up)
			return plans
		}
	}
	return append(plans, runPlan{key, []upstreamRun{up}})
}

// joinPlans joins the plans of a join, and the runs of its missing upstreams, into one. The run gets its trigger,
// priority and params from the run of the first upstream by name, in whatever order the runs were made. If an upstream
// has no run yet, the transaction that makes the last upstream's run makes the run of the join. Until then joinPlans
// adds upstreams only to a run of the join that exists.
func (g *graphBuilder) joinPlans(name string, root Run, plans []runPlan, missing []Edge) []runPlan {
	slot := slotKey(root)
	var found []upstreamRun
	for _, e := range missing {
		others := g.others[taskKey{e.Upstream, slot}]
		if len(others) == 0 {
			return slices.DeleteFunc(plans, func(p runPlan) bool { return g.existing[taskKey{name, p.key}] == "" })
		}
		for _, r := range others {
			found = append(found, upstreamRun{r, e})
		}
	}
	joined := runPlan{key: slot}
	for _, p := range plans {
		joined.upstreams = append(joined.upstreams, p.upstreams...)
	}
	joined.upstreams = append(joined.upstreams, found...)
	slices.SortStableFunc(joined.upstreams, func(x, y upstreamRun) int { return strings.Compare(x.Upstream, y.Upstream) })
	return []runPlan{joined}
}
