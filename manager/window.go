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
	reg     *registration
	started time.Time // of the process, by the database's clock: a window may begin with it

	window    *cron.Window // nil before update parses it from the settings
	state     atomic.Pointer[cron.WindowState]
	empty     []center.QueueEpoch // queues for which it is to be closed, because they are empty
	changesAt time.Time           // when the window opens or closes next, by the database's clock; zero: never
}

// update computes the present state of the window, and when it changes.
func (w *permitWindow) update(ctx context.Context) {
	now := w.reg.dbTime(time.Now())
	if w.window == nil {
		w.window = w.parse(ctx)
	}
	state := w.window.At(now)
	w.state.Store(&state)
	w.changesAt = time.Time{}
	for _, at := range []time.Time{state.NextStart, state.NextEnd} {
		if at.After(now) && (w.changesAt.IsZero() || at.Before(w.changesAt)) {
			w.changesAt = at
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
	return window.From(w.started)
}

// timer returns a channel that fires when the window opens or closes next. It returns nil if it never does.
func (w *permitWindow) timer() <-chan time.Time {
	if w.changesAt.IsZero() {
		return nil
	}
	return time.After(max(atOnce, w.changesAt.Sub(w.reg.dbTime(time.Now()))))
}

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

// noteEmpty notes for which queues an open-ended window is to be closed: a select has found them empty since it began.
func (w *permitWindow) noteEmpty() {
	w.empty = nil
	state := w.state.Load()
	if !state.OpenEnded {
		return
	}
	for _, h := range w.proc.Queues() {
		if !h.Draining && !h.EmptySince.IsZero() && !w.reg.dbTime(h.EmptySince).Before(state.Since) {
			w.empty = append(w.empty, center.QueueEpoch{ID: h.Queue.ID, Epoch: h.Queue.Epoch})
		}
	}
}

// closeEmpty returns the job that closes the window for the queues that were noted, or nil if there are none.
func (w *permitWindow) closeEmpty(view *ownView) *job {
	if len(w.empty) == 0 {
		return nil
	}
	queues, since := w.empty, w.state.Load().Since
	w.empty = nil
	closed := false
	return &job{
		name: "close the window of empty queues",
		call: func(ctx context.Context) error {
			var errs []error
			for _, q := range queues {
				err := w.roster.Roster().Server(w.taskType, w.uuid).WindowDone(ctx, q, since)
				switch {
				case err == nil:
					closed = true
					w.log.LogAttrs(ctx, slog.LevelInfo, "queue empty; its window is closed until the next start", slog.String("queue", q.ID))
				case !center.IsFenced(err): // the new owner will find the queue empty, too
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		},
		then: func(_ context.Context, _ error) (more bool) {
			view.invalidate()
			return closed
		},
	}
}

// reset makes the next update parse the window again, after the settings have changed.
func (w *permitWindow) reset() { w.window = nil }
