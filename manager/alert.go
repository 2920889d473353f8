package manager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// Alert is something that an operator should know. It is also an event in schedule_event.
type Alert struct {
	center.Condition
	OwnSign string
}

// Alerter takes alerts to people: to a pager, a chat, a metric. The server of the task type calls Alert in its own
// goroutine and waits for it, so Alert must leave slow work to another goroutine. An alert that persists is repeated
// once an hour.
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

// alerter raises what an operator should know. It looks with every heartbeat, and records what it has found in a job.
type alerter struct {
	*base
	incoming <-chan center.Condition // from the executors
	raised   map[string]time.Time    // by task type, kind, queue and subject, for an hour; outlives the session

	found      []center.Condition // to be recorded
	standbyDue bool               // servers that stand by are to be counted
	waitsDue   bool               // owners that the server waits for are to be logged

	outage       time.Time // when the breaker opened; zero while it is closed
	lastBusy     time.Time // when the server last had a queue, or could not have one
	progress     int64     // number of selects and items that have ended
	progressAt   time.Time // when progress last changed
	waitLoggedAt time.Time // zero while the server waits for no queue
}

// follow notes the alerts that are due after a heartbeat. restricted says that the server must not work on all of its
// queues now.
func (a *alerter) follow(ctx context.Context, p roster.HeartbeatReply, failing *FailingError, restricted bool) {
	a.checkWaits(p.Incoming > 0)
	for more := true; more; {
		select {
		case alert := <-a.incoming:
			a.note(alert)
		default:
			more = false
		}
	}
	a.checkStandby(p)
	a.checkStalled()
	a.checkFailing(failing, restricted)
	a.checkOutage(ctx, failing)
	a.checkQueues(failing)
	a.checkProgress(p, restricted)
}

// note notes an alert, unless it was raised within the hour and since its condition began.
func (a *alerter) note(alert center.Condition) {
	if !a.recent(alert) && !slices.ContainsFunc(a.found, func(b center.Condition) bool { return alertKey(b) == alertKey(alert) }) {
		a.found = append(a.found, alert)
	}
}

func (a *alerter) recent(alert center.Condition) bool {
	last, ok := a.raised[alertKey(alert)]
	return ok && time.Since(last) < alertEvery && !last.Before(alert.Since)
}

func alertKey(a center.Condition) string {
	return a.TaskType + "/" + a.Kind + "/" + a.QueueID + "/" + a.Subject
}

// nextJob returns the job that records what was found, or nil if that is nothing.
func (a *alerter) nextJob() *job {
	found, standby, waits := a.found, a.standbyDue, a.waitsDue
	if len(found) == 0 && !standby && !waits {
		return nil
	}
	a.found, a.standbyDue, a.waitsDue = nil, false, false
	maxInFlight := a.settings.MaxInFlight
	var pending []roster.PendingHandover
	first := make([]bool, len(found), len(found)+1) // no other process has raised it
	errs := make([]error, len(found), len(found)+1)
	return &job{
		name: "record alerts",
		call: func(ctx context.Context) (err error) {
			if waits {
				pending, err = a.roster.Roster().Server(a.taskType, a.uuid).PendingHandovers(ctx)
			}
			if standby {
				alert, err := a.standby(ctx, maxInFlight)
				found, first, errs = append(found, alert), append(first, false), append(errs, err)
			}
			for i, alert := range found {
				if alert.Kind == center.AlertFailing && errs[i] == nil {
					alert.Since, errs[i] = a.failingSince(ctx, alert.Since)
				}
				if errs[i] == nil {
					first[i], errs[i] = a.roster.Roster().Alert(ctx, cmp.Or(alert.TaskType, a.taskType), alert, alertEvery)
				}
			}
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			for _, w := range pending {
				a.log.LogAttrs(ctx, slog.LevelInfo, fmt.Sprint("waiting: ", w))
			}
			for i, alert := range found {
				a.recorded(ctx, alert, first[i], errs[i])
			}
			return false
		},
	}
}

// recorded passes a recorded alert to the log and to the Alerter, unless another process has recorded it first.
func (a *alerter) recorded(ctx context.Context, alert center.Condition, first bool, err error) {
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("recording alert %s failed: %s", alert.Kind, alert.Text), slog.Any("error", err))
		return
	}
	maps.DeleteFunc(a.raised, func(_ string, at time.Time) bool { return time.Since(at) >= alertEvery }) // a subject such as a run may never come back
	a.raised[alertKey(alert)] = time.Now()
	if !first {
		return
	}
	a.logAlert(ctx, alert)
	if a.cfg.Alerter != nil {
		alert.TaskType = cmp.Or(alert.TaskType, a.taskType)
		a.cfg.Alerter.Alert(Alert{Condition: alert, OwnSign: a.roster.OwnSign()})
	}
}

// logAlert logs an alert under its own task type, which need not be the one that this server serves.
func (a *alerter) logAlert(ctx context.Context, alert center.Condition) {
	log, attrs := a.log, []slog.Attr{slog.String("alert", alert.Kind)}
	if alert.TaskType != "" {
		log = a.logOf(alert.TaskType)
	}
	if alert.Subject != "" {
		attrs = append(attrs, slog.String("subject", alert.Subject))
	}
	log.LogAttrs(ctx, slog.LevelWarn, alert.Text, attrs...)
}

// checkStandby notes that this server has had no queue for long (S9).
func (a *alerter) checkStandby(p roster.HeartbeatReply) {
	if p.Owned > 0 || p.Incoming > 0 || p.State != center.StateStandby || p.Paused {
		a.lastBusy = time.Now()
		return
	}
	a.standbyDue = time.Since(a.lastBusy) >= standbyAlert*a.settings.JudgeDeadInterval && !a.recent(center.Condition{Kind: center.AlertStandby})
}

// standby returns the alert that servers stand by. The whole roster raises it once.
func (a *alerter) standby(ctx context.Context, maxInFlight int) (center.Condition, error) {
	servers, queues, err := a.roster.Roster().Standby(ctx, a.taskType)
	working, why := min(servers, queues), fmt.Sprintf("queues: %d", queues)
	if maxInFlight > 0 && maxInFlight < working {
		working, why = maxInFlight, fmt.Sprintf("max_in_flight: %d", maxInFlight)
	}
	return center.Condition{Kind: center.AlertStandby, Text: fmt.Sprintf("%d of %d servers stand by (%s)", servers-working, servers, why)}, err
}

// checkStalled notes calls of the dealer that do not end.
func (a *alerter) checkStalled() {
	for _, stall := range a.proc.Stalled(a.settings.StallAfter) {
		a.note(center.Condition{Kind: center.AlertStalled, Since: stall.Since, Server: a.uuid, QueueID: stall.Queues[0], Text: stallText(stall)})
	}
}

func stallText(stall processor.Stall) string {
	what := "execute of " + plural.Of(stall.Items, "item", "items")
	if stall.Select {
		what = "select"
	}
	return fmt.Sprintf("%s of queue %s has been running for %s", what, strings.Join(stall.Queues, ", "), time.Since(stall.Since).Round(time.Second))
}

// checkProgress notes that a server that may work has ended neither a select nor a batch for long.
func (a *alerter) checkProgress(p roster.HeartbeatReply, restricted bool) {
	stats := a.proc.Stats()
	done := stats.FetchCount + stats.SuccessCount + stats.FailureCount
	if done != a.progress || p.Owned == 0 || restricted || a.inRuns() {
		a.progress, a.progressAt = done, time.Now()
		return
	}
	patience := max(a.settings.StallAfter, 2*(a.settings.SleepTimeNoData+a.settings.SleepTimeInterval))
	if idle := time.Since(a.progressAt); idle > patience {
		text := fmt.Sprintf("nothing selected or executed for %s (queues: %d)", idle.Round(time.Second), p.Owned)
		if p.Share.Granted == 0 {
			text += ": other servers have all calls of max_in_flight in flight"
		}
		a.note(center.Condition{Kind: center.AlertNoFetch, Since: a.progressAt, Server: a.uuid, Text: text})
	}
}

// checkWaits notes that the owners that the server waits for are to be logged: first when that has lasted longer than a
// hand-over takes, and then at intervals.
func (a *alerter) checkWaits(waiting bool) {
	switch {
	case !waiting:
		a.waitLoggedAt = time.Time{}
	case a.waitLoggedAt.IsZero():
		a.waitLoggedAt = time.Now().Add(2*a.settings.HeartbeatInterval - waitLogEvery)
	case time.Since(a.waitLoggedAt) >= waitLogEvery:
		a.waitLoggedAt = time.Now()
		a.waitsDue = true
	}
}
