package runs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
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

// UnmetJoin is a join that has upstreams with slots and upstreams without, so that no slot leads to a run of it (R18).
type UnmetJoin struct {
	TaskType  string
	Upstreams []string
	Slotless  []string // upstreams to which no trigger leads
}

// UnmetJoins returns the joins that have upstreams with slots and upstreams without. triggers are those of all task
// types. It leaves out joins to whose upstreams no trigger leads at all: operators submit their runs.
func (d *Dependencies) UnmetJoins(ctx context.Context, triggers []TriggerRecord) ([]UnmetJoin, error) {
	edges, err := ReadEdges(ctx, d.db)
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

// lockJoins locks the lock rows of joins, and returns the runs of their upstreams by task type and slotKey. With the
// lock, the later of two transactions that make runs of two upstreams sees the run of the other transaction (R18).
func lockJoins(ctx context.Context, l *roster.LockTx, g *graphBuilder, names []string,
	roots []Run,
) (map[taskKey][]graphRun, error) {
	var upstreams []string
	for _, name := range names {
		if err := lockTask(ctx, l, name); err != nil {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		for _, e := range upstreamsOf(g.edges, name) {
			upstreams = append(upstreams, e.Upstream)
		}
	}
	slices.Sort(upstreams)
	return otherRuns(ctx, l, slices.Compact(upstreams), roots)
}

// openJoins returns the joins that may have upstreams outside of the graph. Each join comes after the joins upstream of
// it. The order is the same for every transaction, so that no two transactions wait for each other.
func openJoins(edges []Edge, order []string, root string) (names []string) {
	sure := map[string]bool{root: true} // the task types that get a run in any case
	unsure := func(e Edge) bool { return !sure[e.Upstream] }
	for _, name := range order {
		upstreams := upstreamsOf(edges, name)
		switch {
		case !joins(upstreams):
			sure[name] = slices.ContainsFunc(upstreams, func(e Edge) bool { return !unsure(e) })
		case slices.ContainsFunc(upstreams, unsure):
			names = append(names, name)
		default:
			sure[name] = true
		}
	}
	depth := depths(edges)
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(depth[x], depth[y]), strings.Compare(x, y))
	})
	return names
}

// depths returns the length of the longest chain of upstreams of each task type. In a cycle the length is only bounded.
func depths(edges []Edge) map[string]int {
	depth := map[string]int{}
	for range edges {
		for _, e := range edges {
			depth[e.TaskType] = max(depth[e.TaskType], min(depth[e.Upstream]+1, len(edges)))
		}
	}
	return depth
}

// lockTask locks the lock row of a task type, and makes it if no server of the task type has started yet.
func lockTask(ctx context.Context, l *roster.LockTx, name string) error {
	n, err := l.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1
		WHERE task_type = ? AND own_sign = ?`, name, l.OwnSign)
	if err != nil || n > 0 {
		return err
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`, name, l.OwnSign)
	if l.Dialect.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced // the next try locks the row of the other transaction
	}
	return err
}

// otherRuns returns the runs of the task types that belong to the same slots or keys as the roots. A root that was
// SKIPPED does not count until it is reopened.
func otherRuns(ctx context.Context, l *roster.LockTx, taskTypes []string, roots []Run) (map[taskKey][]graphRun, error) {
	found := map[taskKey][]graphRun{}
	if len(taskTypes) == 0 {
		return found, nil
	}
	var slots, keys []any
	seen := map[string]bool{}
	for _, r := range roots {
		switch id := slotKey(r); {
		case seen[id]:
		case r.Trigger != "":
			seen[id], slots = true, append(slots, l.Dialect.Time(r.ScheduledAt))
		default:
			seen[id], keys = true, append(keys, r.Key)
		}
	}
	// The condition on the states lets a statement find runs of a slot by the index of the states.
	bySlot := `trigger_name IS NOT NULL AND state IN (` + sqldb.Marks(len(States())) + `) AND scheduled_at IN `
	if err := readOthers(ctx, l, found, taskTypes, bySlot, sqldb.Args(States()), slots); err != nil {
		return nil, err
	}
	return found, readOthers(ctx, l, found, taskTypes, `trigger_name IS NULL AND run_key IN `, nil, keys)
}

// readOthers adds the runs of the task types whose column at the end of where has a value of the list.
func readOthers(ctx context.Context, l *roster.LockTx, found map[taskKey][]graphRun, taskTypes []string, where string,
	args, list []any,
) error {
	for part := range slices.Chunk(list, roster.InsertRows) {
		all := slices.Concat(sqldb.Args(taskTypes), []any{l.OwnSign}, args, part)
		others, err := sqldb.Records[Run](ctx, l, `SELECT {columns} FROM schedule_run
			WHERE task_type IN (`+sqldb.Marks(len(taskTypes))+`) AND own_sign = ? AND `+where+`(`+sqldb.Marks(len(part))+`)
			AND NOT (state = '`+Skipped+`' AND root_run_id = run_id) ORDER BY run_id`, all...)
		if err != nil {
			return fmt.Errorf("read the runs of other upstreams: %w", err)
		}
		for _, r := range others {
			k := taskKey{r.TaskType, slotKey(r)}
			found[k] = append(found[k], graphRun{Run: r, outside: true})
		}
	}
	return nil
}
