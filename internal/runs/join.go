package runs

import (
	"context"
	"maps"
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

// UnmetJoin is a join of which one upstream has slots and another has none, so that no slot leads to a run of it (R18).
type UnmetJoin struct {
	TaskType  string
	Upstreams []string
	Slotless  []string // upstreams to which no trigger leads
}

// UnmetJoins returns the joins of which one upstream has slots and another has none. It reads the triggers of all task
// types. It leaves out joins whose upstreams are only submitted.
func (d *Dependencies) UnmetJoins(ctx context.Context, triggers []TriggerRecord) ([]UnmetJoin, error) {
	edges, err := d.edges(ctx)
	if err != nil {
		return nil, err
	}
	fired := map[string]bool{}
	for _, t := range triggers {
		fired[t.Target] = fired[t.Target] || t.Status != TriggerDone
	}
	return unmetJoins(edges, fired), nil
}

// unmetJoins gets the task types that triggers fire.
func unmetJoins(edges []Edge, fired map[string]bool) (unmet []UnmetJoin) {
	slots := reached(edges, fired)
	for _, e := range edges {
		upstreams := upstreamsOf(edges, e.TaskType)
		if !joins(upstreams) || e != upstreams[0] {
			continue // the first edge of a join stands for all of them
		}
		join := UnmetJoin{TaskType: e.TaskType}
		for _, u := range upstreams {
			if join.Upstreams = append(join.Upstreams, u.Upstream); !slots[u.Upstream] {
				join.Slotless = append(join.Slotless, u.Upstream)
			}
		}
		if len(join.Slotless) > 0 && len(join.Slotless) < len(upstreams) {
			unmet = append(unmet, join)
		}
	}
	return unmet
}

// reached returns the task types to which slots lead: those that triggers fire, and those behind them. A join is behind
// all its upstreams.
func reached(edges []Edge, fired map[string]bool) map[string]bool {
	slots := maps.Clone(fired)
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			upstreams := upstreamsOf(edges, e.TaskType)
			lacksSlot := func(e Edge) bool { return !slots[e.Upstream] }
			if !slots[e.TaskType] && slots[e.Upstream] && (!joins(upstreams) || !slices.ContainsFunc(upstreams, lacksSlot)) {
				slots[e.TaskType], grown = true, true
			}
		}
	}
	return slots
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
