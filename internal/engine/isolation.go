package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/processor"
)

// isolationStage executes the items of a queue that has crashed too often one by one, and lets one such queue at a time
// have a turn.
var isolationStage = stage{
	claim: func(c *selectCall, _ time.Time, s *scheduler) {
		if c.lane.alone {
			s.turn = c.lane
		}
	},
	take: func(b *batch, _ *scheduler) {
		if b.isolation.due = b.lane.alone; b.isolation.due {
			b.isolation.drains = b.grant.drainsLocked()
			b.isolation.turn = new(atomic.Pointer[time.Time])
			if b.mark == ordinary {
				b.mark = single
			}
		}
	},
	begin: func(b *batch) error {
		if !b.isolation.due {
			return nil
		}
		return b.isolation.begin(b)
	},
	settle: func(b *batch) { b.isolation.end(b) },
	end: func(b *batch, _ *scheduler) { // not in settle, which a Goexit in Discard skips
		if b.isolation.held {
			<-b.env.Alone
		}
	},
}

// AlertKiller is the Kind of an Alert that says that an item is dead because the process ended while it executed the
// item alone (S14).
const AlertKiller = "KILLER"

// TooManyCrashes reports whether so many owners of a queue were expired in a row (Queue.Crashes) that one of its items
// must be the cause. The processor then executes the items of the queue one by one, if they have names (S14).
func (s Settings) TooManyCrashes(crashes int) bool {
	return s.MaxCrashes > 0 && crashes > s.mostCrashes()
}

// mostCrashes returns the largest number of crashes with which a queue is worked as usual. A run fails its queue after
// MaxCrashes takeovers, so the owner before the last of them must find the item.
func (s Settings) mostCrashes() int {
	if s.Runs {
		return s.MaxCrashes - 1
	}
	return s.MaxCrashes
}

// crashed prepares the lane for a queue that has crashed too often, and returns how long its first select waits. The
// items of a dealer without keys have no names. Such a queue waits longer after each crash, so that the other queues of
// the process make progress.
func (l *lane) crashed(q processor.Queue, s *Settings, tracksItems bool) time.Duration {
	if !s.TooManyCrashes(q.Crashes) {
		return 0
	}
	if tracksItems {
		l.alone, l.serial = true, true
		return 0
	}
	return s.queuePause(q.Crashes - s.mostCrashes())
}

// passTurnLocked ends the turn of a lane that is idle, and makes the lanes due that have waited for the turn.
func (s *scheduler) passTurnLocked(l *lane) {
	if s.turn != l || !l.idle(s.settings.NotSleep) {
		return
	}
	s.turn = nil
	for _, g := range s.grants {
		if g.lane.alone && g.lane != l {
			s.enqueueLocked(g.lane)
		}
	}
}

// surviveLocked records that a queue was worked after its last crash and that the process is still there.
func (s *scheduler) surviveLocked(l *lane) {
	g := l.grant
	if g.queue.Crashes == 0 || g.survived {
		return
	}
	g.survived = true
	notify(s.signals.emptied)
	s.endIsolationLocked(l)
}

// endIsolationLocked lets the items of a lane be executed in batches again, when its queue was worked after its last
// crash.
func (s *scheduler) endIsolationLocked(l *lane) {
	if g := l.grant; s.settings.TooManyCrashes(g.queue.Crashes) && !g.survived {
		return
	}
	l.alone, l.serial = false, s.capabilities.Cursored
	s.offerLocked(l)
}

// isolation is the state of a batch whose item is executed alone.
type isolation struct {
	due    bool            // it is such a batch
	drains <-chan struct{} // closed when the queue drains
	held   bool            // the batch holds the value of Env.Alone

	turn     *atomic.Pointer[time.Time] // when the turn of the item came; Processor.Stalled reads it meanwhile
	recorded bool                       // the store has a record that the item has started
	start    update                     // that record
}

// began returns since when a batch that was claimed at a time has been running. A batch that waits for the turn of its
// item does not run: the item that it waits for does.
func (i *isolation) began(claimed time.Time) (at time.Time, runs bool) {
	if !i.due {
		return claimed, true
	}
	if turn := i.turn.Load(); turn != nil {
		return *turn, true
	}
	return time.Time{}, false
}

// errDrains is the error of a batch whose queue has begun to drain before its turn came.
var errDrains = errors.New("the queue drains")

// begin waits until no other item of the process is executed alone, and records that the item starts. If the queue
// drains meanwhile, the item does not start: the other item may run for hours. If begin cannot record the start, the
// processor does not execute the item: nothing could name the item if it ended the process.
func (i *isolation) begin(b *batch) (err error) {
	select {
	case b.env.Alone <- struct{}{}:
		i.held = true
		i.turn.Store(new(time.Now()))
	case <-i.drains:
		return errDrains
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
	if err = b.findKeys(); err == nil {
		i.start, err = b.lane.failures.saveStart(b)
	}
	if err != nil {
		b.result.pause = true
		return fmt.Errorf("record the start of item: %w", err)
	}
	i.recorded = true
	return nil
}

// end removes the record of an item that was cancelled, or whose failure counts as no attempt, as long as this server
// may still own the queue. Another outcome has replaced or deleted the record, except in a sweep, which keeps its
// failed items with the run. An item that has failed before its Discard was cancelled has the record of its death.
func (i *isolation) end(b *batch) {
	uncounted := b.outcome == failed && (b.lane.sweep != nil || b.result.waiting > 0 || b.result.pause)
	interrupted := b.outcome == cancelled && b.result.failed == 0
	if !i.recorded || !interrupted && !uncounted || !b.env.Trusted() {
		return
	}
	if err := b.lane.failures.deleteStart(context.WithoutCancel(b.bound), i.start); err != nil {
		b.logError("delete the start of an item", i.start.key, err)
	}
}

// saveStart records in the store that an item begins alone.
func (l *failureLog) saveStart(b *batch) (update, error) {
	u := b.updateOf(0)
	u.started = true
	return u, l.write(b.bound, []FailedItem{u.item(b.began)})
}

// deleteStart makes the record of an item in the store what it was before it began. An item that has only failed in an
// outage had none.
func (l *failureLog) deleteStart(ctx context.Context, u update) error {
	if u.started = false; u.attempts > 0 && !l.sweeps {
		return l.write(ctx, []FailedItem{u.item(time.Now())})
	}
	return l.store.Delete(ctx, l.queue, []string{u.key})
}

// declareDead declares the items dead that an earlier owner has started alone and not ended, if as many owners in a row
// were expired as isolate the queue. With fewer crashes it does nothing: the owner may have left, without being able to
// delete the record.
func (l *failureLog) declareDead(c *selectCall) error {
	if !c.settings.TooManyCrashes(l.queue.Crashes) {
		return nil
	}
	dead, err := l.store.Started(c.ctx, l.queue)
	if err != nil || len(dead) == 0 {
		return err
	}
	for i := range dead {
		f := &dead[i]
		f.Dead, f.Started, f.RetryIn = true, false, 0
		f.Attempts++
		f.LastError = fmt.Sprintf("the process ended while it executed this item alone, after %s executed a page of queue %s",
			count(int(l.queue.Crashes-1), "process had ended before it had", "processes had ended before they had"), l.queue.ID)
	}
	if err := l.write(c.ctx, dead); err != nil {
		return err
	}
	for _, f := range dead {
		c.logLine(slog.LevelError, "item is dead", slog.String("error", f.LastError), slog.String("key", f.Key))
		c.env.Alert(Alert{
			Kind: AlertKiller, Queue: l.queue.ID, Subject: "item " + f.Key,
			Text: fmt.Sprintf("item %s is dead: %s", f.Key, f.LastError),
		})
	}
	c.dead += len(dead)
	return nil
}
