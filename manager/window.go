package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/cron"
	"github.com/dutyrota/rota/internal/roster"
)

// permitWindow is the time in which the queues of a task type may be worked, by the database's clock as this process
// estimates it.
//
// A window without an end closes queue by queue, at the first empty select, for every owner of the queue until the
// window's next start. The queue's row says so in window_done_at. If only memory said so, a crash would lose it, and the
// new owner would begin a window again that had ended, or end one that had not.
type permitWindow struct {
	*base
	reg     *registration
	started time.Time // of the process, by the database's clock: a window may begin with it

	window    *cron.Window // nil: parse it from the settings
	state     atomic.Pointer[cron.WindowState]
	changesAt time.Time // when the window opens or closes next, by the database's clock; zero: never
}

// update notes the state of the window now, and when that changes.
func (w *permitWindow) update() {
	now := w.reg.dbTime(time.Now())
	if w.window == nil {
		w.window = w.parse()
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
func (w *permitWindow) parse() *cron.Window {
	window, err := cron.ParseWindow(w.settings.PermitRunStartTime, w.settings.PermitRunEndTime, w.settings.TimeZone)
	if err != nil {
		w.logInternal(err) // Validate has parsed it
		return nil
	}
	return window.From(w.started)
}

// timer fires when the window opens or closes. It is nil if it never does.
func (w *permitWindow) timer() <-chan time.Time {
	if w.changesAt.IsZero() {
		return nil
	}
	return time.After(max(0, w.changesAt.Sub(w.reg.dbTime(time.Now()))))
}

// closed returns the queues that the window does not permit to work now.
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

// closeEmpty closes an open-ended window for the queues that a select has found empty since it began.
func (w *permitWindow) closeEmpty(ctx context.Context, view *ownView) error {
	state := w.state.Load()
	if !state.OpenEnded {
		return nil
	}
	for _, h := range w.proc.Queues() {
		if h.Draining || h.EmptySince.IsZero() || w.reg.dbTime(h.EmptySince).Before(state.Since) {
			continue
		}
		err := view.change(ctx, func(ctx context.Context) error {
			return w.roster.Roster().Server(w.taskType, w.uuid).WindowDone(ctx, center.QueueEpoch{ID: h.Queue.ID, Epoch: h.Queue.Epoch}, state.Since)
		})
		if center.IsFenced(err) {
			continue // the new owner will find the queue empty, too
		}
		if err != nil {
			return err
		}
		w.queueLog(h.Queue.ID).Info("queue empty; its window is closed until the next start")
	}
	return nil
}

// reset makes the window follow changed settings.
func (w *permitWindow) reset() { w.window = nil }
