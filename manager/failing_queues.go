package manager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// failingQueues records which queues fail entirely (X7). The row of the queue holds it, because the next owner must
// know it: items that have failed often back off for hours, and it would take hours to find the failure again. A server
// that is expired records nothing, and its row would be gone.
type failingQueues struct {
	*base
	reg        *registration
	view       *ownView
	reconciler *reconciler
	due        bool // the rows are to be compared; a job that fails waits for the next heartbeat
	all        bool // the dealer does nothing but fail: that says more than each of its queues
}

const (
	// queueFailsAfter is how long a queue fails until that is a problem. It is longer than failingAlert, because a queue
	// alone may be one customer's, whose system is restarted.
	queueFailsAfter = 10 * time.Minute

	// failingPerJob is how many rows one job writes at the most, so that more urgent jobs need not wait for long.
	failingPerJob = 20

	// alertedQueues is how many failing queues of a server have an alert each.
	alertedQueues = 5
)

// fails reports whether the failure of a queue is a problem.
func fails(f *processor.QueueFailure) bool {
	return f != nil && f.Until.Sub(f.Since) >= queueFailsAfter
}

// follow notes after a heartbeat that the rows are to be compared.
func (f *failingQueues) follow(failing *FailingError) { f.due, f.all = true, failing != nil }

// nextJob returns the job that records the queues that have begun to fail, and those that do not fail any more. It
// returns nil if there are none.
func (f *failingQueues) nextJob() *job {
	if !f.due {
		return nil
	}
	changed := f.changed()
	f.due = len(changed) > failingPerJob
	if len(changed) == 0 {
		return nil
	}
	changed = changed[:min(len(changed), failingPerJob)]
	return &job{
		name: "record failing queues",
		call: func(ctx context.Context) error {
			return f.roster.Roster().Server(f.taskType, f.uuid).SaveFailing(ctx, changed)
		},
		then: func(context.Context, error) (more bool) {
			f.view.invalidate()
			return f.due
		},
	}
}

// changed returns the own queues whose rows are to change. A queue that must not be worked now does not fail. A queue
// that drains for another server keeps what its row says.
func (f *failingQueues) changed() (list []roster.FailingQueue) {
	holdings := map[string]processor.QueueState{}
	for _, h := range f.proc.Queues() {
		holdings[h.Queue.ID] = h
	}
	closed, halted := f.reconciler.closed(), f.reconciler.halt.halted()
	for _, row := range f.view.Queues {
		h, held := holdings[row.ID]
		held = held && h.Queue.Epoch == row.Epoch && !h.Draining
		q := roster.FailingQueue{QueueEpoch: center.QueueEpoch{ID: row.ID, Epoch: row.Epoch}}
		switch rests := halted || closed[row.ID]; {
		case row.Owner != f.uuid, !held && !rests:
			continue
		case rests || !fails(h.Failing):
		case f.all && row.FailingSince.IsZero():
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
func (a *alerter) checkQueues(failing *FailingError) {
	if failing != nil {
		return
	}
	list := slices.DeleteFunc(a.proc.Queues(), func(h processor.QueueState) bool { return !fails(h.Failing) })
	slices.SortStableFunc(list, func(x, y processor.QueueState) int {
		return cmp.Or(x.Failing.Since.Compare(y.Failing.Since), cmp.Compare(x.Queue.Index, y.Queue.Index))
	})
	for _, h := range list[:min(len(list), alertedQueues)] {
		text := queueFailureText(h.Queue.ID, h.Failing)
		if more := len(list) - alertedQueues; more > 0 {
			text += fmt.Sprintf("; %d more queues of %s fail", more, center.ServerName(a.uuid))
		}
		a.see(center.Condition{Kind: center.AlertQueueFailing, Since: h.Failing.Since, QueueID: h.Queue.ID, Text: text})
	}
}

func queueFailureText(id string, f *processor.QueueFailure) string {
	text := fmt.Sprintf("no item of queue %s has succeeded for %s, and %s", id, time.Since(f.Since).Round(time.Second), plural.Of(f.Calls, "call has failed", "calls have failed"))
	if f.Err != nil {
		text += "; the last error: " + shortened(f.Err.Error())
	}
	return text
}
