package manager

import (
	"context"
	"fmt"
	"strings"
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

// raiseAlerts looks for what an operator should know, with every pulse.
func (s *server) raiseAlerts(ctx context.Context, p center.Pulse) {
	for more := true; more; {
		select {
		case a := <-s.alerts:
			s.raise(ctx, a)
		default:
			more = false
		}
	}
	s.alertStandby(ctx, p)
	s.alertStalled(ctx)
	s.alertNoFetch(ctx, p)
}

// raise records an alert, unless it was raised within the hour, and tells the log and the Alerter if no other
// process has.
func (s *server) raise(ctx context.Context, a center.Alert) {
	key := a.Kind + "/" + a.QueueID
	if last, ok := s.told[key]; ok && time.Since(last) < alertEvery {
		return
	}
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	raised, err := s.c.Alert(ctx, s.task.name, a, alertEvery)
	if err != nil {
		s.log.WithError(err).Warnf("alert not recorded: %s: %s", a.Kind, a.Text)
		return
	}
	s.told[key] = time.Now()
	if !raised {
		return
	}
	s.log.WithField("alert", a.Kind).Warn(a.Text)
	if s.m.cfg.Alerter != nil {
		s.m.cfg.Alerter.Alert(Alert{Alert: a, TaskType: s.task.name, OwnSign: s.c.OwnSign()})
	}
}

// alertStandby tells once for the whole roster that servers have had no queue for long (S9).
func (s *server) alertStandby(ctx context.Context, p center.Pulse) {
	l := s.life
	if p.Owned > 0 || p.Awaited > 0 || p.State != center.StateStandby || p.Paused {
		l.busy = time.Now()
		return
	}
	if time.Since(l.busy) < standbyAlert*s.settings.JudgeDeadInterval {
		return
	}
	query, cancel := s.transaction(ctx)
	defer cancel()
	servers, queues, err := s.c.Standby(query, s.task.name)
	if err != nil {
		s.log.WithError(err).Debug("ask why we stand by")
		return
	}
	s.raise(ctx, center.Alert{Kind: center.AlertStandby, Text: fmt.Sprintf("%d of %d servers stand by (queues: %d)", max(0, servers-queues), servers, queues)})
}

// alertStalled tells of calls of the dealer that do not end.
func (s *server) alertStalled(ctx context.Context) {
	for _, stall := range s.proc.Stalled(s.settings.StallAfter) {
		what := fmt.Sprintf("execute of %d items", stall.Items)
		if stall.Items == 1 {
			what = "execute of 1 item"
		}
		if stall.Select {
			what = "select"
		}
		text := fmt.Sprintf("%s of queue %s has been running for %s", what, strings.Join(stall.Queues, ", "), time.Since(stall.Since).Round(time.Second))
		s.raise(ctx, center.Alert{Kind: center.AlertStalled, Server: s.life.uuid, QueueID: stall.Queues[0], Text: text})
	}
}

// alertNoFetch tells that a server which may work has ended neither a select nor a batch for long.
func (s *server) alertNoFetch(ctx context.Context, p center.Pulse) {
	l, stats := s.life, s.proc.Stats()
	done := stats.FetchCount + stats.SuccessCount + stats.FailureCount
	if done != l.progress || p.Owned == 0 || l.halted || l.giving() || s.inRuns() || len(l.closed()) > 0 {
		l.progress, l.progressAt = done, time.Now()
		return
	}
	patience := max(s.settings.StallAfter, 2*(s.settings.SleepTimeNoData+s.settings.SleepTimeInterval))
	if idle := time.Since(l.progressAt); idle > patience {
		s.raise(ctx, center.Alert{Kind: center.AlertNoFetch, Server: l.uuid, Text: fmt.Sprintf("nothing selected or executed for %s (queues: %d)", idle.Round(time.Second), p.Owned)})
	}
}
