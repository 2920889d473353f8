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
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// sweep is a queue that this server sweeps for a run. It lasts until a select finds nothing more (R9).
type sweep struct {
	runs.Sweep
	began   time.Time
	before  runs.Progress // of earlier sweeps of the queue in this run
	saved   runs.Progress
	savedAt time.Time
	waits   string        // runs.Progress.Waits as it was saved last
	last    runs.Progress // as the processor reported it last
	failed  []runs.ItemFailure
	over    bool // the queue of the run no longer belongs to this sweep
	doubted bool // the fence has rejected a call since the last save: the sweep may be over
	saving  bool // its end is being saved
	end     func(context.Context, *sweep) error
}

// progress adds what the processor reports to what earlier sweeps have done. It leaves out the cursor: each batch saves
// it, and the processor's cursor may be behind the row.
func (sw *sweep) progress(h engine.QueueState) runs.Progress {
	for _, i := range h.Sweep.FailedItems[len(sw.failed):] {
		sw.failed = append(sw.failed, runs.ItemFailure{Key: i.Key, Error: i.Err.Error(), At: i.At})
	}
	return runs.Progress{
		ItemsDone: sw.before.ItemsDone + h.Sweep.ItemsDone, ItemsFailed: sw.before.ItemsFailed + h.Sweep.ItemsFailed,
		Failed: slices.Clip(sw.failed), Whole: h.Sweep.AllFailed,
	}
}

// sweeper sweeps queues for runs, in mode RUN. The processor gets a queue when the server has claimed it for the open
// run, not when the server owns it. When the sweep ends, the processor forgets the queue.
type sweeper struct {
	*base
	ticker *runTicker
	sweeps map[string]*sweep // by queue
}

// runPart makes a session work its queues for runs.
func runPart(b *base, r *reconciler) part {
	b.agenda.add(time.Now(), tick, findProblems)
	t := &runTicker{base: b}
	s := &sweeper{base: b, ticker: t, sweeps: map[string]*sweep{}}
	return part{
		follow: t.follow,
		told:   func() { b.agenda.add(time.Now(), tick) }, // a transaction may have submitted a run (R21)
		update: func(context.Context) {
			if b.view.fresh {
				s.checkEnds()
			}
		},
		closed: s.idle,
		jobs: map[duty]func() *job{
			saveEnds: s.saveEnds, claimQueues: func() *job { return s.claim(r.claimable) },
			tick: t.tick, findProblems: t.findProblems,
		},
		yield: s.yield, leave: s.leave,
		report: func(r *roster.ServerReport) { r.InRuns = true },
		status: t.status,
		workless: func() bool {
			open, _ := t.open()
			return open == ""
		},
	}
}

// saveInterval is the pause between two saves of the progress of a sweep.
const saveInterval = 5 * time.Second

// claim returns the job that begins sweeps of some of the free queues after a tick, as many as keep the executors busy.
// It claims no more, because after a crash a queue that was claimed and not worked looks like work without progress.
// Before that it saves how far the present sweeps have come. claim returns nil if there is nothing to do.
func (s *sweeper) claim(free func() []roster.ViewQueue) *job {
	saves := s.progressDue()
	queues := s.claimable(free())
	room := 2*s.settings.ThreadNumber - len(s.sweeps)
	if room <= 0 {
		queues = nil
	}
	if len(saves)+len(queues) == 0 {
		return nil
	}
	var claimed []runs.Sweep
	return &job{
		name: "claim queues of a run",
		call: func(ctx context.Context) (err error) {
			for _, p := range saves {
				p.err = s.roster.Engine().Sweeps.Save(ctx, p.sweep.Sweep, p.progress)
			}
			if len(queues) > 0 {
				claimed, err = s.roster.Engine().Sweeps.Claim(ctx, s.taskType, s.uuid, queues, room)
			}
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			for _, p := range saves {
				s.progressSaved(ctx, p)
			}
			return s.begin(ctx, claimed, free())
		},
	}
}

// claimable returns the free queues that have no sweep. A server claims no queue of a run that is paused.
func (s *sweeper) claimable(free []roster.ViewQueue) (queues []center.QueueEpoch) {
	if open, paused := s.ticker.open(); open == "" || paused {
		return nil
	}
	holdings := s.proc.Queues()
	for _, row := range free {
		worked := slices.ContainsFunc(holdings, func(h engine.QueueState) bool { return h.Queue.ID == row.ID })
		if !worked && s.sweeps[row.ID] == nil {
			queues = append(queues, center.QueueEpoch{ID: row.ID, Epoch: row.Epoch})
		}
	}
	return queues
}

// begin begins the sweeps that were claimed. A sweep whose queue must not be worked any more is suspended at once. So
// is a sweep of a run that was opened after the last tick: checkEnds would take it for one of a run that is over, and
// not record its end. begin reports whether there is such a sweep.
func (s *sweeper) begin(ctx context.Context, claimed []runs.Sweep, free []roster.ViewQueue) (suspended bool) {
	open, _ := s.ticker.open()
	for _, c := range claimed {
		before := runs.Progress{ItemsDone: c.ItemsDone} // failed items are tried again, however the earlier sweep ended
		now := time.Now()
		sw := &sweep{Sweep: c, began: now, before: before, last: before, saved: before, savedAt: now}
		s.sweeps[c.QueueID] = sw
		at := slices.IndexFunc(free, func(row roster.ViewQueue) bool { return row.ID == c.QueueID && row.Epoch == c.Epoch })
		if at < 0 || c.RunID != open {
			sw.end, suspended = s.suspendOne, true
			continue
		}
		s.grant(ctx, sw, free[at])
	}
	return suspended
}

func (s *sweeper) grant(ctx context.Context, sw *sweep, row roster.ViewQueue) {
	q := processor.Queue{
		ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: sw.Cursor, Epoch: row.Epoch,
		Partition: s.view.PartitionVersion, Crashes: max(row.Crashes, sw.Recoveries),
		Limits: limitsOf(row),
		Run: &processor.Run{
			ID: sw.RunID, Key: sw.Key, Params: sw.Params, TraceParent: sw.TraceParent,
			ScheduledAt: sw.ScheduledAt, SlotEnd: sw.SlotEnd, TimeZone: sw.TimeZone, StartedAt: sw.StartedAt,
			Attempt: sw.Attempt, Recovering: sw.Recoveries > 0,
			ItemsFailed: sw.ItemsFailed, FailedBefore: sw.FailedBefore,
		},
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "sweep begins",
		slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch), slog.String("run", sw.RunID),
		slog.Int("attempt", sw.Attempt))
	s.logInternal(ctx, s.proc.Grant(s.view.placed(ctx, q, row), sw.QueueTotal))
}

// idle returns the queues that the processor must not work now: they have no sweep, or their run is over or paused.
func (s *sweeper) idle(rows []roster.ViewQueue) map[string]bool {
	open, paused := s.ticker.open()
	idle := map[string]bool{}
	for _, row := range rows {
		sw := s.sweeps[row.ID]
		idle[row.ID] = sw == nil || sw.over || sw.end != nil || sw.RunID != open || paused
	}
	return idle
}

// savedProgress is how far a sweep has come, to be saved.
type savedProgress struct {
	sweep    *sweep
	progress runs.Progress
	err      error
}

// progressDue returns what is to be saved: every 5 s, how far each sweep has come. The save also finds out whether the
// sweep is over. A run that was cancelled and reopened between two ticks looks as before, and its fence lets no batch
// pass that would make progress.
func (s *sweeper) progressDue() (due []*savedProgress) {
	for _, h := range s.proc.Queues() {
		sw := s.sweeps[h.Queue.ID]
		if sw == nil || sw.end != nil || time.Since(sw.savedAt) < saveInterval {
			continue
		}
		p := sw.progress(h)
		sw.savedAt = time.Now()
		if h.Sweep.Waits != sw.waits {
			p.Waits = &h.Sweep.Waits
		}
		if p.ItemsDone != sw.saved.ItemsDone || p.ItemsFailed != sw.saved.ItemsFailed || p.Waits != nil || sw.doubted {
			due = append(due, &savedProgress{sweep: sw, progress: p})
		}
	}
	return due
}

func (s *sweeper) progressSaved(ctx context.Context, p *savedProgress) {
	switch {
	case p.err == nil:
		p.sweep.saved, p.sweep.doubted = p.progress, false
		if p.progress.Waits != nil {
			p.sweep.waits = *p.progress.Waits
		}
	case errors.Is(p.err, runs.ErrRunOver):
		p.sweep.over = true
	default:
		s.log.LogAttrs(ctx, slog.LevelDebug, "progress of a sweep not saved",
			slog.String("queue", p.sweep.QueueID), slog.Any("error", p.err))
	}
}

// checkEnds takes the queues of sweeps that have ended, or must end, from the processor, and notes the sweeps whose
// end is to be saved.
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
	s.agenda.add(time.Now(), saveEnds)
}

// saveEnds returns the job that saves how sweeps have ended, or nil if none has. A sweep whose end cannot be saved now
// stays until it can be.
func (s *sweeper) saveEnds() *job {
	var ended []*sweep
	for _, sw := range s.sweeps {
		if sw.end != nil && !sw.saving {
			sw.saving = true
			ended = append(ended, sw)
		}
	}
	if len(ended) == 0 {
		return nil
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
	if err != nil && s.roster.IsTransient(err) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "end of a sweep not saved; trying again",
			slog.String("queue", sw.QueueID), slog.Any("error", err))
		return false
	}
	if err != nil && !errors.Is(err, runs.ErrRunOver) && !center.IsFenced(err) {
		s.log.LogAttrs(ctx, slog.LevelError, "end of a sweep not saved",
			slog.String("queue", sw.QueueID), slog.Any("error", err))
	}
	delete(s.sweeps, sw.QueueID)
	s.agenda.add(time.Now(), tick) // there may be room for another sweep, or for another run
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

// checkEnd sets sw.end if the sweep has ended or must end, as soon as its queue is drained. What the processor reports
// while a call is in flight is not the last word: the call counts (R15), although it may have ended before Forget.
// checkEnd is called again then, because Drain or the end of the call signals that the queue is drained.
func (s *sweeper) checkEnd(sw *sweep, h engine.QueueState) {
	sw.last = sw.progress(h)
	sw.doubted = sw.doubted || h.Lost
	end := s.endOf(sw, h)
	if end == nil {
		return
	}
	s.proc.Drain(h.Queue.ID)
	if h.InFlight == 0 && s.proc.Forget(h.Queue.ID) {
		sw.end = end
	}
}

// endOf returns the function that saves how a sweep has ended. It returns nil while the sweep goes on.
func (s *sweeper) endOf(sw *sweep, h engine.QueueState) func(context.Context, *sweep) error {
	open, paused := s.ticker.open()
	switch {
	case sw.over || sw.RunID != open: // the run was cancelled, or its deadline has passed
		s.proc.Revoke(h.Queue.ID, fmt.Errorf("%w: %w", center.ErrFenced, runs.ErrRunOver))
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
	err := s.roster.Engine().Sweeps.Finish(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.count(sw, SweepDone)
		s.log.LogAttrs(ctx, slog.LevelInfo, "queue swept",
			slog.String("queue", sw.QueueID), slog.String("run", sw.RunID), slog.Int64("items", sw.last.ItemsDone))
	}
	return err
}

func (s *sweeper) fail(ctx context.Context, sw *sweep, cause string, final bool) error {
	failed, err := s.roster.Engine().Sweeps.Fail(ctx, sw.Sweep, sw.last, cause, final)
	if err == nil {
		result := SweepRetry
		if failed {
			result = SweepFailed
		}
		s.count(sw, result)
		s.log.LogAttrs(ctx, slog.LevelError, "sweep failed: "+cause,
			slog.String("queue", sw.QueueID), slog.String("run", sw.RunID), slog.Int("attempt", sw.Attempt),
			slog.Bool("final", failed))
	}
	return err
}

func (s *sweeper) suspendOne(ctx context.Context, sw *sweep) error {
	if sw.waits != "" {
		sw.last.Waits = new("")
	}
	err := s.roster.Engine().Sweeps.Suspend(ctx, sw.Sweep, sw.last)
	if err == nil {
		s.count(sw, SweepSuspended)
	}
	return err
}

// count tells the observers how a sweep has ended.
func (s *sweeper) count(sw *sweep, result string) {
	for _, o := range s.cfg.Observers {
		o.Swept(Sweep{TaskType: s.taskType, OwnSign: s.roster.OwnSign(), Result: result, Took: time.Since(sw.began)})
	}
}

// take forgets the sweep of a drained queue that is about to be handed over, and returns it, to be suspended. It
// returns none for a queue that is not swept, or whose sweep has ended: how it ended could not be saved, and the next
// owner finds it out again.
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

// yield returns what suspends the sweep of a drained queue that is about to be handed over.
func (s *sweeper) yield(queue string) func(context.Context) {
	swept := s.take(queue)
	return func(ctx context.Context) {
		for _, sw := range swept {
			s.suspend(ctx, sw)
		}
	}
}

// suspend suspends a sweep, so that the next owner of its queue continues where it stopped. If that fails, the next
// owner continues from what was saved last.
func (s *sweeper) suspend(ctx context.Context, sw *sweep) {
	if err := s.suspendOne(ctx, sw); err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "sweep not suspended", slog.String("queue", sw.QueueID), slog.Any("error", err))
	}
}

// leave saves how far the sweeps have come before other servers continue them, because this server leaves. It leaves
// out the sweeps of queues that did not drain. No job may be running.
func (s *sweeper) leave(ctx context.Context, jobs *jobRunner, notDrained []string) {
	s.checkEnds()
	if j := s.saveEnds(); j != nil {
		jobs.start(ctx, j)
		if !jobs.wait(ctx) {
			return
		}
	}
	ctx, cancel := s.withLeaveLimit(ctx)
	defer cancel()
	for id := range maps.Clone(s.sweeps) {
		if !slices.Contains(notDrained, id) {
			for _, sw := range s.take(id) {
				s.suspend(ctx, sw)
			}
		}
	}
}
