package manager

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
)

// hearing is whether the hints of other processes reach this one (X9).
type hearing struct {
	log  *slog.Logger
	on   atomic.Bool
	deaf atomic.Pointer[deafness]
	told atomic.Bool // the log has the present state
}

// deafness says since when hints do not reach the process although they should, and why.
type deafness struct {
	since time.Time
	err   error
}

// deafAlert is how long a process hears nothing before it raises an alert: a restart of the database is shorter.
const deafAlert = time.Minute

// changed notes whether hints arrive, and reports whether that has changed. Behind a pooler that passes none on, none
// should.
func (h *hearing) changed(ctx context.Context, err error) (changed bool) {
	was := h.on.Swap(err == nil)
	switch {
	case err == nil, errors.Is(err, center.ErrNoHints):
		h.deaf.Store(nil)
	case h.deaf.Load() == nil:
		h.deaf.Store(&deafness{time.Now(), err})
	}
	switch {
	case h.told.Swap(true) && was == (err == nil):
		return false
	case err == nil:
		h.log.LogAttrs(ctx, slog.LevelInfo, "hints of other processes arrive")
	default:
		const text = "no hints of other processes arrive; new items are found by the next look"
		h.log.LogAttrs(ctx, slog.LevelWarn, text, slog.Any("error", err))
	}
	return was != (err == nil)
}

func hintPart(b *base) part {
	return part{look: func(context.Context, bool) { b.alerter.checkHints() }}
}

// checkHints notes that the process does not hear hints that it should hear. All servers of the host share the
// condition.
func (a *alerter) checkHints() {
	if d := a.hearing.deaf.Load(); d != nil && time.Since(d.since) >= deafAlert {
		a.see(condition.Condition{
			Kind: condition.NoHints.Name, Since: d.since, Subject: hostName(),
			Text: "new items, and queues that move, are found by polls only: " + shortened(d.err.Error()),
		})
	}
}

// listen passes the hints of all processes to the processors and the sessions until ctx is done.
func (m *Manager) listen(ctx context.Context) {
	if m.cfg.NoHints || !m.c.CanListen() {
		return
	}
	_ = m.c.Listen(ctx, m.hinted, func(err error) { m.hear(ctx, err) }, m.receive) // hear has the errors
}

// hinted returns the task types for whose items hints are sent.
func (m *Manager) hinted() (names []string) {
	for _, s := range m.servers {
		if s.session.Load() != nil && s.proc.Hinted() { // the processor is made before the first session
			names = append(names, s.taskType)
		}
	}
	return names
}

// hear notes whether hints arrive. When that changes, the hints so far were not heard, or the next ones are not: all
// queues are looked at.
func (m *Manager) hear(ctx context.Context, err error) {
	if m.hearing.changed(ctx, err) {
		for _, s := range m.servers {
			m.Wake(s.taskType)
		}
	}
	if err == nil {
		m.tell(func(*session) bool { return true })
	}
}

// receive passes one hint on.
func (m *Manager) receive(h center.Hint) {
	if len(h.Servers) == 0 {
		m.Wake(h.TaskType, h.Keys...)
		return
	}
	m.tell(func(s *session) bool { return slices.Contains(h.Servers, s.uuid) })
}

// tell makes sessions look at their queues.
func (m *Manager) tell(which func(*session) bool) {
	for _, s := range m.servers {
		if session := s.session.Load(); session != nil && which(session) {
			offer(s.told, struct{}{})
		}
	}
}
