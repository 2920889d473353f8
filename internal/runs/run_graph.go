package runs

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// maxGraphRuns bounds the runs of a graph that Graph reads. No reader could follow a larger graph.
const maxGraphRuns = 1_000

// Graph returns a run, its direct and indirect upstreams and dependants in the order in which they were made, and the edges
// between them. It returns ErrUnknownRun if the run does not exist.
func (rs *Runs) Graph(ctx context.Context, runID string) (runs []Run, deps []RunDep, err error) {
	if _, err := rs.readRun(ctx, runID); err != nil {
		return nil, nil, err
	}
	seen, edges := map[string]bool{runID: true}, map[RunDep]bool{}
	for front := []string{runID}; len(front) > 0 && len(seen) < maxGraphRuns; {
		var next []string
		reached := func(id string) {
			if !seen[id] {
				seen[id], next = true, append(next, id)
			}
		}
		found, err := rs.edges(ctx, front)
		if err != nil {
			return nil, nil, fmt.Errorf("read the graph of run %s: %w", runID, err)
		}
		for _, d := range found {
			if !edges[d] {
				edges[d], deps = true, append(deps, d)
			}
			reached(d.Run)
			reached(d.Upstream)
		}
		front = next
	}
	var ids []any
	for id := range seen {
		ids = append(ids, id)
	}
	runs, err = sqldb.Records[Run](ctx, rs.db, `SELECT {columns} FROM schedule_run WHERE run_id IN (`+sqldb.Marks(len(ids))+`) ORDER BY run_id`, ids...)
	if err != nil {
		return nil, nil, fmt.Errorf("read the graph of run %s: %w", runID, err)
	}
	return runs, deps, nil
}

// edges returns the edges from or to one of the runs.
func (rs *Runs) edges(ctx context.Context, runIDs []string) ([]RunDep, error) {
	return sqldb.Records[RunDep](ctx, rs.db, `SELECT {columns} FROM schedule_run_dep
		WHERE run_id IN (`+sqldb.Marks(len(runIDs))+`) OR upstream_run_id IN (`+sqldb.Marks(len(runIDs))+`) ORDER BY run_id, upstream_run_id`,
		append(sqldb.Args(runIDs), sqldb.Args(runIDs)...)...)
}
