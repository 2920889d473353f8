package doctor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

// serverCheck checks the servers of a task type.
type serverCheck struct{ *diagnosis }

// availability reports what keeps the task type from being worked on: a pause, missing servers, servers that are not
// eligible.
func (d serverCheck) availability(r rosterRows) {
	if r.task.Paused {
		d.add(condition.Paused, "the task type is paused: no worker starts a call")
	}
	switch {
	case r.task.QueueTotal == 0:
		d.add(condition.NeverServed, "no worker has ever served it in own_sign %s", d.c.OwnSign())
	case len(r.servers) == 0:
		d.add(condition.Unserved, "no worker is registered")
	case !r.eligible():
		d.add(condition.NoEligible, "no worker may take queues: all are paused, draining or silent")
	}
	for _, s := range r.servers {
		switch {
		case s.Overdue:
		case s.State == ops.StatePaused:
			d.advise(condition.ServerPaused, "rota worker resume "+d.commandName(s), "%s is paused",
				ops.ServerName(s.UUID)).Server = s.UUID
		case s.State == ops.StateDraining && s.Queues == 0:
			d.advise(condition.ServerDrained, "stop it, or: rota worker resume "+d.commandName(s),
				"%s is drained and still runs", ops.ServerName(s.UUID)).Server = s.UUID
		}
	}
}

// overdue reports overdue servers, as a problem if another server should have taken over by now.
func (d serverCheck) overdue(r rosterRows) {
	for _, s := range r.servers {
		silent := wholeSeconds(s.HeartbeatAge)
		judgeDead := time.Duration(s.JudgeDead) * time.Millisecond
		owned := human.Count(s.Queues, "queue", "queues")
		switch {
		case !s.Overdue:
		case r.eligible() && silent < 3*judgeDead:
			d.note(condition.ServerSilent, "wait: the other workers take over in a moment", "%s has been silent for %s; "+
				"it owns %s", ops.ServerName(s.UUID), silent, owned).Server = s.UUID
		default:
			d.add(condition.ServerSilent, "%s has been silent for %s and no worker has taken over; it owns %s",
				ops.ServerName(s.UUID), silent, owned).Server = s.UUID
		}
	}
}

// withoutCalls reports servers that own queues and may execute nothing, because other servers get all calls of
// max_in_flight (P10).
func (d serverCheck) withoutCalls(r rosterRows) {
	for _, s := range r.servers {
		if s.MaxInFlightTarget == nil || *s.MaxInFlightTarget > 0 || s.Queues == s.Requested || !s.Eligible() {
			continue
		}
		d.add(condition.NoCalls, "%s owns %s and gets no call of max_in_flight, and no other worker may take the queues",
			ops.ServerName(s.UUID), human.Count(s.Queues-s.Requested, "queue", "queues")).Server = s.UUID
	}
}

// planners reports servers that know newer rules of the planner than the oldest one (P11).
func (d serverCheck) planners(r rosterRows) {
	if len(r.servers) == 0 {
		return
	}
	byVersion := func(a, b ops.ServerRecord) int { return int(a.PlannerVersion - b.PlannerVersion) }
	oldest, newest := slices.MinFunc(r.servers, byVersion), slices.MaxFunc(r.servers, byVersion)
	if oldest.PlannerVersion < newest.PlannerVersion {
		old, recent := ops.ServerName(oldest.UUID), ops.ServerName(newest.UUID)
		d.note(condition.PlannerVersion, "upgrade "+old, "workers of two versions serve the task type: "+
			"%s knows planner version %d, and %s version %d; only the oldest ones plan", old, oldest.PlannerVersion, recent,
			newest.PlannerVersion)
	}
}

// unwitnessed reports servers whose end the other processes of their host cannot prove, where these can prove each
// other's (S15).
func (d serverCheck) unwitnessed(r rosterRows) {
	witnessed := map[string]bool{}
	for _, s := range r.servers {
		witnessed[s.HostName] = witnessed[s.HostName] || s.Witness != ""
	}
	for _, s := range r.servers {
		if s.Witness == "" && witnessed[s.HostName] {
			d.add(condition.Unwitnessed, "%s holds no lock, and other workers of %s do: its end is noticed only after "+
				"judge_dead_interval", ops.ServerName(s.UUID), s.HostName).Server = s.UUID
		}
	}
}

// requirement reports that no server has the labels that require demands, and queues of servers that lack them (P14).
func (d serverCheck) requirement(r rosterRows) {
	var lack []string
	for _, s := range r.servers {
		if s.Queues > 0 && !r.limits.Require.Matches(planServer(s)) {
			owned := human.Count(s.Queues, "queue", "queues")
			lack = append(lack, fmt.Sprintf("%s (%s)", ops.ServerName(s.UUID), owned))
		}
	}
	switch {
	case r.mayOwn(plan.Selector{}):
	case len(lack) > 0:
		d.add(condition.RequireUnmet, "no worker has the labels of require (%s): queues without an owner wait, "+
			"and these workers keep theirs although they lack a label: %s", r.limits.Require, human.First(lack, 5))
	case r.eligible():
		d.add(condition.RequireUnmet, "no worker has the labels of require (%s): the queues wait", r.limits.Require)
	}
}

// namesakes reports servers of two processes with one name: none of them gets its queues back when it returns (P13).
func (d serverCheck) namesakes(r rosterRows) {
	first := map[string]string{}
	for _, s := range r.servers {
		other, there := first[s.Name]
		switch {
		case s.Name == "":
		case there:
			d.add(condition.SameName, "%s and %s have the name %s: neither gets its queues back after a restart", other,
				ops.ServerName(s.UUID), sqldb.JoinLines(s.Name)).Subject = s.Name
		default:
			first[s.Name] = ops.ServerName(s.UUID)
		}
	}
}

// window reports that nothing is selected until the window of permitted work opens: otherwise a mistake in its settings
// would look as if there were nothing to do.
func (d serverCheck) window(r rosterRows) {
	if opens := r.closedUntil(); !opens.IsZero() && !r.task.Paused {
		d.add(condition.WindowClosed, "no worker selects before %s: permit_run_start_time and permit_run_end_time say so",
			opens.UTC().Format(time.RFC3339))
	}
}

// stalledCalls reports servers with a call of the dealer that takes longer than stall_after.
func (d serverCheck) stalledCalls(r rosterRows, after time.Duration) {
	for _, s := range r.servers {
		if s.OldestInFlight == nil || s.Overdue || s.Now.Sub(*s.OldestInFlight) < after {
			continue
		}
		age := s.Now.Sub(*s.OldestInFlight).Truncate(time.Second)
		c := d.add(condition.Stalled, "a call of the dealer of %s has been in flight for %s (stall_after %s)",
			ops.ServerName(s.UUID), age, after)
		c.Server, c.Since = s.UUID, time.Now().Add(-age)
	}
}

// maxErrors is how many errors of servers are findings.
const maxErrors = 5

// errors reports the last errors of servers, each text once. An error may be old. failing reports the error of a
// failing server.
func (d serverCheck) errors(r rosterRows) {
	texts, servers := r.byError(func(s ops.ServerRecord) bool { return s.LastError != "" && !failing(s) })
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(len(servers[b])-len(servers[a]), strings.Compare(a, b))
	})
	for _, text := range texts[:min(len(texts), maxErrors)] {
		latest := slices.MinFunc(servers[text],
			func(a, b ops.ServerRecord) int { return cmp.Compare(errorAge(a), errorAge(b)) })
		when := ""
		if latest.LastErrorAge != nil {
			when = fmt.Sprintf(", %s ago", time.Duration(errorAge(latest))*time.Second)
		}
		c := d.advise(condition.LastError, "see the log of "+ops.ServerName(latest.UUID), "last error of %s%s: %s",
			human.Count(len(servers[text]), "worker", "workers"), when, sqldb.JoinLines(text))
		if c.Subject = text; when != "" {
			c.Since = time.Now().Add(-wholeSeconds(errorAge(latest)))
		}
	}
}

// errorAge returns the age of the last error in seconds. It is infinite for servers of an older version, which do not
// report it.
func errorAge(s ops.ServerRecord) float64 {
	if s.LastErrorAge == nil {
		return math.Inf(1)
	}
	return *s.LastErrorAge
}

// failing reports servers whose calls do nothing but fail. The servers decide this themselves, because only they know
// whether all failures are those of one item, which may be poison. Servers with the same error are one finding.
func (d serverCheck) failing(r rosterRows) {
	texts, servers := r.byError(failing)
	for _, text := range texts[:min(len(texts), maxErrors)] {
		var names []string
		var calls int64
		longest := time.Duration(0)
		for _, s := range servers[text] {
			names = append(names, ops.ServerName(s.UUID))
			calls += s.FailedCalls
			longest = max(longest, s.Now.Sub(*s.FailingSince))
		}
		c := d.advise(condition.Failing, "correct what the error says; the log of "+names[0]+" has more",
			"%s of %s have failed in %s, and none has succeeded; the last error: %s",
			human.Count(calls, "call", "calls"), human.First(names, 5), longest.Round(time.Second), sqldb.JoinLines(text))
		c.Subject, c.Since = text, time.Now().Add(-longest)
	}
}
