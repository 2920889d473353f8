package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/cron"
)

// A permit window opens and closes the queues of a task type by the database's clock, as this process
// estimates it. A window without an end is closed queue by queue, at the first empty select, for whoever owns
// the queue until the window's next start: window_done_at in the queue's row says so. In memory that would be
// lost with a crash, and the new owner would begin a window again that had ended, or end one that had not.

// permit returns the window of the settings in force, as this process sees it.
func (s *server) permit() *cron.Window {
	w, err := cron.ParseWindow(s.settings.PermitRunStartTime, s.settings.PermitRunEndTime, s.settings.TimeZone)
	if err != nil {
		s.must(err) // Validate has parsed it
		return nil
	}
	return w.From(s.started)
}

// lookAtWindow notes what the window is now, and when it will be something else.
func (s *server) lookAtWindow() {
	l := s.life
	now := l.dbTime(time.Now())
	if l.permit == nil {
		l.permit = s.permit()
	}
	window := l.permit.At(now)
	l.window.Store(&window)
	l.windowChange = time.Time{}
	for _, at := range []time.Time{window.NextStart, window.NextEnd} {
		if at.After(now) && (l.windowChange.IsZero() || at.Before(l.windowChange)) {
			l.windowChange = at
		}
	}
}

// windowTimer fires when the window opens or closes; nil if it never does.
func (l *life) windowTimer() <-chan time.Time {
	if l.windowChange.IsZero() {
		return nil
	}
	return time.After(max(0, l.windowChange.Sub(l.dbTime(time.Now()))))
}

// closed tells which of the queues may not be worked now.
func (s *server) closed() map[string]bool {
	if s.inRuns() {
		return s.life.idleSweeps()
	}
	return s.life.closed()
}

func (l *life) closed() map[string]bool {
	window := l.window.Load()
	if window.Open && !window.OpenEnded {
		return nil
	}
	closed := map[string]bool{}
	for _, q := range l.view.Queues {
		if !window.Open || !q.WindowDone.Before(window.Since) {
			closed[q.ID] = true
		}
	}
	return closed
}

// closeEmpty closes an open-ended window for the queues that a select has found empty since it began.
func (s *server) closeEmpty(ctx context.Context) error {
	l := s.life
	window := l.window.Load()
	if !window.OpenEnded {
		return nil
	}
	for _, h := range s.proc.Held() {
		if h.Draining || h.EmptySince.IsZero() || l.dbTime(h.EmptySince).Before(window.Since) {
			continue
		}
		l.stale = true
		err := s.windowDone(ctx, center.Held{ID: h.Queue.ID, Epoch: h.Queue.Epoch}, window.Since)
		if center.IsFenced(err) {
			continue // the new owner finds out by itself
		}
		if err != nil {
			return err
		}
		s.queueLog(h.Queue.ID).Info("empty: the window is closed until its next start")
	}
	return nil
}

func (s *server) windowDone(ctx context.Context, q center.Held, since time.Time) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	return s.c.WindowDone(ctx, s.task.name, s.life.uuid, q, since)
}
