package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// maxGraphRuns bounds the runs of a graph, and maxGraphEdges the edges that one statement reads of it. No reader could
// follow a larger graph, and no transaction changes one.
const (
	maxGraphRuns  = 1_000
	maxGraphEdges = 50 * maxGraphRuns
)

// The errors about the graph of a run.
var (
	ErrGraphTooLarge = fmt.Errorf("the graph has more than %d runs", maxGraphRuns)
	ErrRunCycle      = errors.New("the runs would wait for each other forever")
)

// Graph returns the graph of runs (R22): these runs and all runs that edges connect with them, in the order in which
// they were made, and the edges between them. A run that does not exist, such as one that retention has deleted, is
// left out. Graph returns ErrUnknownRun if none exists, and ErrGraphTooLarge with a part of a graph that has more than
// 1,000 runs.
func (rs *Runs) Graph(ctx context.Context, runIDs ...string) (runs []Run, deps []Dep, err error) {
	runs, deps, err = rs.graph(ctx, rs.db, runIDs)
	if err == nil && len(runs) == 0 {
		err = ErrUnknownRun
	}
	return runs, deps, sqldb.Wrap(err, "read the graph of run %s", strings.Join(runIDs, ", "))
}

// graph returns the graph of runs, as far as it has read it together with ErrGraphTooLarge.
func (c core) graph(ctx context.Context, q sqldb.Eacher, from []string) (runs []Run, deps []Dep, err error) {
	ids, err := slices.Clone(from), nil
	seen := map[Dep]bool{}
	for front := ids; len(front) > 0 && err == nil; {
		found, readErr := edges(ctx, q, front)
		if readErr != nil {
			return nil, nil, readErr
		}
		known := len(ids)
		for _, d := range found {
			if !seen[d] {
				seen[d], deps = true, append(deps, d)
			}
			for _, id := range []string{d.Run, d.Upstream} {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		if front = ids[known:]; len(ids) > maxGraphRuns || len(found) == maxGraphEdges {
			ids, err = ids[:min(len(ids), maxGraphRuns)], ErrGraphTooLarge
		}
	}
	runs, readErr := sqldb.RecordsIn[Run](ctx, q, ids, `SELECT {columns} FROM schedule_run
		WHERE own_sign = ? AND run_id IN ({ids}) ORDER BY run_id`, c.ownSign)
	// The ids may come in several statements.
	slices.SortFunc(runs, func(a, b Run) int { return strings.Compare(a.ID, b.ID) })
	return runs, deps, errors.Join(readErr, err)
}

// edges returns the edges from or to one of the runs, at most maxGraphEdges.
func edges(ctx context.Context, q sqldb.Eacher, runIDs []string) ([]Dep, error) {
	marks := sqldb.Marks(len(runIDs))
	list, err := sqldb.Records[Dep](ctx, q, fmt.Sprintf(`SELECT {columns} FROM schedule_run_dep
		WHERE run_id IN (`+marks+`) OR upstream_run_id IN (`+marks+`) ORDER BY run_id, upstream_run_id LIMIT %d`,
		maxGraphEdges), append(sqldb.Args(runIDs), sqldb.Args(runIDs)...)...)
	return list, sqldb.Wrap(err, "read the dependencies")
}

// underGraph runs f under the lock rows of the task types of a graph, with those runs of the graph whose task type
// exists, by id, and the edges. While it runs, no other call of underGraph adds an edge to the graph: it would need one
// of the lock rows. Like every transaction, it locks the rows in the order of the names.
func (rs *Runs) underGraph(ctx context.Context, from []string,
	f func(ctx context.Context, l *roster.LockTx, list []Run, deps []Dep) error,
) error {
	for {
		list, _, err := rs.graph(ctx, rs.db, from)
		if err == nil {
			list, err = ofKnownTasks(ctx, rs.db, list)
		}
		if err == nil && len(list) == 0 {
			err = ErrUnknownRun
		}
		if err != nil {
			return err
		}
		names := taskTypesOf(list)
		if err := rs.roster.InsertLockRow(ctx, names[0]); err != nil {
			return err
		}
		grown := false
		err = rs.roster.UnderLock(ctx, names[0], func(ctx context.Context, l *roster.LockTx) error {
			for _, name := range names[1:] {
				if err := lockTask(ctx, l, name); err != nil {
					return fmt.Errorf("lock %s: %w", name, err)
				}
			}
			list, deps, err := rs.graph(ctx, l, from)
			if err == nil {
				list, err = ofKnownTasks(ctx, l, list)
			}
			grown = slices.ContainsFunc(list, func(r Run) bool { return !slices.Contains(names, r.TaskType) })
			if err != nil || grown {
				return err
			}
			return f(ctx, l, list, deps)
		})
		if err != nil || !grown {
			return err
		}
	}
}

func taskTypesOf(list []Run) (names []string) {
	for _, r := range list {
		names = append(names, r.TaskType)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ofKnownTasks returns the runs whose task type exists. The deletion of a task type has cancelled the others.
func ofKnownTasks(ctx context.Context, q sqldb.Eacher, list []Run) ([]Run, error) {
	known, err := sqldb.RecordsIn[string](ctx, q, taskTypesOf(list), `SELECT task_type FROM schedule_task_type
		WHERE task_type IN ({ids}) ORDER BY task_type`)
	return slices.DeleteFunc(list, func(r Run) bool { return !slices.Contains(known, r.TaskType) }),
		sqldb.Wrap(err, "read the task types")
}

// Depend makes a run that has not begun wait for another one, too (R22). If upstreamID has succeeded, nothing else
// changes, and if it has ended in another way, the run ends as rule SUCCESS says. If the run waits for upstreamID
// already, Depend does nothing. It returns ErrRunState if the run has begun or ended, ErrRunCycle if upstreamID waits
// for the run, directly or through others, and ErrUnknownRun for a run that is not of this own_sign.
func (rs *Runs) Depend(ctx context.Context, runID, upstreamID, actor string) error {
	var taskType string
	err := rs.underGraph(ctx, []string{runID, upstreamID},
		func(ctx context.Context, l *roster.LockTx, list []Run, deps []Dep) error {
			r, err := rs.lockEnds(ctx, l, runID, upstreamID)
			if err != nil {
				return err
			}
			if err := checkCycle(list, deps, runID, upstreamID); err != nil {
				return err
			}
			if taskType = r.TaskType; slices.ContainsFunc(deps, func(d Dep) bool {
				return d.Run == runID && d.Upstream == upstreamID
			}) {
				return nil
			}
			if err := sqldb.Insert(ctx, l.Tx, "schedule_run_dep", Dep{runID, upstreamID, RuleSuccess}); err != nil {
				return fmt.Errorf("insert the dependency: %w", err)
			}
			if err := waitAgain(ctx, l.Tx, r); err != nil {
				return err
			}
			reason := "run " + runID + " waits for run " + upstreamID
			return l.Of(taskType).Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: reason})
		})
	if err == nil {
		err = rs.closer.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	return sqldb.Wrap(err, "let run %s wait for run %s", runID, upstreamID)
}

// CheckDepend returns the error with which Depend would refuse to make a run wait for another one, and changes nothing.
// It does not look at a graph of more than 1,000 runs, which Depend does.
func (rs *Runs) CheckDepend(ctx context.Context, runID, upstreamID string) error {
	list, deps, err := rs.Graph(ctx, runID, upstreamID)
	if errors.Is(err, ErrGraphTooLarge) {
		return nil
	}
	if err == nil {
		err = checkCycle(list, deps, runID, upstreamID)
	}
	if i := slices.IndexFunc(list, func(r Run) bool { return r.ID == runID }); err == nil && i >= 0 {
		err = checkBegun(list[i])
	}
	return sqldb.Wrap(err, "let run %s wait for run %s", runID, upstreamID)
}

func checkCycle(list []Run, deps []Dep, runID, upstreamID string) error {
	if path := runPath(deps, upstreamID, runID); path != nil {
		return fmt.Errorf("%w: %s", ErrRunCycle, nameRuns(list, append([]string{runID}, path...)))
	}
	return nil
}

func checkBegun(r Run) error {
	if r.State != Waiting && r.State != Ready {
		return fmt.Errorf("%w: it is %s", ErrRunState, r.State)
	}
	return nil
}

// lockEnds locks the rows of a run that is to wait for another one, and of this one, in the order in which every
// transaction locks runs. It returns the first run.
func (rs *Runs) lockEnds(ctx context.Context, l *roster.LockTx, runID, upstreamID string) (r Run, err error) {
	for _, id := range slices.Sorted(slices.Values([]string{runID, upstreamID})) {
		if _, err := lockRun(ctx, l.Tx, id, States()...); err != nil {
			return r, err
		}
	}
	for _, id := range []string{upstreamID, runID} {
		if r, err = runRow(ctx, l, id); err == nil && r.OwnSign != rs.ownSign {
			err = ErrUnknownRun
		}
		if err != nil {
			return r, fmt.Errorf("run %.60q: %w", id, err)
		}
	}
	return r, checkBegun(r)
}

// waitAgain makes a READY run WAITING if an upstream has not succeeded.
func waitAgain(ctx context.Context, t sqldb.Tx, r Run) error {
	state, _, err := upstreamState(ctx, t, r.ID)
	if err != nil || state == Ready || r.State != Ready {
		return err
	}
	return moveRun(ctx, t, r.ID, Ready, Waiting, "")
}

// runPath returns the runs on a way upstream from a run to another one, nil if there is no way.
func runPath(deps []Dep, from, to string) []string {
	if from == to {
		return []string{from}
	}
	before, front := map[string]string{from: ""}, []string{from}
	for ; len(front) > 0; front = front[1:] {
		for _, d := range deps {
			if _, seen := before[d.Upstream]; seen || d.Run != front[0] {
				continue
			}
			if before[d.Upstream], front = front[0], append(front, d.Upstream); d.Upstream != to {
				continue
			}
			path := []string{to}
			for at := front[0]; at != ""; at = before[at] {
				path = append(path, at)
			}
			slices.Reverse(path)
			return path
		}
	}
	return nil
}

// nameRuns names runs of a list, each after the next one.
func nameRuns(list []Run, ids []string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "run " + id
		if at := slices.IndexFunc(list, func(r Run) bool { return r.ID == id }); at >= 0 {
			names[i] = fmt.Sprintf("%s (run %s)", list[at].TaskType, id)
		}
	}
	return strings.Join(names, " after ")
}
