package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// endSweeps takes the queues of sweeps that have ended, or must end, from the processor. Then it saves how they ended.
func (s *sweeper) endSweeps(ctx context.Context, view *ownView) {
	s.dropLost(view)
	for _, h := range s.proc.Queues() {
		switch sw := s.sweeps[h.Queue.ID]; {
		case sw == nil:
			s.proc.Forget(h.Queue.ID) // it does nothing until the queue is drained
		case sw.end == nil:
			s.checkEnd(sw, h)
		}
	}
	for id, sw := range s.sweeps {
		if sw.end == nil {
			continue
		}
		err := sw.end(ctx, sw)
		if err != nil && s.runs.IsTransient(err) {
			s.queueLog(id).WithError(err).Debug("saving the end of a sweep failed; trying again")
			continue
		}
		if err != nil && !errors.Is(err, center.ErrRunOver) && !center.IsFenced(err) {
			s.queueLog(id).WithError(err).Error("saving the end of a sweep failed")
		}
		delete(s.sweeps, id)
		s.ticker.soon() // there may be room for another sweep, or for another run
	}
}

// dropLost forgets the sweeps of queues that this server does not own any more. The new owners continue them.
func (s *sweeper) dropLost(view *ownView) {
	own := map[string]int64{}
	for _, row := range view.Queues {
		if row.Owner == s.uuid {
			own[row.ID] = row.Epoch
		}
	}
	for id, sw := range s.sweeps {
		if epoch, ok := own[id]; !ok || epoch != sw.Epoch {
			delete(s.sweeps, id)
			s.ended(sw, SweepLost)
		}
	}
}

// checkEnd sets sw.end if the sweep has ended or must end, as soon as its queue is drained.
func (s *sweeper) checkEnd(sw *sweep, h processor.QueueState) {
	sw.last = sw.progress(h)
	end := s.endOf(sw, h)
	if end == nil {
		return
	}
	s.proc.Drain(h.Queue.ID)
	if s.proc.Forget(h.Queue.ID) {
		sw.end = end
	}
}

// endOf returns the function that saves how a sweep has ended. It returns nil while the sweep goes on.
func (s *sweeper) endOf(sw *sweep, h processor.QueueState) func(context.Context, *sweep) error {
	open, paused := s.ticker.open()
	switch {
	case sw.over || sw.RunID != open: // the run was cancelled, or its deadline has passed
		s.proc.Revoke(h.Queue.ID)
		return func(context.Context, *sweep) error {
			s.ended(sw, SweepLost)
			return nil
		}
	case h.Sweep.Failed, h.Sweep.Swept && sw.last.ItemsFailed > 0:
		cause := fmt.Sprintf("items failed: %d", sw.last.ItemsFailed)
		if h.Sweep.Err != nil {
			cause = h.Sweep.Err.Error() + "; " + cause
		}
		final := h.Sweep.Permanent
		return func(ctx context.Context, sw *sweep) error { return s.fail(ctx, sw, cause, final) }
	case h.Sweep.Swept:
		return s.finish
	case paused && h.Drained:
		return s.suspendOne
	}
	return nil
}

func (s *sweeper) finish(ctx context.Context, sw *sweep) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	err := s.runs.Engine().Sweeps.Finish(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.ended(sw, SweepDone)
		s.queueLog(sw.QueueID).WithField("run", sw.RunID).WithField("items", sw.last.ItemsDone).Info("queue swept")
	}
	return err
}

func (s *sweeper) fail(ctx context.Context, sw *sweep, cause string, final bool) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	failed, err := s.runs.Engine().Sweeps.Fail(ctx, sw.Sweep, sw.last, cause, final)
	if err == nil {
		result := SweepRetry
		if failed {
			result = SweepFailed
		}
		s.ended(sw, result)
		s.queueLog(sw.QueueID).WithField("run", sw.RunID).WithField("attempt", sw.Attempt).WithField("final", failed).Error("sweep failed: ", cause)
	}
	return err
}

func (s *sweeper) suspendOne(ctx context.Context, sw *sweep) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	err := s.runs.Engine().Sweeps.Suspend(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.ended(sw, SweepSuspended)
	}
	return err
}

// ended tells the observer how a sweep has ended.
func (s *sweeper) ended(sw *sweep, result string) {
	if s.cfg.Observer != nil {
		s.cfg.Observer.Swept(s.taskType, result, time.Since(sw.began))
	}
}

// suspend suspends the sweeps of drained queues before the server hands them over, so that the next owner continues where
// they stopped. If it fails, the next owner continues from the last saved progress.
func (s *sweeper) suspend(ctx context.Context, queues ...string) {
	for _, h := range s.proc.Queues() {
		if sw := s.sweeps[h.Queue.ID]; sw != nil && slices.Contains(queues, h.Queue.ID) {
			sw.last = sw.progress(h)
		}
	}
	for _, id := range queues {
		sw := s.sweeps[id]
		if sw == nil {
			continue
		}
		delete(s.sweeps, id)
		if sw.end != nil {
			continue // saving its end failed, so the next owner sweeps the queue once more to find the end
		}
		if err := s.suspendOne(ctx, sw); err != nil {
			s.queueLog(id).WithError(err).Debug("suspending a sweep failed")
		}
	}
}

// suspendAll suspends all sweeps, because the server leaves, except those of queues that did not drain.
func (s *sweeper) suspendAll(ctx context.Context, notDrained []string) {
	var queues []string
	for id := range s.sweeps {
		if !slices.Contains(notDrained, id) {
			queues = append(queues, id)
		}
	}
	s.suspend(ctx, queues...)
}
