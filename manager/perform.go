package manager

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// perform takes the steps, and tells whether there may be more to take at once. Steps in the database make the
// view stale, also when they fail or find nothing to change; the next pulse then looks again.
func (s *server) perform(ctx context.Context, actions []action) (changed bool, err error) {
	var handovers []center.Handover
	again := false
	for _, a := range actions {
		switch a.verb {
		case grant:
			s.grant(a.row)
		case drain:
			s.drain(a.id)
		case resume:
			s.proc.Resume(a.id)
		case revoke:
			s.revoke(a.id)
		case forget:
			delete(s.life.lost, a.id)
			changed = s.proc.Forget(a.id) || changed // it may be begun anew, under another epoch
		case release:
			handovers = append(handovers, center.Handover{QueueID: a.id, Epoch: a.row.Epoch, To: a.row.Req})
		case retake:
			kept, err := s.retake(ctx, a.row)
			if err != nil {
				return changed, err
			}
			changed = changed || kept
			if kept {
				s.observe(MoveRetaken, 0)
			}
		case replan:
			again = true
		case remove:
			removed, err := s.remove(ctx, a.row)
			if err != nil {
				return changed, err
			}
			changed = changed || removed
		}
	}
	if again {
		before := len(s.life.blocked)
		if err := s.plan(ctx, pulse{}, true); err != nil {
			return changed, err
		}
		changed = changed || len(s.life.blocked) < before
	}
	if len(handovers) > 0 {
		released, err := s.release(ctx, handovers)
		return changed || released, err
	}
	return changed, nil
}

func (s *server) drain(id string) {
	s.life.drains[id] = time.Now()
	s.proc.Drain(id)
}

// drainedFor is since when a queue that is handed over has been drained; 0 if nothing of it was ever in hand.
func (s *server) drainedFor(id string) time.Duration {
	if begin, ok := s.life.drains[id]; ok {
		return time.Since(begin)
	}
	return 0
}

// revoke is asked for again and again until the dealer heeds it, and tells of it once.
func (s *server) revoke(id string) {
	if !s.life.lost[id] {
		s.life.lost[id] = true
		s.queueLog(id).Warn("queue lost")
		s.observe(MoveLost, 0)
	}
	s.proc.Revoke(id)
}

func (s *server) queueLog(id string) logrus.FieldLogger { return s.log.WithField("queue", id) }

func (s *server) grant(row center.ViewQueue) {
	q := processor.Queue{ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: row.Cursor, Epoch: row.Epoch}
	s.queueLog(row.ID).WithField("epoch", row.Epoch).Info("queue taken up")
	s.must(s.proc.Grant(q, s.life.view.QueueTotal))
	s.observe(MoveGranted, 0)
}

// release hands over queues that are drained. From the moment it is sent they are not worked again
// under these epochs, whatever the reply (H3): the processor forgets them first.
func (s *server) release(ctx context.Context, handovers []center.Handover) (bool, error) {
	for _, h := range handovers {
		s.suspend(ctx, h.QueueID)
	}
	for _, h := range handovers {
		s.spend(h.QueueID, h.Epoch)
	}
	stale := s.life.stale
	s.life.stale = true
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	released, err := s.c.Release(ctx, s.task.name, s.life.uuid, handovers)
	if len(released) == len(handovers) { // when many join, half of all views would be read for nothing else
		s.life.see(s.life.view.Without(released))
		s.life.stale = stale
	}
	for _, h := range handovers {
		if slices.Contains(released, h.QueueID) {
			s.queueLog(h.QueueID).WithField("to", h.To).Info("queue handed over")
			s.observe(MoveReleased, s.drainedFor(h.QueueID))
		}
	}
	return len(released) > 0, err
}

// remove gives up a queue that shall be no more; what holds for a release holds for it.
func (s *server) remove(ctx context.Context, row center.ViewQueue) (bool, error) {
	s.spend(row.ID, row.Epoch)
	s.life.stale = true
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	removed, err := s.c.FinishRemoval(ctx, s.task.name, s.life.uuid, row.ID, row.Epoch)
	if removed {
		s.queueLog(row.ID).Info("queue removed")
		s.observe(MoveRemoved, 0)
	}
	return removed, err
}

// spend makes the processor forget a queue, and keeps in mind that it is not worked again under the epoch.
func (s *server) spend(id string, epoch int64) {
	s.proc.Forget(id)
	s.life.spent[id] = epoch
}

func (s *server) retake(ctx context.Context, row center.ViewQueue) (bool, error) {
	s.life.stale = true
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	return s.c.Retake(ctx, s.task.name, s.life.uuid, row.ID, row.Epoch)
}
