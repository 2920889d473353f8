package manager

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/cron"
	"github.com/dutyrota/rota/internal/roster"
)

// permitWindow decides when the permit window allows work on the queues, by the database's clock as this process
// estimates it.
//
// A window without an end closes for each queue on its own, at the first empty select, until the window's next start.
// The queue's column window_done_at holds that, because later owners of the queue must know it. In memory it would be
// lost in a crash or a move: the new owner would open a window again that had ended, or end one that had not.
type permitWindow struct {
	*base
	started *time.Time // of the process, by the database's clock: a window may begin with it

	window    *cron.Window // as update has parsed it from the texts; nil before
	texts     windowTexts
	state     atomic.Pointer[cron.WindowState]
	changesAt time.Time // when the window opens or closes next, by the database's clock; zero: never
}

// windowTexts are the settings of the window.
type windowTexts struct{ start, end, timeZone string }

func windowPart(b *base, started *time.Time) part {
	w := &permitWindow{base: b, started: started}
	return part{
		update: w.update, closed: w.closed, changes: w.changes,
		jobs: map[duty]func() *job{closeWindows: w.closeEmpty}, often: []duty{closeWindows},
		statistics: func(stats *roster.Statistics) {
			if state := w.state.Load(); state != nil {
				stats.NextRunStart, stats.NextRunEnd = state.NextStart, state.NextEnd
			}
		},
	}
}

// update computes the present state of the window, and when it changes.
func (w *permitWindow) update(ctx context.Context) {
	now := w.reg.dbTime(time.Now())
	s := w.settings
	if texts := (windowTexts{s.PermitRunStartTime, s.PermitRunEndTime, s.TimeZone}); w.window == nil || texts != w.texts {
		w.window, w.texts = w.parse(ctx), texts
	}
	state := w.window.At(now)
	w.state.Store(&state)
	w.changesAt = time.Time{}
	for _, at := range []time.Time{state.NextStart, state.NextEnd} {
		if at.After(now) {
			w.changesAt = earliest(w.changesAt, at)
		}
	}
}

// parse returns the window of the settings in force.
func (w *permitWindow) parse(ctx context.Context) *cron.Window {
	window, err := cron.ParseWindow(w.settings.PermitRunStartTime, w.settings.PermitRunEndTime, w.settings.TimeZone)
	if err != nil {
		w.logInternal(ctx, err) // Validate has parsed it
		return nil
	}
	return window.From(*w.started)
}

// changes returns when the window opens or closes next, by the local clock, or the zero time if it never does.
func (w *permitWindow) changes() time.Time { return w.reg.localTime(w.changesAt) }

// closed returns the queues that the window does not allow work on now.
func (w *permitWindow) closed(rows []roster.ViewQueue) map[string]bool {
	state := w.state.Load()
	if state.Open && !state.OpenEnded {
		return nil
	}
	closed := map[string]bool{}
	for _, q := range rows {
		if !state.Open || !q.WindowDone.Before(state.Since) {
			closed[q.ID] = true
		}
	}
	return closed
}

// empty returns the queues for which an open-ended window is to be closed: a select has found them empty since it
// began.
func (w *permitWindow) empty() (queues []center.QueueEpoch) {
	state := w.state.Load()
	if !state.OpenEnded {
		return nil
	}
	for _, h := range w.proc.Queues() {
		if !h.Draining && !h.EmptySince.IsZero() && !w.reg.dbTime(h.EmptySince).Before(state.Since) {
			queues = append(queues, center.QueueEpoch{ID: h.Queue.ID, Epoch: h.Queue.Epoch})
		}
	}
	return queues
}

// closeEmpty returns the job that closes the window for the queues that are empty, or nil if there are none.
func (w *permitWindow) closeEmpty() *job {
	queues, since := w.empty(), w.state.Load().Since
	if len(queues) == 0 {
		return nil
	}
	closed := false
	return &job{
		name: "close the window of empty queues",
		call: func(ctx context.Context) error {
			var errs []error
			for _, q := range queues {
				err := w.own().WindowDone(ctx, q, since)
				switch {
				case err == nil:
					closed = true
					w.log.LogAttrs(ctx, slog.LevelInfo, "queue empty; its window is closed until the next start",
						slog.String("queue", q.ID))
				case !center.IsFenced(err): // the new owner will find the queue empty, too
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		},
		then: func(_ context.Context, _ error) (more bool) {
			w.view.invalidate()
			return closed
		},
	}
}
