package manager

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/processor"
)

// sweep is a queue that this server sweeps for a run. It lasts until a select finds nothing more (R9).
type sweep struct {
	runs.Sweep
	began   time.Time
	before  runs.Progress // of earlier sweeps of the queue in this run
	saved   runs.Progress
	savedAt time.Time
	waits   string        // for what it waited, as it was saved last
	last    runs.Progress // as the processor reported it last
	failed  []runs.ItemFailure
	over    bool // the queue of the run no longer belongs to this sweep
	saving  bool // its end is being saved
	end     func(context.Context, *sweep) error
}

// progress adds what the processor reports to what earlier sweeps have done. It leaves out the cursor: each batch saves
// it, and the processor's cursor may be behind the row.
func (sw *sweep) progress(h processor.QueueState) runs.Progress {
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
//
// It has 20 methods: seven in this file begin sweeps and save how far they have come, and thirteen in sweep_end.go end
// them. All change the same map of sweeps.
type sweeper struct {
	*base
	view   *ownView
	ticker *runTicker
	sweeps map[string]*sweep // by queue
	ended  []*sweep          // whose end is to be saved
}

// saveInterval is the pause between two saves of the progress of a sweep.
const saveInterval = 5 * time.Second

// claim returns the job that begins sweeps of some of the free queues after a tick, as many as keep the executors busy.
// It claims no more, because after a crash a queue that was claimed and not worked looks like work without progress.
// Before that it saves how far the present sweeps have come. claim returns nil if there is nothing to do.
func (s *sweeper) claim(free func() []roster.ViewQueue) *job {
	if !s.ticker.fresh {
		return nil
	}
	s.ticker.fresh = false
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
				p.err = s.runs.Engine().Sweeps.Save(ctx, p.sweep.Sweep, p.progress)
			}
			if len(queues) > 0 {
				claimed, err = s.runs.Engine().Sweeps.Claim(ctx, s.taskType, s.uuid, queues, room)
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
		worked := slices.ContainsFunc(holdings, func(h processor.QueueState) bool { return h.Queue.ID == row.ID })
		if !worked && s.sweeps[row.ID] == nil {
			queues = append(queues, center.QueueEpoch{ID: row.ID, Epoch: row.Epoch})
		}
	}
	return queues
}

// begin begins the sweeps that were claimed. One whose queue must not be worked any more is suspended at once. begin
// reports whether there is such a sweep.
func (s *sweeper) begin(ctx context.Context, claimed []runs.Sweep, free []roster.ViewQueue) (suspended bool) {
	for _, c := range claimed {
		before := runs.Progress{ItemsDone: c.ItemsDone} // failed items are tried again, however the earlier sweep ended
		now := time.Now()
		sw := &sweep{Sweep: c, began: now, before: before, last: before, saved: before, savedAt: now}
		s.sweeps[c.QueueID] = sw
		at := slices.IndexFunc(free, func(row roster.ViewQueue) bool { return row.ID == c.QueueID && row.Epoch == c.Epoch })
		if at < 0 {
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
		Run: &processor.Run{
			ID: sw.RunID, Key: sw.Key, Params: sw.Params, ScheduledAt: sw.ScheduledAt, StartedAt: sw.StartedAt,
			Attempt: sw.Attempt, Recovering: sw.Recoveries > 0,
			ItemsFailed: sw.ItemsFailed, FailedBefore: sw.FailedBefore,
		},
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "sweep begins", slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch),
		slog.String("run", sw.RunID), slog.Int("attempt", sw.Attempt))
	s.logInternal(ctx, s.proc.Grant(q, sw.QueueTotal))
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

// progressDue returns what is to be saved: every 5 s, how far each sweep has come.
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
		if p.ItemsDone != sw.saved.ItemsDone || p.ItemsFailed != sw.saved.ItemsFailed || p.Waits != nil {
			due = append(due, &savedProgress{sweep: sw, progress: p})
		}
	}
	return due
}

func (s *sweeper) progressSaved(ctx context.Context, p *savedProgress) {
	switch {
	case p.err == nil:
		p.sweep.saved = p.progress
		if p.progress.Waits != nil {
			p.sweep.waits = *p.progress.Waits
		}
	case errors.Is(p.err, center.ErrRunOver):
		p.sweep.over = true
	default:
		s.log.LogAttrs(ctx, slog.LevelDebug, "progress of a sweep not saved", slog.String("queue", p.sweep.QueueID), slog.Any("error", p.err))
	}
}
