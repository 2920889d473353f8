package manager

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/fit"
)

// crashCounts resets the crash counts of queues that this server has worked without a crash (S14).
type crashCounts struct {
	*base
	survived map[string]int64 // epochs under which queues were worked
	reset    map[string]int64 // epochs under which their counts were reset
}

func crashPart(b *base) part {
	c := &crashCounts{base: b, survived: map[string]int64{}, reset: map[string]int64{}}
	return part{
		update: func(context.Context) { c.note() },
		jobs:   map[duty]func() *job{resetCrashes: c.clear}, often: []duty{resetCrashes},
		look: func(context.Context, bool) { c.look() },
	}
}

// note notes the queues that were worked. The processor forgets them at the end of a sweep.
func (c *crashCounts) note() {
	for _, h := range c.proc.Queues() {
		if h.Survived {
			c.survived[h.Queue.ID] = h.Queue.Epoch
		}
	}
}

// clear returns the job that resets the counts that are due, or nil if there are none.
func (c *crashCounts) clear() *job {
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
			return c.own().ResetCrashes(ctx, due)
		},
		then: func(_ context.Context, err error) (more bool) {
			if err != nil {
				return false // the next heartbeat tries again
			}
			for _, q := range due {
				c.reset[q.ID] = q.Epoch
			}
			c.view.invalidate()
			return true
		},
	}
}

// look notes own queues whose owners have died one after the other (S14). It goes by the rows, as the doctor
// does, so that both begin and end together, and the next owner goes on where this one dies.
func (c *crashCounts) look() {
	most := fit.Processor(*c.settings)
	for _, q := range c.view.Queues {
		if q.Owner != c.uuid || !most.TooManyCrashes(q.Crashes) {
			continue
		}
		what := "its items are executed one by one, to find the one that ends the process"
		if offers := c.proc.Capabilities(); !offers.Keyed && !offers.Cursored {
			what = "the dealer is not Keyed, so the item that ends the process cannot be found, " +
				"and the queue waits longer after each crash"
		}
		c.alerter.see(condition.Condition{Kind: condition.Crashes.Name, QueueID: q.ID, Text: fmt.Sprintf(
			"%d owners of queue %s in a row were expired before they had executed a page of it: %s", q.Crashes,
			escape.Name(q.ID), what)})
	}
}
