package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// lockJoins locks the lock rows of joins, and returns the runs of their upstreams by task type and slotKey. With the
// lock, the later of two transactions that make runs of two upstreams sees the run of the other transaction (R18).
func lockJoins(ctx context.Context, l *roster.LockTx, g *graphBuilder, names []string, roots []Run) (map[taskKey][]graphRun, error) {
	var upstreams []string
	for _, name := range names {
		if err := lockJoin(ctx, l, name); err != nil {
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

// lockJoin locks the lock row of a task type, and makes it if no server of the task type has started yet.
func lockJoin(ctx context.Context, l *roster.LockTx, name string) error {
	n, err := l.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1 WHERE task_type = ? AND own_sign = ?`, name, l.OwnSign)
	if err != nil || n > 0 {
		return err
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`, name, l.OwnSign)
	if l.Dialect.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced // the next try locks the row of the other transaction
	}
	return err
}

// allStates are the states of runs. A condition on them lets a statement find runs of a slot by the index of the
// states.
var allStates = []string{RunWaiting, RunReady, RunRunning, RunSuccess, RunFailed, RunDependentFailed, RunCancelled, RunSkipped}

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
	bySlot := `trigger_name IS NOT NULL AND state IN (` + sqldb.Marks(len(allStates)) + `) AND scheduled_at IN `
	if err := readOthers(ctx, l, found, taskTypes, bySlot, sqldb.Args(allStates), slots); err != nil {
		return nil, err
	}
	return found, readOthers(ctx, l, found, taskTypes, `trigger_name IS NULL AND run_key IN `, nil, keys)
}

// readOthers adds the runs of the task types whose column at the end of where has a value of the list.
func readOthers(ctx context.Context, l *roster.LockTx, found map[taskKey][]graphRun, taskTypes []string, where string, args, list []any) error {
	for part := range slices.Chunk(list, roster.InsertRows) {
		all := slices.Concat(sqldb.Args(taskTypes), []any{l.OwnSign}, args, part)
		others, err := sqldb.Records[Run](ctx, l, `SELECT {columns} FROM schedule_run
			WHERE task_type IN (`+sqldb.Marks(len(taskTypes))+`) AND own_sign = ? AND `+where+`(`+sqldb.Marks(len(part))+`)
			AND NOT (state = '`+RunSkipped+`' AND root_run_id = run_id) ORDER BY run_id`, all...)
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
