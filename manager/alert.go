package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
)

// Alert is something that an operator should know; it is an event in schedule_event, too.
type Alert struct {
	center.Alert
	TaskType, OwnSign string
}

// Alerter takes alerts on to people: a pager, a chat, a metric. Alert is called from the goroutine of the
// task type's server, which waits for it: hand over what takes long. An alert that goes on is repeated once
// an hour.
type Alerter interface {
	Alert(a Alert)
}

const (
	// alertEvery is how often an alert that goes on is repeated.
	alertEvery = time.Hour
	// standbyAlert is after how many judge_dead_intervals without a queue a server is worth one.
	standbyAlert = 6
)

// raise records an alert, and tells the log and the Alerter if this process was the one to do so.
func (s *server) raise(ctx context.Context, a center.Alert) {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	raised, err := s.c.Alert(ctx, s.task.name, a, alertEvery)
	switch {
	case err != nil:
		s.log.WithError(err).Warnf("alert not recorded: %s: %s", a.Kind, a.Text)
	case raised:
		s.log.WithField("alert", a.Kind).Warn(a.Text)
		if s.m.cfg.Alerter != nil {
			s.m.cfg.Alerter.Alert(Alert{Alert: a, TaskType: s.task.name, OwnSign: s.c.OwnSign()})
		}
	}
}

// alertStandby tells once for the whole roster that servers have nothing to do (S9).
func (s *server) alertStandby(ctx context.Context, p center.Pulse) {
	l := s.life
	switch {
	case p.Owned > 0 || p.Awaited > 0 || p.State != center.StateStandby || p.Paused:
		l.idleSince = time.Time{}
		return
	case l.idleSince.IsZero():
		l.idleSince = time.Now()
		return
	case time.Since(l.idleSince) < standbyAlert*s.settings.JudgeDeadInterval:
		return
	}
	l.idleSince = time.Now().Add(alertEvery - standbyAlert*s.settings.JudgeDeadInterval) // not with every heartbeat
	query, cancel := s.transaction(ctx)
	defer cancel()
	servers, queues, err := s.c.Standby(query, s.task.name)
	if err != nil {
		s.log.WithError(err).Debug("ask why we stand by")
		return
	}
	s.raise(ctx, center.Alert{Kind: center.AlertStandby, Text: fmt.Sprintf("%d of %d servers stand by (queues: %d)", max(0, servers-queues), servers, queues)})
}
