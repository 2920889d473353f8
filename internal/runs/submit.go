package runs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	maxRunKey = 200    // bytes; the column also holds the keys of triggers, which append a slot to an id
	maxParams = 60_000 // bytes; fits into the text column of every database
)

// Submit makes a run of a task type of mode RUN, and the runs of its dependants, and returns its id. A task type has one
// run per key. If the key has a run already, Submit ignores the other arguments and returns the id of that run, and existed
// is true. After a commit whose reply was lost, Submit cannot know this, and existed is false. Without a key each call makes
// a run.
//
// The run is opened when the runs in after have succeeded and no other run of the task type is RUNNING. It never overlaps
// and is never skipped. If one of the runs in after does not succeed, it ends DEPENDENT_FAILED.
//
// The dependants get its key and params. If a dependant already has a run of that key, Submit makes no second one: the
// existing run also waits for this one, if it still waits.
//
// It returns ErrUnknownTask for an unknown task type and ErrUnknownRun for an unknown run in after.
func (rs *Runs) Submit(ctx context.Context, taskType, key, params string, after ...string) (runID string, existed bool, err error) {
	if key == "" {
		key = uuid.NewString()
	}
	submit := func() error {
		return rs.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			runID, existed, err = submitRun(ctx, l, Run{Key: key, Params: params}, after)
			return err
		})
	}
	if err = cmp.Or(roster.ValidName("key", key, maxRunKey), validParams(params)); err == nil {
		err = ensureLockRow(ctx, rs.roster, taskType)
	}
	if err == nil {
		err = submit()
	}
	if errors.Is(err, sqldb.ErrUnknownCommit) && ctx.Err() == nil {
		err = submit() // if the first try was committed, the key finds its run
		existed = false
	}
	if err == nil && len(after) > 0 {
		err = rs.closer.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	if err != nil {
		return "", false, fmt.Errorf("submit %s: %w", taskType, err)
	}
	return runID, existed, nil
}

func validParams(params string) error {
	if len(params) > maxParams {
		return fmt.Errorf("params must have at most %d bytes, not %d", maxParams, len(params))
	}
	if clean := strings.ToValidUTF8(params, ""); clean != params || strings.Contains(params, "\x00") {
		return errors.New("params must be UTF-8 without NUL")
	}
	return nil
}

// ensureLockRow checks that a task type can have runs, and makes its lock row, which is missing in an own_sign in which no
// server of the task type has started yet.
func ensureLockRow(ctx context.Context, r *roster.Roster, taskType string) error {
	if err := checkMode(ctx, r.DB, taskType); err != nil {
		return err
	}
	return r.InsertLockRow(ctx, taskType)
}

// checkMode returns ErrUnknownTask if the task type has no row, and ErrNoRuns if its mode is not RUN.
func checkMode(ctx context.Context, db *sqldb.DB, taskType string) error {
	var mode string
	err := db.QueryRow(ctx, `SELECT mode FROM schedule_task_type WHERE task_type = ?`, taskType).Scan(&mode)
	switch {
	case sqldb.NoRows(err):
		return roster.ErrUnknownTask
	case err == nil && mode != ModeRun:
		return ErrNoRuns
	}
	return err
}

// submitRun completes a run and inserts it, unless a run of its key exists.
func submitRun(ctx context.Context, l *roster.LockTx, r Run, after []string) (runID string, there bool, err error) {
	known, err := runsOfKeys(ctx, l, []string{l.TaskType}, []string{r.Key})
	if err != nil {
		return "", false, err
	}
	if id := known[taskKey{l.TaskType, r.Key}]; id != "" {
		return id, true, nil
	}
	if after, err = checkUpstreams(ctx, l, after); err != nil {
		return "", false, err
	}
	r = newRun(l, r, l.Now)
	if len(after) > 0 {
		r.State = RunWaiting
	}
	return r.ID, false, insertRuns(ctx, l, []Run{r}, after)
}

// newRun completes a run of the locked task type that is its own root. Its state defaults to READY.
func newRun(l *roster.LockTx, r Run, at time.Time) Run {
	r.ID, r.TaskType, r.OwnSign, r.ScheduledAt = newRunID(l.NextInstant()), l.TaskType, l.OwnSign, at
	r.RootID = r.ID
	if r.State == "" {
		r.State = RunReady
	}
	return r
}

// checkUpstreams checks that the runs exist, and returns each of them once.
func checkUpstreams(ctx context.Context, l *roster.LockTx, after []string) ([]string, error) {
	after = slices.Compact(slices.Sorted(slices.Values(after)))
	for _, id := range after {
		var n int
		err := l.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_run WHERE run_id = ? AND own_sign = ?`, id, l.OwnSign).Scan(&n)
		if err == nil && n == 0 {
			err = ErrUnknownRun
		}
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", id, err)
		}
	}
	return after, nil
}

// taskKey identifies a run within its own_sign.
type taskKey struct{ taskType, key string }

// runsOfKeys returns the ids of the existing runs of the task types that have one of the keys.
func runsOfKeys(ctx context.Context, l *roster.LockTx, taskTypes, keys []string) (map[taskKey]string, error) {
	found := map[taskKey]string{}
	if len(taskTypes) == 0 {
		return found, nil
	}
	for part := range slices.Chunk(keys, roster.InsertRows) {
		args := append(append(sqldb.Args(taskTypes), l.OwnSign), sqldb.Args(part)...)
		err := l.Each(ctx, func(rows *sql.Rows) error {
			var n taskKey
			var id string
			err := rows.Scan(&n.taskType, &n.key, &id)
			found[n] = id
			return err
		}, `SELECT task_type, run_key, run_id FROM schedule_run
			WHERE task_type IN (`+sqldb.Marks(len(taskTypes))+`) AND own_sign = ? AND run_key IN (`+sqldb.Marks(len(part))+`) ORDER BY run_id`, args...)
		if err != nil {
			return nil, fmt.Errorf("find runs by key: %w", err)
		}
	}
	return found, nil
}

// insertRuns inserts runs of the locked task type. For each run that is not SKIPPED it also inserts the runs of all its
// dependants, WAITING, and a snapshot of the edges between them (R5). The roots wait for the runs in after.
func insertRuns(ctx context.Context, l *roster.LockTx, roots []Run, after []string) error {
	edges, err := ReadEdges(ctx, l.Tx)
	if err != nil {
		return err
	}
	g := graphBuilder{newID: func() string { return newRunID(l.NextInstant()) }, edges: edges, order: downstream(edges, l.TaskType), detached: len(after) > 0}
	if g.existing, err = runsOfKeys(ctx, l, g.order, keysOf(roots)); err != nil {
		return err
	}
	for _, root := range roots {
		for _, id := range after {
			g.deps = append(g.deps, RunDep{root.ID, id, RuleSuccess})
		}
		g.add(root)
	}
	if err := insertRunRows(ctx, l, g.runs); err != nil {
		return err
	}
	for _, d := range g.lateDeps {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ? AND state = '`+RunWaiting+`'`, d.Run)
		if err != nil {
			return err
		}
		if n > 0 {
			g.deps = append(g.deps, d)
		}
	}
	return insertDeps(ctx, l, g.deps)
}

func keysOf(runs []Run) []string {
	keys := make([]string, len(runs))
	for i, r := range runs {
		keys[i] = r.Key
	}
	return keys
}

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

// add adds a root and the runs of its dependants.
func (g *graphBuilder) add(root Run) {
	g.runs = append(g.runs, root)
	if root.State == RunSkipped {
		return
	}
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

func insertRunRows(ctx context.Context, l *roster.LockTx, runs []Run) error {
	for part := range slices.Chunk(runs, roster.InsertRows/2) {
		args := make([]any, 0, 12*len(part))
		for _, r := range part {
			var finished any
			if r.Ended() {
				finished = l.Dialect.Time(l.Now)
			}
			args = append(args, r.ID, r.TaskType, l.OwnSign, r.Key, r.RootID, sqldb.Null(r.Trigger), l.Dialect.Time(r.ScheduledAt), r.State, r.Priority, r.Params, sqldb.Clean(r.Message), finished)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}), ", len(part)), ", ")
		_, err := l.Exec(ctx, `INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, trigger_name, scheduled_at, state,
			priority, params, message, finished_at, created_at) VALUES `+values, args...)
		if l.Dialect.Class(err) == sqldb.Duplicate {
			err = sqldb.ErrRaced // another transaction made the run of a dependant, whose lock row is not held: the next try finds it
		}
		if err != nil {
			return fmt.Errorf("insert runs: %w", err)
		}
	}
	return nil
}

func insertDeps(ctx context.Context, l *roster.LockTx, deps []RunDep) error {
	for part := range slices.Chunk(deps, roster.InsertRows) {
		args := make([]any, 0, 3*len(part))
		for _, d := range part {
			args = append(args, d.Run, d.Upstream, d.Rule)
		}
		_, err := l.Exec(ctx, `INSERT INTO schedule_run_dep (run_id, upstream_run_id, rule) VALUES `+
			strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(part)), ", "), args...)
		if err != nil {
			return fmt.Errorf("insert dependencies: %w", err)
		}
	}
	return nil
}
