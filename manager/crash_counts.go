package manager

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// crashCounts resets the crash counts of queues that this server has worked without a crash (S14).
type crashCounts struct {
	*base
	survived map[string]int64 // epochs under which queues were worked
	reset    map[string]int64 // epochs under which their counts were reset
}

// note notes the queues that were worked. The processor forgets them at the end of a sweep.
func (c *crashCounts) note() {
	for _, h := range c.proc.Queues() {
		if h.Survived {
			c.survived[h.Queue.ID] = h.Queue.Epoch
		}
	}
}

// nextJob returns the job that resets the counts that are due, or nil if there are none.
func (c *crashCounts) nextJob(view *ownView) *job {
	c.note()
	var due []center.QueueEpoch
	for id, epoch := range c.survived {
		if c.reset[id] != epoch {
			due = append(due, center.QueueEpoch{ID: id, Epoch: epoch})
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
