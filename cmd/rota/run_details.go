package main

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// runDetails is a run with its queues and its graph.
type runDetails struct {
	run     center.RunRecord
	blocker runBlocker
	queues  []center.RunQueue
	graph   runGraph
}

// readRunDetails resolves the name as resolveRun does.
func readRunDetails(ctx context.Context, c *center.Center, name string) (d runDetails, err error) {
	if d.run, err = c.Runs().Find(ctx, name); err != nil {
		return d, err
	}
	if d.queues, err = c.Runs().Queues(ctx, d.run.ID); err != nil {
		return d, err
	}
	if d.graph.Runs, d.graph.Deps, err = c.Runs().Graph(ctx, d.run.ID); err != nil || d.run.Ended() {
		return d, err
	}
	d.blocker, err = findBlocker(ctx, c, d.run.Run)
	return d, err
}
