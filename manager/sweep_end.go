package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// checkEnds takes the queues of sweeps that have ended, or must end, from the processor, and notes the sweeps whose end is
// to be saved.
func (s *sweeper) checkEnds() {
	s.dropLost()
	for _, h := range s.proc.Queues() {
		switch sw := s.sweeps[h.Queue.ID]; {
		case sw == nil:
			s.proc.Forget(h.Queue.ID) // it does nothing until the queue is drained
		case sw.end == nil:
			s.checkEnd(sw, h)
		}
	}
	s.ended = nil
	for _, sw := range s.sweeps {
		if sw.end != nil && !sw.saving {
			s.ended = append(s.ended, sw)
		}
	}
}

// saveEnds returns the job that saves how sweeps have ended, or nil if none has. A sweep whose end cannot be saved now
// stays until it can be.
func (s *sweeper) saveEnds() *job {
	if len(s.ended) == 0 {
		return nil
	}
	ended := s.ended
	s.ended = nil
	for _, sw := range ended {
		sw.saving = true
	}
	errs := make([]error, len(ended))
	return &job{
		name: "save ends of sweeps",
		call: func(ctx context.Context) error {
			for i, sw := range ended {
				errs[i] = sw.end(ctx, sw)
			}
			return nil
		},
		then: func(ctx context.Context, _ error) (more bool) {
			for i, sw := range ended {
				more = s.endSaved(ctx, sw, errs[i]) || more
			}
			return more
		},
	}
}

// endSaved forgets a sweep after its end was saved, or was refused for good, and reports whether it did.
func (s *sweeper) endSaved(ctx context.Context, sw *sweep, err error) bool {
	sw.saving = false
	if err != nil && s.runs.IsTransient(err) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "end of a sweep not saved; trying again", slog.String("queue", sw.QueueID), slog.Any("error", err))
		return false
	}
	if err != nil && !errors.Is(err, center.ErrRunOver) && !center.IsFenced(err) {
		s.log.LogAttrs(ctx, slog.LevelError, "end of a sweep not saved", slog.String("queue", sw.QueueID), slog.Any("error", err))
	}
	delete(s.sweeps, sw.QueueID)
	s.ticker.soon() // there may be room for another sweep, or for another run
	return true
}

// dropLost forgets the sweeps of queues that this server does not own any more. Their owners continue them.
func (s *sweeper) dropLost() {
	own := map[string]int64{}
	for _, row := range s.view.Queues {
		if row.Owner == s.uuid {
			own[row.ID] = row.Epoch
		}
	}
	for id, sw := range s.sweeps {
		if epoch, ok := own[id]; !sw.saving && (!ok || epoch != sw.Epoch) {
			delete(s.sweeps, id)
			s.count(sw, SweepLost)
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
		s.proc.Revoke(h.Queue.ID, fmt.Errorf("%w: %w", center.ErrFenced, center.ErrRunOver))
		return func(context.Context, *sweep) error {
			s.count(sw, SweepLost)
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
	err := s.runs.Engine().Sweeps.Finish(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.count(sw, SweepDone)
		s.log.LogAttrs(ctx, slog.LevelInfo, "queue swept", slog.String("queue", sw.QueueID), slog.String("run", sw.RunID), slog.Int64("items", sw.last.ItemsDone))
	}
	return err
}

func (s *sweeper) fail(ctx context.Context, sw *sweep, cause string, final bool) error {
	failed, err := s.runs.Engine().Sweeps.Fail(ctx, sw.Sweep, sw.last, cause, final)
	if err == nil {
		result := SweepRetry
		if failed {
			result = SweepFailed
		}
		s.count(sw, result)
		s.log.LogAttrs(ctx, slog.LevelError, "sweep failed: "+cause,
			slog.String("queue", sw.QueueID), slog.String("run", sw.RunID), slog.Int("attempt", sw.Attempt), slog.Bool("final", failed))
	}
	return err
}

func (s *sweeper) suspendOne(ctx context.Context, sw *sweep) error {
	if sw.waits != "" {
		sw.last.Waits = new("")
	}
	err := s.runs.Engine().Sweeps.Suspend(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.count(sw, SweepSuspended)
	}
	return err
}

// count tells the observer how a sweep has ended.
func (s *sweeper) count(sw *sweep, result string) {
	if s.cfg.Observer != nil {
		s.cfg.Observer.Swept(s.taskType, result, time.Since(sw.began))
	}
}

// take forgets the sweep of a drained queue that is about to be handed over, and returns it, to be suspended. It returns
// none for a queue that is not swept, or whose sweep has ended: how it ended could not be saved, and the next owner finds it
// out again.
func (s *sweeper) take(queue string) []*sweep {
	sw := s.sweeps[queue]
	if sw == nil {
		return nil
	}
	delete(s.sweeps, queue)
	if sw.end != nil {
		return nil
	}
	for _, h := range s.proc.Queues() {
		if h.Queue.ID == queue {
			sw.last = sw.progress(h)
		}
	}
	return []*sweep{sw}
}

// suspend suspends a sweep, so that the next owner of its queue continues where it stopped. If that fails, the next owner
// continues from what was saved last.
func (s *sweeper) suspend(ctx context.Context, sw *sweep) {
	if err := s.suspendOne(ctx, sw); err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "sweep not suspended", slog.String("queue", sw.QueueID), slog.Any("error", err))
	}
}

// suspendAll suspends all sweeps, because the server leaves, except those of queues that did not drain.
func (s *sweeper) suspendAll(ctx context.Context, notDrained []string) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	for id := range maps.Clone(s.sweeps) {
		if !slices.Contains(notDrained, id) {
			for _, sw := range s.take(id) {
				s.suspend(ctx, sw)
			}
		}
	}
}
