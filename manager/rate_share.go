package manager

import "context"

// rateShare is the part of rate_per_second that a server in mode RUN may use (X4): its part of the queues that the open
// run has not finished. The processor cannot compute it, because the server claims only some of its queues at a time.
// Each server counts the queues with each of its ticks. While the counts of the servers differ, for a second at most,
// their parts may sum to more than 1.
type rateShare struct {
	*base
	own, all int
}

// count counts the queues of the open run. It does nothing without a rate, so that a tick remains one statement.
func (r *rateShare) count(ctx context.Context, open string, rate float64) (err error) {
	if rate > 0 && open != "" {
		r.own, r.all, err = r.runs.Engine().Sweeps.Unfinished(ctx, open, r.uuid)
	}
	return err
}

// apply passes the part to the processor.
func (r *rateShare) apply() {
	if r.all > 0 {
		r.proc.SetRateShare(float64(r.own) / float64(r.all))
	}
}
