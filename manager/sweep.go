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

// In mode RUN the processor does not get a queue because the server owns it, but because the server has claimed it
// for the open run. A sweep lasts until a select finds nothing more (R9); then the processor forgets the queue.
// What becomes of the runs themselves is decided by Tick, which every server calls: there is no leader.

// sweep is a queue that this server sweeps for a run.
type sweep struct {
	center.Sweep
	began time.Time
	base  center.Progress // of earlier sweeps of the queue in this run
	saved center.Progress
	at    time.Time                           // when it was saved
	over  bool                                // the queue of the run is not this sweep's any more
	end   func(context.Context, *sweep) error // saves how it has ended; nil while it goes on
	last  center.Progress                     // as the processor told it last
}

const (
	// tickInterval is how often a server looks after the runs of its task type while any of them has not ended.
	tickInterval = time.Second
	// saveInterval is how often the progress of a sweep is saved.
	saveInterval = 5 * time.Second
	// unasked is how long a server does without a tick when no pulse asks for one.
	unasked = time.Minute
)

func (s *server) inRuns() bool { return s.settings.Mode == center.ModeRun }

// tickTimer fires when it is time to look after the runs; nil in CONTINUOUS.
func (s *server) tickTimer() <-chan time.Time {
	if !s.inRuns() {
		return nil
	}
	return time.After(max(0, time.Until(s.life.nextTick)))
}

// followRuns takes from a pulse when to tick: the heartbeat tells of new runs and of triggers, so that nobody asks
// while there is nothing to do.
func (s *server) followRuns(p center.Pulse) {
	l := s.life
	was := l.ticking
	if l.ticking = p.Runs; l.ticking && !was {
		l.nextTick = time.Now()
	}
	l.tickAt(p.Now, p.NextFire)
}

// tickAt sees to it that the server ticks when a trigger is due, by the database's clock.
func (l *life) tickAt(now, due time.Time) {
	if due.IsZero() {
		return
	}
	if at := time.Now().Add(max(0, due.Sub(now))); at.Before(l.nextTick) {
		l.nextTick = at
	}
}

// tick does what is due for the runs, and claims queues of the one that is open.
func (s *server) tick(ctx context.Context) {
	l := s.life
	l.nextTick = time.Now().Add(tickInterval)
	call, cancel := s.transaction(ctx)
	defer cancel()
	t, err := s.c.Tick(call, s.task.name)
	if err != nil {
		s.log.WithError(err).Debug("look after the runs; trying again")
		return
	}
	if t.More {
		l.nextTick = time.Now()
	} else if !l.ticking && t.Open == "" {
		l.nextTick = time.Now().Add(unasked)
	}
	l.tickAt(t.Now, t.NextFire)
	l.open, l.openPaused = t.Open, t.Paused
	l.ticked.Store(&t)
	s.saveProgress(ctx)
	s.refresh(ctx, nil)
	if l.open == "" || l.openPaused || l.halted || l.giving() {
		return
	}
	if err := s.claim(ctx); err != nil {
		s.log.WithError(err).Debug("claim queues of the run; trying again")
	}
}

// claim begins sweeps, as many as keep the executors busy: what is claimed and not worked looks, after a crash, like
// work without progress.
func (s *server) claim(ctx context.Context) error {
	l := s.life
	held := map[string]bool{}
	for _, h := range s.proc.Held() {
		held[h.Queue.ID] = true
	}
	var free []center.Held
	rows := map[string]center.ViewQueue{}
	for _, row := range l.view.Queues {
		if row.Cur != l.uuid || row.Req != "" || row.Removing || l.blocked[row.ID] || l.spent[row.ID] == row.Epoch {
			continue
		}
		if !held[row.ID] && l.sweeps[row.ID] == nil {
			free, rows[row.ID] = append(free, center.Held{ID: row.ID, Epoch: row.Epoch}), row
		}
	}
	room := 2*s.settings.ThreadNumber - len(l.sweeps)
	if len(free) == 0 || room <= 0 {
		return nil
	}
	call, cancel := s.transaction(ctx)
	defer cancel()
	sweeps, err := s.c.Claim(call, s.task.name, l.uuid, free, room)
	for _, sw := range sweeps {
		s.begin(sw, rows[sw.QueueID])
	}
	return err
}

func (s *server) begin(sw center.Sweep, row center.ViewQueue) {
	base := center.Progress{ItemsDone: sw.ItemsDone} // items that have failed are tried again, whatever has ended the sweep
	now := time.Now()
	s.life.sweeps[sw.QueueID] = &sweep{Sweep: sw, began: now, base: base, saved: base, at: now}
	q := processor.Queue{
		ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: sw.Cursor, Epoch: row.Epoch,
		Run: &processor.Run{
			ID: sw.RunID, Key: sw.Key, Params: sw.Params, ScheduledAt: sw.ScheduledAt, StartedAt: sw.StartedAt,
			Attempt: sw.Attempt, Recovering: sw.Recovering,
		},
	}
	s.queueLog(row.ID).WithField("run", sw.RunID).WithField("attempt", sw.Attempt).Debug("sweep begins")
	s.must(s.proc.Grant(q, sw.QueueTotal))
}

// idleSweeps are the queues that must not be worked now: they are not swept, or their run is over, or paused.
func (l *life) idleSweeps() map[string]bool {
	idle := map[string]bool{}
	for _, row := range l.view.Queues {
		sw := l.sweeps[row.ID]
		idle[row.ID] = sw == nil || sw.over || sw.end != nil || sw.RunID != l.open || l.openPaused
	}
	return idle
}

// settleSweeps takes the sweeps that have ended, or must, from the processor, and saves how they ended.
func (s *server) settleSweeps(ctx context.Context) {
	l := s.life
	s.dropLost()
	for _, h := range s.proc.Held() {
		switch sw := l.sweeps[h.Queue.ID]; {
		case sw == nil:
			s.proc.Forget(h.Queue.ID) // once it is drained
		case sw.end == nil:
			s.endSweep(sw, h)
		}
	}
	for id, sw := range l.sweeps {
		if sw.end == nil {
			continue
		}
		err := sw.end(ctx, sw)
		if err != nil && s.c.IsTransient(err) {
			s.log.WithError(err).Debug("save the end of a sweep; trying again")
			continue
		}
		if err != nil && !errors.Is(err, center.ErrRunOver) && !center.IsFenced(err) {
			s.log.WithError(err).Error("save the end of a sweep")
		}
		delete(l.sweeps, id)
		l.nextTick = time.Now() // there may be room for another, or for another run
	}
}

// dropLost forgets the sweeps of queues that are not this server's any more: whoever owns them goes on.
func (s *server) dropLost() {
	own := map[string]int64{}
	for _, row := range s.life.view.Queues {
		if row.Cur == s.life.uuid {
			own[row.ID] = row.Epoch
		}
	}
	for id, sw := range s.life.sweeps {
		if epoch, ok := own[id]; !ok || epoch != sw.Epoch {
			delete(s.life.sweeps, id)
			s.observeSweep(sw, SweepLost)
		}
	}
}

// endSweep finds out whether a sweep has ended, and if so takes its queue from the processor.
func (s *server) endSweep(sw *sweep, h processor.Holding) {
	sw.last = sw.progress(h)
	end := s.ending(sw, h)
	if end == nil {
		return
	}
	s.proc.Drain(h.Queue.ID)
	if s.proc.Forget(h.Queue.ID) {
		sw.end = end
	}
}

func (s *server) ending(sw *sweep, h processor.Holding) func(context.Context, *sweep) error {
	switch {
	case sw.over || sw.RunID != s.life.open: // cancelled, or past its deadline
		s.proc.Revoke(h.Queue.ID)
		return func(context.Context, *sweep) error {
			s.observeSweep(sw, SweepLost)
			return nil
		}
	case h.Sweep.Failed, h.Sweep.Swept && sw.last.ItemsFailed > 0:
		cause := fmt.Sprintf("items that failed: %d", sw.last.ItemsFailed)
		if h.Sweep.Err != nil {
			cause = h.Sweep.Err.Error() + "; " + cause
		}
		final := h.Sweep.Permanent
		return func(ctx context.Context, sw *sweep) error { return s.failSweep(ctx, sw, cause, final) }
	case h.Sweep.Swept:
		return s.finishSweep
	case s.life.openPaused && h.Drained:
		return s.suspendSweep
	}
	return nil
}

// progress leaves out the cursor, which is saved batch by batch: what was read of it here may be behind the row.
func (sw *sweep) progress(h processor.Holding) center.Progress {
	return center.Progress{ItemsDone: sw.base.ItemsDone + h.Sweep.ItemsDone, ItemsFailed: sw.base.ItemsFailed + h.Sweep.ItemsFailed}
}

func (s *server) finishSweep(ctx context.Context, sw *sweep) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	err := s.c.FinishSweep(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.observeSweep(sw, SweepDone)
		s.queueLog(sw.QueueID).WithField("run", sw.RunID).WithField("items", sw.last.ItemsDone).Info("queue swept")
	}
	return err
}

func (s *server) failSweep(ctx context.Context, sw *sweep, cause string, final bool) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	failed, err := s.c.FailSweep(ctx, sw.Sweep, sw.last, cause, final)
	if err == nil {
		result := SweepRetry
		if failed {
			result = SweepFailed
		}
		s.observeSweep(sw, result)
		s.queueLog(sw.QueueID).WithField("run", sw.RunID).WithField("attempt", sw.Attempt).WithField("final", failed).Error("sweep failed: ", cause)
	}
	return err
}

func (s *server) suspendSweep(ctx context.Context, sw *sweep) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	err := s.c.SuspendSweep(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.observeSweep(sw, SweepSuspended)
	}
	return err
}

func (s *server) observeSweep(sw *sweep, result string) {
	if s.m.cfg.Observer != nil {
		s.m.cfg.Observer.Swept(s.task.name, result, time.Since(sw.began))
	}
}

// suspend gives up the sweeps of queues that are drained and about to be another's, so that it goes on where they
// have ended. If that fails, the next owner takes them over, from what was saved last.
func (s *server) suspend(ctx context.Context, queues ...string) {
	if !s.inRuns() {
		return
	}
	for _, h := range s.proc.Held() {
		if sw := s.life.sweeps[h.Queue.ID]; sw != nil && slices.Contains(queues, h.Queue.ID) {
			sw.last = sw.progress(h)
		}
	}
	for _, id := range queues {
		sw := s.life.sweeps[id]
		if sw == nil {
			continue
		}
		delete(s.life.sweeps, id)
		if sw.end != nil {
			continue // what it came to could not be saved, and is found out again
		}
		if err := s.suspendSweep(ctx, sw); err != nil {
			s.queueLog(id).WithError(err).Debug("suspend the sweep")
		}
	}
}

// saveProgress saves now and again how far the sweeps have come.
func (s *server) saveProgress(ctx context.Context) {
	for _, h := range s.proc.Held() {
		sw := s.life.sweeps[h.Queue.ID]
		if sw == nil || sw.end != nil || time.Since(sw.at) < saveInterval {
			continue
		}
		p := sw.progress(h)
		sw.at = time.Now()
		if p.ItemsDone == sw.saved.ItemsDone && p.ItemsFailed == sw.saved.ItemsFailed {
			continue
		}
		call, cancel := s.transaction(ctx)
		err := s.c.SaveSweep(call, sw.Sweep, p)
		cancel()
		switch {
		case err == nil:
			sw.saved = p
		case errors.Is(err, center.ErrRunOver):
			sw.over = true
		default:
			s.log.WithError(err).Debug("save the progress of a sweep")
		}
	}
}

// suspendAll gives up all sweeps but those whose queues did not let go: the server leaves.
func (s *server) suspendAll(ctx context.Context, forced []string) {
	var queues []string
	for id := range s.life.sweeps {
		if !slices.Contains(forced, id) {
			queues = append(queues, id)
		}
	}
	s.suspend(ctx, queues...)
}
