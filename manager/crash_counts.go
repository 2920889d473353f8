package manager

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// crashCounts resets the crash counts of queues that this server has worked without a crash (S14).
type crashCounts struct {
	*base
	reset map[string]int64 // epochs under which the count of a queue was reset
}

// nextJob returns the job that resets the counts that are due, or nil if there are none.
func (c *crashCounts) nextJob(view *ownView) *job {
	var due []center.QueueEpoch
	for _, h := range c.proc.Queues() {
		if h.Survived && c.reset[h.Queue.ID] != h.Queue.Epoch {
			due = append(due, center.QueueEpoch{ID: h.Queue.ID, Epoch: h.Queue.Epoch})
		}
	}
	if len(due) == 0 {
		return nil
	}
	return &job{
		name: "reset the crash counts of queues",
		call: func(ctx context.Context) error {
			return c.roster.Roster().Server(c.taskType, c.uuid).ResetCrashes(ctx, due)
		},
		then: func(_ context.Context, err error) (more bool) {
			if err != nil {
				return false // the next heartbeat tries again
			}
			for _, q := range due {
				c.reset[q.ID] = q.Epoch
			}
			view.invalidate()
			return true
		},
	}
}
