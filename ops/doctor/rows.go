package doctor

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// rosterRows holds what Diagnose has read about one task type.
type rosterRows struct {
	task    ops.TaskRecord
	servers []ops.ServerRecord
	queues  []ops.QueueRecord
	alerts  []openAlert // that no other check reports, the newest first
	limits  plan.Limits

	problems, cancelled []runs.Problem // of its runs and triggers

	expired []expiredServer // the oldest first
}

// eachQueue returns what a check says about each queue. It leaves out queues about which the check says nothing.
func (r rosterRows) eachQueue(say func(ops.QueueRecord) string) (list []string) {
	for _, q := range r.queues {
		if text := say(q); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// eligible reports whether there is an eligible server.
func (r rosterRows) eligible() bool { return slices.ContainsFunc(r.servers, ops.ServerRecord.Eligible) }

// silent reports whether all servers are overdue.
func (r rosterRows) silent() bool {
	return !slices.ContainsFunc(r.servers, func(s ops.ServerRecord) bool { return !s.Overdue })
}

// mayOwn reports whether a server may own queues with the pin (P14).
func (r rosterRows) mayOwn(pin plan.Selector) bool {
	return slices.ContainsFunc(r.servers, func(s ops.ServerRecord) bool {
		return r.limits.Forbids(&plan.Queue{Pin: pin}, planServer(s)) == plan.Stays
	})
}

// planServer returns what the labels and the state of a server say to a plan.
func planServer(s ops.ServerRecord) plan.Server {
	labels, _ := plan.ParseLabels(s.Labels)
	return plan.Server{Host: s.HostName, Labels: labels, Eligible: s.Eligible()}
}

// closedUntil returns when the window of permitted work opens next, if it is closed at all live servers. A window
// without an end closes for each queue on its own, and its servers do not say so.
func (r rosterRows) closedUntil() (opens time.Time) {
	for _, s := range r.servers {
		switch from, to := s.NextRunStartTime, s.NextRunEndTime; {
		case s.Overdue:
		case from == nil || to == nil || to.Before(*from):
			return time.Time{}
		case opens.IsZero() || from.Before(opens):
			opens = *from
		}
	}
	return opens
}

// sameError is servers whose last errors are of one kind: they differ in figures and quoted texts, such as the queue,
// at most. Otherwise an outage would be a finding for each server.
type sameError struct {
	kind    string
	servers []ops.ServerRecord
}

// latest returns the server with the newest of the errors.
func (e sameError) latest() ops.ServerRecord {
	return slices.MinFunc(e.servers, func(a, b ops.ServerRecord) int { return cmp.Compare(errorAge(a), errorAge(b)) })
}

// byError returns the selected servers by the kind of their last error, in the order of the servers.
func (r rosterRows) byError(selects func(ops.ServerRecord) bool) (list []sameError) {
	for _, s := range r.servers {
		if !selects(s) {
			continue
		}
		kind := ops.ErrorKind(s.LastError)
		i := slices.IndexFunc(list, func(e sameError) bool { return e.kind == kind })
		if i < 0 {
			i, list = len(list), append(list, sameError{kind: kind})
		}
		list[i].servers = append(list[i].servers, s)
	}
	return list
}

// failing reports whether a server lives, and its calls do nothing but fail.
func failing(s ops.ServerRecord) bool { return s.FailingSince != nil && !s.Overdue }

// stalled returns for how long a call of a server has been in flight, if that is longer than stall_after.
func stalled(s ops.ServerRecord, after time.Duration) (age time.Duration, hangs bool) {
	if s.OldestInFlight == nil || s.Overdue {
		return 0, false
	}
	age = s.Now.Sub(*s.OldestInFlight).Truncate(time.Second)
	return age, age >= after
}

// explained reports whether FAILING, STALLED or OUTAGE says why a server does no items.
func (r rosterRows) explained(s ops.ServerRecord, stallAfter time.Duration) bool {
	_, hangs := stalled(s, stallAfter)
	return hangs || failing(s) || r.outage(s)
}

// outage reports whether a server has raised the alert OUTAGE, which lasts and has its last error.
func (r rosterRows) outage(s ops.ServerRecord) bool {
	return slices.ContainsFunc(r.alerts, func(e openAlert) bool {
		return *e.Alert == condition.Outage.Name && e.FromServer != nil && *e.FromServer == s.UUID
	})
}

// failingServer reports whether the calls of a server do nothing but fail.
func (r rosterRows) failingServer(uuid string) bool {
	return slices.ContainsFunc(r.servers,
		func(s ops.ServerRecord) bool { return s.UUID == uuid && s.FailingSince != nil })
}

// waiting yields the queues without an owner by the rule that no server meets.
func (r rosterRows) waiting() iter.Seq2[string, []string] {
	byReason := map[string][]string{}
	for _, q := range r.queues {
		changes := q.Resizing != nil || r.task.RequestedTotal != nil // it gets an owner when the others have none
		if q.Status == "UNASSIGNED" && !isHung(q) && !changes {
			reason := ""
			if q.WaitsFor != nil {
				reason = *q.WaitsFor
			}
			byReason[reason] = append(byReason[reason], q.QueueID)
		}
	}
	return func(yield func(string, []string) bool) {
		for _, reason := range slices.Sorted(maps.Keys(byReason)) {
			if !yield(reason, byReason[reason]) {
				return
			}
		}
	}
}

// isHung reports whether the queue has no owner because of a call that hangs (P9). A plan has noted which rule keeps
// the queue from the server that comes nearest to getting it (P8). Before a plan, any call that hangs counts.
func isHung(q ops.QueueRecord) bool {
	return q.Status == "UNASSIGNED" && len(q.HungOn) > 0 && (q.WaitsFor == nil || *q.WaitsFor == plan.WaitsForHung)
}
