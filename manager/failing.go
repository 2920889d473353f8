package manager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// FailingError says that the calls of a dealer do nothing but fail. Status has it.
type FailingError struct {
	TaskType string
	Calls    int64     // selects and batches that have failed since an item was last done
	Since    time.Time // when the first of them began, or an item was last done, whatever is later
	Err      error     // the last of their errors
}

// Error implements error.
func (e *FailingError) Error() string {
	calls := human.Count(e.Calls, "call of the dealer has", "calls of the dealer have")
	return fmt.Sprintf("task %s: %s failed since %s, and none has succeeded: %v",
		e.TaskType, calls, e.Since.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns the last error of the dealer.
func (e *FailingError) Unwrap() error { return e.Err }

// failing returns an error if the dealer does nothing but fail, in mode RUN only during a run. A run that has failed
// has an alert of its own, and there is no work until the next run. The server must have a session.
func (s *server) failing(stats processor.Stats) *FailingError {
	workless := func(p part) bool { return p.workless != nil && p.workless() }
	if stats.FailingSince.IsZero() || slices.ContainsFunc(s.session.Load().parts, workless) {
		return nil
	}
	return &FailingError{TaskType: s.taskType, Calls: stats.FailedCalls, Since: stats.FailingSince, Err: stats.LastError}
}

// checkFailing notes that the dealer does nothing but fail, or calls of it that do not end. It is one alert: where
// calls end with an error and others do not end, both have one cause. FAILING is one alert for the roster, because the
// same statement fails on all servers.
func (f *failureTeller) checkFailing(e *FailingError, restricted bool) {
	if e == nil || restricted {
		f.alerter.checkStalled()
		return
	}
	hangs := ""
	if stalled := f.proc.Stalled(f.settings.StallAfter); len(stalled) > 0 {
		hangs = stallText(stalled[0]) + "; "
	}
	text := fmt.Sprintf("on %s %s failed in %s, and none has succeeded; %sthe last error: %s", ops.ServerName(f.uuid),
		human.Count(e.Calls, "call has", "calls have"), time.Since(e.Since).Round(time.Second), hangs,
		shortened(e.Err.Error()))
	f.alerter.see(condition.Condition{Kind: condition.Failing.Name, Since: e.Since, Text: text})
}

// failingSince returns since when the task type fails: another server may have begun before this one, whose first
// failure is then no new outage.
func (a *alerter) failingSince(ctx context.Context, own time.Time) (time.Time, error) {
	age, err := a.roster.Roster().FailingFor(ctx, a.taskType)
	if first := time.Now().Add(-age); age > 0 && first.Before(own) {
		return first, err
	}
	return own, err
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	const limit = 500
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}

// failureTeller tells of a dealer and of queues that do nothing but fail. It records which queues fail entirely (X7).
// The row of the queue holds that, because the next owner must know it: items that have failed often back off for
// hours, and it would take hours to find the failure again. The row of the server could not hold it, because it is
// gone when the server is expired.
type failureTeller struct {
	*base
	session *session
	outage  time.Time // when the breaker opened; zero while it is closed
	heard   time.Time // the last reply to a heartbeat

	// The last reply after which the lease, which had expired, is valid again. What collects the statistics reads it, too.
	back atomic.Pointer[time.Time]
}

func failingPart(s *session) part {
	f := &failureTeller{base: s.base, session: s}
	p := part{
		follow: f.follow,
		look:   f.look,
		jobs:   map[duty]func() *job{saveFailing: func() *job { return f.save(f.failing() != nil) }},
		statistics: func(stats *roster.Statistics) {
			if e := f.failing(); e != nil {
				stats.FailingSince = f.reg.dbTime(e.Since)
			}
		},
	}
	if !f.inRuns() {
		p.beats = []duty{saveFailing}
	}
	return p
}

func (f *failureTeller) follow(heartbeatReply) {
	now := time.Now()
	if elapsed(f.heard, now) > f.reg.lease.intervals().lease() {
		f.back.Store(&now)
	}
	f.heard = now
}

// failing returns an error if the dealer does nothing but fail. While the lease had expired, nothing was called: what
// failed before shows the outage of the database, until something fails again.
func (f *failureTeller) failing() *FailingError {
	stats := f.proc.Stats()
	if back := f.back.Load(); back != nil && stats.LastErrorTime.Before(*back) {
		return nil
	}
	return f.session.server.failing(stats)
}

// look notes what does nothing but fail.
func (f *failureTeller) look(ctx context.Context, restricted bool) {
	e := f.failing()
	f.checkFailing(e, restricted)
	f.checkOutage(ctx, e)
	f.checkQueues(e)
}

const (
	// outageAlert is how long an outage lasts until that is a problem, as with FAILING.
	outageAlert = 30 * time.Second

	// queueFailsAfter is how long a queue fails until that is a problem. It is longer than with FAILING, because a
	// single queue may be the data of one customer, whose system is restarted.
	queueFailsAfter = 10 * time.Minute

	// failingPerJob is how many rows one job writes at the most, so that more urgent jobs need not wait for long.
	failingPerJob = 20

	// alertedQueues is how many failing queues of a server have an alert of their own.
	alertedQueues = 5
)

// fails reports whether the failure of a queue is a problem.
func fails(f *engine.QueueFailure) bool {
	return f != nil && f.Until.Sub(f.Since) >= queueFailsAfter
}

// save returns the job that records the queues that have begun to fail, and those that do not fail any more. It returns
// nil if there are none. If the dealer does nothing but fail, that says more than each of its queues: all is then set.
func (f *failureTeller) save(all bool) *job {
	changed := f.changed(all)
	if len(changed) == 0 {
		return nil
	}
	more := len(changed) > failingPerJob
	changed = changed[:min(len(changed), failingPerJob)]
	return &job{
		name: "record failing queues",
		call: func(ctx context.Context) error {
			return f.own().SaveFailing(ctx, changed)
		},
		then: func(context.Context, error) bool {
			if f.view.invalidate(); more {
				f.agenda.add(time.Now(), saveFailing)
			}
			return more
		},
	}
}

// changed returns the own queues whose rows are to change. A queue that must not be worked now does not fail. A queue
// that drains for another server keeps what its row says.
func (f *failureTeller) changed(all bool) (list []roster.FailingQueue) {
	holdings := map[string]engine.QueueState{}
	for _, h := range f.proc.Queues() {
		holdings[h.Queue.ID] = h
	}
	closed, halted := f.session.reconciler.closed(), f.session.halt.halted()
	for _, row := range f.view.Queues {
		h, held := holdings[row.ID]
		held = held && h.Queue.Epoch == row.Epoch && !h.Draining
		q := roster.FailingQueue{QueueEpoch: center.QueueEpoch{ID: row.ID, Epoch: row.Epoch}}
		switch rests := halted || closed[row.ID]; {
		case row.Owner != f.uuid, !held && !rests:
			continue
		case rests || !fails(h.Failing):
		case all && row.FailingSince.IsZero():
			continue
		default:
			q.Since = f.reg.dbTime(h.Failing.Since)
		}
		if q.Since.IsZero() != row.FailingSince.IsZero() {
			list = append(list, q)
		}
	}
	return list
}

// checkQueues notes queues that fail while others succeed. If all fail, the alert FAILING says so.
func (f *failureTeller) checkQueues(failing *FailingError) {
	if failing != nil {
		return
	}
	list := slices.DeleteFunc(f.proc.Queues(), func(h engine.QueueState) bool { return !fails(h.Failing) })
	slices.SortStableFunc(list, func(x, y engine.QueueState) int {
		return cmp.Or(x.Failing.Since.Compare(y.Failing.Since), cmp.Compare(x.Queue.Index, y.Queue.Index))
	})
	for _, h := range list[:min(len(list), alertedQueues)] {
		text := queueFailureText(h.Queue.ID, h.Failing)
		if more := len(list) - alertedQueues; more > 0 {
			text += fmt.Sprintf("; %d more queues of %s fail", more, ops.ServerName(f.uuid))
		}
		f.alerter.see(condition.Condition{
			Kind: condition.QueueFailing.Name, Since: h.Failing.Since, QueueID: h.Queue.ID, Text: text,
		})
	}
}

func queueFailureText(id string, f *engine.QueueFailure) string {
	text := fmt.Sprintf("no item of queue %s has succeeded for %s, and %s", escape.Name(id),
		time.Since(f.Since).Round(time.Second), human.Count(f.Calls, "call has failed", "calls have failed"))
	if f.Err != nil {
		text += "; the last error: " + shortened(f.Err.Error())
	}
	return text
}

// checkOutage notes that nothing has succeeded for half a minute, unless the alert FAILING already says so, or the
// selects that failed succeed again: then there is nothing to do, and the breaker closes when it has been quiet. The
// end of the outage is logged.
func (f *failureTeller) checkOutage(ctx context.Context, failing *FailingError) {
	stats := f.proc.Stats()
	was := f.outage
	f.outage = stats.OutageSince
	switch {
	case f.outage.IsZero() && !was.IsZero():
		f.log.LogAttrs(ctx, slog.LevelInfo, fmt.Sprintf("outage is over after %s", time.Since(was).Round(time.Second)))
	case !f.outage.IsZero() && failing == nil && stats.FailedCalls > 0 && time.Since(f.outage) >= outageAlert:
		text := fmt.Sprintf("several calls have failed, and nothing has succeeded for %s: "+
			"each queue tries one item at a time; last error: %v", time.Since(f.outage).Round(time.Second), stats.LastError)
		f.alerter.see(condition.Condition{Kind: condition.Outage.Name, Since: f.outage, Server: f.uuid, Text: text})
	}
}
