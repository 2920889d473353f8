package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/cron"
	"github.com/dutyrota/rota/internal/roster"
)

// permitWindow decides when the permit window allows work on the queues, by the database's clock as this process estimates
// it.
//
// A window without an end closes for each queue on its own, at the first empty select, until the window's next start. The
// queue's column window_done_at holds that, because later owners of the queue must know it. In memory it would be lost in
// a crash or a move: the new owner would open a window again that had ended, or end one that had not.
type permitWindow struct {
	*base
	reg     *registration
	started time.Time // of the process, by the database's clock: a window may begin with it

	window    *cron.Window // nil before update parses it from the settings
	state     atomic.Pointer[cron.WindowState]
	changesAt time.Time // when the window opens or closes next, by the database's clock; zero if never
}

// update computes the present state of the window, and when it changes.
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

// timer returns a channel that fires when the window opens or closes next. It returns nil if it never does.
func (w *permitWindow) timer() <-chan time.Time {
	if w.changesAt.IsZero() {
		return nil
	}
	return time.After(max(0, w.changesAt.Sub(w.reg.dbTime(time.Now()))))
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
			continue // the new owner closes the window after its own empty select
		}
		if err != nil {
			return err
		}
		w.queueLog(h.Queue.ID).Info("queue is empty; its permit window is closed until the next start")
	}
	return nil
}

// reset makes the next update parse the window again, after the settings have changed.
func (w *permitWindow) reset() { w.window = nil }
