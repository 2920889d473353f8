package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// newRun completes a run of the locked task type that is its own root. Its id defaults to a new one, its state to
// READY.
func newRun(l *roster.LockTx, r Run, at time.Time) Run {
	if r.ID == "" {
		r.ID = newRunID(l.NextInstant())
	}
	r.TaskType, r.OwnSign, r.ScheduledAt, r.RootID = l.TaskType, l.OwnSign, at, r.ID
	if r.State == "" {
		r.State = Ready
	}
	return r
}

// taskKey identifies a run within its own_sign.
type taskKey struct{ taskType, key string }

// runsOfKeys returns the ids of the existing runs of the task types that have one of the keys.
func runsOfKeys(ctx context.Context, l *roster.LockTx, taskTypes, keys []string) (map[taskKey]string, error) {
	found := map[taskKey]string{}
	if len(taskTypes) == 0 {
		return found, nil
	}
	type keyed struct{ TaskType, Key, ID string }
	list, err := sqldb.RecordsIn[keyed](ctx, l, keys, `SELECT task_type, run_key, run_id FROM schedule_run
		WHERE task_type IN (`+sqldb.Marks(len(taskTypes))+`) AND own_sign = ? AND run_key IN ({ids})
		ORDER BY run_id`, append(sqldb.Args(taskTypes), l.OwnSign)...)
	for _, r := range list {
		found[taskKey{r.TaskType, r.Key}] = r.ID
	}
	return found, sqldb.Wrap(err, "find runs by key")
}

// insertRuns inserts runs of the locked task type. For each run that is not SKIPPED it also inserts the runs of all its
// dependants, WAITING, and a snapshot of the edges between them (R5). It records one event for the runs that are
// SKIPPED (R4): a thousand triggers of one target would write a thousand events with each skipped slot. The roots wait
// for the runs in after.
func insertRuns(ctx context.Context, l *roster.LockTx, roots []Run, after []string) error {
	g, err := newGraphBuilder(ctx, l, roots)
	if err != nil {
		return err
	}
	g.detached = len(after) > 0
	for _, root := range roots {
		for _, id := range after {
			g.deps = append(g.deps, Dep{root.ID, id, RuleSuccess})
		}
		g.add(root)
	}
	if err := g.insert(ctx, l); err != nil {
		return err
	}
	return recordSkipped(ctx, l, roots)
}

// recordSkipped records an event about those of the runs that are SKIPPED, if there are any. It names the first.
func recordSkipped(ctx context.Context, l *roster.LockTx, list []Run) error {
	skipped := slices.DeleteFunc(slices.Clone(list), func(r Run) bool { return r.State != Skipped })
	if len(skipped) == 0 {
		return nil
	}
	e := skipped[0].endEvent()
	if others := len(skipped) - 1; others > 0 {
		e.Reason += fmt.Sprintf("; %s SKIPPED, too", human.Count(others, "other run is", "other runs are"))
	}
	return l.Record(ctx, e)
}

// insertDependants inserts the runs of the dependants of a root that exists.
func insertDependants(ctx context.Context, l *roster.LockTx, root Run) error {
	g, err := newGraphBuilder(ctx, l, []Run{root})
	if err != nil {
		return err
	}
	g.addDependants(root)
	return g.insert(ctx, l)
}

func newGraphBuilder(ctx context.Context, l *roster.LockTx, roots []Run) (*graphBuilder, error) {
	roots = slices.DeleteFunc(slices.Clone(roots), func(r Run) bool { return r.State == Skipped })
	edges, err := ReadEdges(ctx, l.Tx)
	if err != nil {
		return nil, err
	}
	newID := func() string { return newRunID(l.NextInstant()) }
	g := &graphBuilder{newID: newID, edges: edges, order: downstream(edges, l.TaskType)}
	if len(roots) == 0 || len(g.order) == 0 {
		return g, nil
	}
	names := openJoins(edges, g.order, l.TaskType)
	if g.others, err = lockJoins(ctx, l, g, names, roots); err != nil {
		return nil, err
	}
	g.existing, err = runsOfKeys(ctx, l, g.order, keysOf(roots, len(names) > 0))
	return g, err
}

// insert inserts the runs and edges. An edge whose dependant existed before is left out if the dependant does not wait,
// or if the new upstream waits for it: a submission or an operator can have reversed the order of the task types (R22).
func (g *graphBuilder) insert(ctx context.Context, l *roster.LockTx) error {
	if err := insertRunRows(ctx, l, g.runs); err != nil {
		return err
	}
	err := sqldb.Insert(ctx, l.Tx, "schedule_run_dep", g.deps...)
	for _, d := range g.lateDeps {
		waits, behind := false, []string(nil)
		if err == nil {
			waits, err = lockRun(ctx, l.Tx, d.Run, Waiting)
		}
		if err == nil && waits {
			behind, err = allDependants(ctx, l.Tx, d.Run)
		}
		if err == nil && waits && !slices.Contains(behind, d.Upstream) {
			err = sqldb.Insert(ctx, l.Tx, "schedule_run_dep", d)
		}
	}
	return sqldb.Wrap(err, "insert dependencies")
}

// keysOf returns the keys that the runs of the dependants of some runs have, with or without the keys of joins.
func keysOf(runs []Run, joins bool) (keys []string) {
	for _, r := range runs {
		if keys = append(keys, r.Key); joins {
			keys = append(keys, slotKey(r))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func insertRunRows(ctx context.Context, l *roster.LockTx, runs []Run) error {
	limits, err := startLimits(ctx, l, runs)
	if err != nil {
		return err
	}
	// Not l.Now: a run of the task type that was open at that time may have ended before fireTriggers read the open runs,
	// because a run ends without the lock row.
	now, err := sqldb.Value[time.Time](ctx, l, `SELECT {now}`)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	for part := range slices.Chunk(runs, roster.InsertRows/2) {
		rows := slices.Clone(part)
		for i := range rows {
			r := &rows[i]
			r.OwnSign, r.CreatedAt, r.WaitingSince, r.Message = l.OwnSign, now, now, sqldb.Clean(r.Message)
			r.TimeZone = cmp.Or(r.TimeZone, "UTC")
			if r.Ended() {
				r.FinishedAt = now
			} else {
				r.DeadlineAt = r.startDeadline(now, limits[r.TaskType])
			}
		}
		err := sqldb.Insert(ctx, l.Tx, "schedule_run", rows...)
		if l.Dialect.Class(err) == sqldb.Duplicate {
			err = sqldb.ErrRaced // another transaction made the run of a dependant, whose lock row this one does not hold
		}
		if err != nil {
			return fmt.Errorf("insert runs: %w", err)
		}
	}
	return nil
}

// graphBuilder collects runs, and the edges between them, to be inserted.
type graphBuilder struct {
	newID    func() string
	edges    []Edge
	order    []string // the dependants of the roots' task type, each after its upstreams
	existing map[taskKey]string
	others   map[taskKey][]graphRun // runs of upstreams outside the graph, by slot or key
	detached bool                   // existing runs do not wait for the new ones, because a root might be waiting for them

	runs     []Run
	deps     []Dep
	lateDeps []Dep // edges whose dependant existed before
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
	if root.State != Skipped {
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

// newDependant returns the run of a dependant, without an id. It lists what the run inherits (R5, R18): what the root
// says of its slot, and of the first upstream what the upstream's own run was asked to do. The upstream may have
// started, and may have ended long ago, so that nothing of how it went belongs to the dependant.
func newDependant(name, key string, root, first Run) Run {
	return Run{
		TaskType: name, Key: key, State: Waiting,
		RootID: root.ID, ScheduledAt: root.ScheduledAt, SlotEnd: root.SlotEnd, TimeZone: root.TimeZone,
		Backfill: root.Backfill, Name: cmp.Or(root.Name, first.Name),
		Trigger: first.Trigger, Priority: first.Priority, Params: first.Params, TraceParent: first.TraceParent,
	}
}

// addDependant adds the run of a dependant, unless it exists, and the edges to its upstreams.
func (g *graphBuilder) addDependant(name string, root Run, p runPlan) graphRun {
	id, there := g.existing[taskKey{name, p.key}]
	r := graphRun{Run: newDependant(name, p.key, root, p.upstreams[0].Run), fresh: !there}
	r.ID = id
	if !there {
		r.ID = g.newID()
		g.runs = append(g.runs, r.Run)
		g.existing[taskKey{name, p.key}] = r.ID
	}
	for _, up := range p.upstreams {
		d := Dep{r.ID, up.ID, up.Rule}
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
