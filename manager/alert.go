package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// Alert is something that an operator should know. It is also an event in schedule_event.
type Alert struct {
	center.Alert
	TaskType, OwnSign string
}

// Alerter takes alerts to people: to a pager, a chat, a metric. The server of the task type calls Alert in its own goroutine
// and waits for it, so Alert must leave slow work to another goroutine. An alert that persists is repeated once an hour.
type Alerter interface {
	Alert(a Alert)
}

const (
	// alertEvery is the pause after which an alert that persists is repeated.
	alertEvery = time.Hour
	// standbyAlert is the number of judge_dead_intervals on standby after which a server raises an alert.
	standbyAlert = 6
	// waitLogEvery is the pause after which a server that waits for queues logs their owners again.
	waitLogEvery = 10 * time.Second
)

// alerter looks after each heartbeat for what an operator should know, and raises it.
type alerter struct {
	*base
	incoming <-chan center.Alert  // from the executors
	raised   map[string]time.Time // by kind and queue; outlives the session

	lastBusy     time.Time // when the server last had a queue, or could not have one
	progress     int64     // number of selects and items that have ended
	progressAt   time.Time // when progress last changed
	waitLoggedAt time.Time // zero while the server waits for no queue
}

// follow raises the alerts that are due after a heartbeat. restricted says that the server must leave some queues idle now.
func (a *alerter) follow(ctx context.Context, p roster.HeartbeatReply, restricted bool) {
	a.logWaits(ctx, p.Incoming > 0)
	for more := true; more; {
		select {
		case alert := <-a.incoming:
			a.raise(ctx, alert)
		default:
			more = false
		}
	}
	a.checkStandby(ctx, p)
	a.checkStalled(ctx)
	a.checkProgress(ctx, p, restricted)
}

// raise records an alert, unless this process raised it within the hour. It passes the alert to the log and the Alerter,
// unless another process has recorded it first.
func (a *alerter) raise(ctx context.Context, alert center.Alert) {
	key := alert.Kind + "/" + alert.QueueID
	if last, ok := a.raised[key]; ok && time.Since(last) < alertEvery {
		return
	}
	ctx, cancel := a.withTimeout(ctx)
	defer cancel()
	first, err := a.roster.Roster().Alert(ctx, a.taskType, alert, alertEvery)
	if err != nil {
		a.log.WithError(err).Warnf("recording alert %s failed: %s", alert.Kind, alert.Text)
		return
	}
	a.raised[key] = time.Now()
	if !first {
		return
	}
	a.log.WithField("alert", alert.Kind).Warn(alert.Text)
	if a.cfg.Alerter != nil {
		a.cfg.Alerter.Alert(Alert{Alert: alert, TaskType: a.taskType, OwnSign: a.roster.OwnSign()})
	}
}

// checkStandby raises one alert per roster if servers have been on standby for long (S9).
func (a *alerter) checkStandby(ctx context.Context, p roster.HeartbeatReply) {
	if p.Owned > 0 || p.Incoming > 0 || p.State != center.StateStandby || p.Paused {
		a.lastBusy = time.Now()
		return
	}
	if time.Since(a.lastBusy) < standbyAlert*a.settings.JudgeDeadInterval {
		return
	}
	query, cancel := a.withTimeout(ctx)
	defer cancel()
	servers, queues, err := a.roster.Roster().Standby(query, a.taskType)
	if err != nil {
		a.log.WithError(err).Debug("counting the servers on standby failed")
		return
	}
	a.raise(ctx, center.Alert{Kind: center.AlertStandby, Text: fmt.Sprintf("%d of %d servers stand by (queues: %d)", max(0, servers-queues), servers, queues)})
}

// checkStalled raises an alert for each call of the dealer that does not end.
func (a *alerter) checkStalled(ctx context.Context) {
	for _, stall := range a.proc.Stalled(a.settings.StallAfter) {
		a.raise(ctx, center.Alert{Kind: center.AlertStalled, Server: a.uuid, QueueID: stall.Queues[0], Text: stallText(stall)})
	}
}

func stallText(stall processor.Stall) string {
	what := fmt.Sprintf("execute of %d items", stall.Items)
	if stall.Items == 1 {
		what = "execute of 1 item"
	}
	if stall.Select {
		what = "select"
	}
	return fmt.Sprintf("%s of queue %s has been running for %s", what, strings.Join(stall.Queues, ", "), time.Since(stall.Since).Round(time.Second))
}

// checkProgress raises an alert if the server may work and has ended neither a select nor a batch for long.
func (a *alerter) checkProgress(ctx context.Context, p roster.HeartbeatReply, restricted bool) {
	stats := a.proc.Stats()
	done := stats.FetchCount + stats.SuccessCount + stats.FailureCount
	if done != a.progress || p.Owned == 0 || restricted || a.inRuns() {
		a.progress, a.progressAt = done, time.Now()
		return
	}
	patience := max(a.settings.StallAfter, 2*(a.settings.SleepTimeNoData+a.settings.SleepTimeInterval))
	if idle := time.Since(a.progressAt); idle > patience {
		a.raise(ctx, center.Alert{Kind: center.AlertNoFetch, Server: a.uuid, Text: fmt.Sprintf("nothing selected or executed for %s (queues: %d)", idle.Round(time.Second), p.Owned)})
	}
}

// logWaits logs the owners that the server waits for: first after a wait of two heartbeats, which is longer than a hand-over
// takes, and then once per waitLogEvery.
func (a *alerter) logWaits(ctx context.Context, waiting bool) {
	switch {
	case !waiting:
		a.waitLoggedAt = time.Time{}
		return
	case a.waitLoggedAt.IsZero():
		a.waitLoggedAt = time.Now().Add(2*a.settings.HeartbeatInterval - waitLogEvery)
		return
	case time.Since(a.waitLoggedAt) < waitLogEvery:
		return
	}
	a.waitLoggedAt = time.Now()
	ctx, cancel := a.withTimeout(ctx)
	defer cancel()
	waits, err := a.roster.Roster().Server(a.taskType, a.uuid).PendingHandovers(ctx)
	if err != nil {
		a.log.WithError(err).Debug("reading the owners of awaited queues failed")
	}
	for _, w := range waits {
		a.log.Info("waiting: ", w)
	}
}
