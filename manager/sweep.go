package manager

import (
	"context"
	"errors"
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
	last    runs.Progress                       // the processor's last report
	over    bool                                // the run is over, or another sweep has the queue
	end     func(context.Context, *sweep) error // saves how the sweep has ended; nil while it goes on
}

// progress adds what the processor reports to what earlier sweeps have done. It leaves out the cursor: each batch saves it,
// and the processor's cursor may be behind the row.
func (sw *sweep) progress(h processor.QueueState) runs.Progress {
	return runs.Progress{ItemsDone: sw.before.ItemsDone + h.Sweep.ItemsDone, ItemsFailed: sw.before.ItemsFailed + h.Sweep.ItemsFailed}
}

// sweeper sweeps queues for runs, in mode RUN. The processor gets a queue when the server has claimed it for the open run,
// not when the server owns it. When the sweep ends, the processor forgets the queue.
type sweeper struct {
	*base
	ticker *runTicker
	sweeps map[string]*sweep // by queue
}

// saveInterval is the pause between two saves of the progress of a sweep.
const saveInterval = 5 * time.Second

// claim begins sweeps of some of the free queues, as many as keep the executors busy. It claims no more, because after a
// crash a queue that was claimed and not worked counts as a sweep without progress.
func (s *sweeper) claim(ctx context.Context, free []roster.ViewQueue) error {
	for _, h := range s.proc.Queues() {
		free = slices.DeleteFunc(free, func(row roster.ViewQueue) bool { return row.ID == h.Queue.ID })
	}
	rows := map[string]roster.ViewQueue{}
	var queues []center.QueueEpoch
	for _, row := range free {
		if s.sweeps[row.ID] == nil {
			queues, rows[row.ID] = append(queues, center.QueueEpoch{ID: row.ID, Epoch: row.Epoch}), row
		}
	}
	room := 2*s.settings.ThreadNumber - len(s.sweeps)
	if len(queues) == 0 || room <= 0 {
		return nil
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	claimed, err := s.runs.Engine().Sweeps.Claim(ctx, s.taskType, s.uuid, queues, room)
	for _, sw := range claimed {
		s.begin(sw, rows[sw.QueueID])
	}
	return err
}

func (s *sweeper) begin(sw runs.Sweep, row roster.ViewQueue) {
	before := runs.Progress{ItemsDone: sw.ItemsDone} // failed items are tried again, so they do not count
	now := time.Now()
	s.sweeps[sw.QueueID] = &sweep{Sweep: sw, began: now, before: before, saved: before, savedAt: now}
	q := processor.Queue{
		ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: sw.Cursor, Epoch: row.Epoch,
		Run: &processor.Run{
			ID: sw.RunID, Key: sw.Key, Params: sw.Params, ScheduledAt: sw.ScheduledAt, StartedAt: sw.StartedAt,
			Attempt: sw.Attempt, Recovering: sw.Recovering,
		},
	}
	s.queueLog(row.ID).WithField("run", sw.RunID).WithField("attempt", sw.Attempt).Debug("sweep begins")
	s.logInternal(s.proc.Grant(q, sw.QueueTotal))
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

// saveProgress saves the progress of each sweep, at most once per saveInterval.
func (s *sweeper) saveProgress(ctx context.Context) {
	for _, h := range s.proc.Queues() {
		sw := s.sweeps[h.Queue.ID]
		if sw == nil || sw.end != nil || time.Since(sw.savedAt) < saveInterval {
			continue
		}
		p := sw.progress(h)
		sw.savedAt = time.Now()
		if p.ItemsDone == sw.saved.ItemsDone && p.ItemsFailed == sw.saved.ItemsFailed {
			continue
		}
		call, cancel := s.withTimeout(ctx)
		err := s.runs.Engine().Sweeps.Save(call, sw.Sweep, p)
		cancel()
		switch {
		case err == nil:
			sw.saved = p
		case errors.Is(err, center.ErrRunOver):
			sw.over = true
		default:
			s.queueLog(h.Queue.ID).WithError(err).Debug("saving the progress of a sweep failed")
		}
	}
}
