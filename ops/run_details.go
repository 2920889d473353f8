package ops

import (
	"context"

	"github.com/dutyrota/rota/runs"
)

// RunDetails is a run with its queues, its failed items, its graph and its blocker.
type RunDetails struct {
	Run     runs.RunRecord
	Blocker RunBlocker      // of an open run
	Queues  []runs.RunQueue // in natural order; none before the run is opened
	Graph   RunGraph

	FailedItems []runs.RunItem // the first ten
}

// shownItems is the number of failed items in RunDetails.
const shownItems = 10

// ReadRunDetails reads the details of the run with the given name, as Runs.Find takes it. The parts are read one after
// another: a run that ends meanwhile can differ from its queues.
func ReadRunDetails(ctx context.Context, c *Client, name string) (d RunDetails, err error) {
	if d.Run, err = c.Runs().Find(ctx, name); err != nil {
		return d, err
	}
	if d.Queues, err = c.Runs().Queues(ctx, d.Run.ID); err != nil {
		return d, err
	}
	if d.FailedItems, err = c.Runs().FailedItems(ctx, runs.RunItemFilter{RunID: d.Run.ID}, shownItems); err != nil {
		return d, err
	}
	if d.Graph.Runs, d.Graph.Deps, err = c.Runs().Graph(ctx, d.Run.ID); err != nil || d.Run.Ended() {
		return d, err
	}
	d.Blocker, err = FindBlocker(ctx, c, d.Run.Run)
	return d, err
}
