package doctor

import (
	"cmp"
	"context"
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
		d.add(condition.Unserved, "no worker is registered%s", r.lastExpired())
	case !r.eligible() && !r.silent(): // overdue reports workers of which all are silent
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
		since := "for " + silent.String()
		if silent < 0 {
			since = "since before the clock was set back"
		}
		switch {
		case !s.Overdue:
		case r.eligible() && silent < 3*judgeDead:
			d.note(condition.ServerSilent, "wait: the other workers take over in a moment", "%s has been silent %s; "+
				"it owns %s", ops.ServerName(s.UUID), since, owned).Server = s.UUID
		default:
			d.add(condition.ServerSilent, "%s has been silent %s and no worker has taken over; it owns %s",
				ops.ServerName(s.UUID), since, owned).Server = s.UUID
		}
	}
}

// expiredFor is for how long the doctor reports a server that has been expired.
const expiredFor = 10 * time.Minute

// expiredServer is a server that was expired lately.
type expiredServer struct {
	UUID, TaskType string
	LeftTime       time.Time
	Now            time.Time `db:"database_time"`
}

func (s expiredServer) ago() time.Duration { return s.Now.Sub(s.LeftTime).Truncate(time.Second) }

// expired returns the servers of a task type, or of all, that were expired lately, the oldest first.
func (d rosterCheck) expired(ctx context.Context, taskType string) ([]expiredServer, error) {
	w := sqldb.Where{Args: []any{d.c.OwnSign()}}
	w.Equal("task_type", taskType)
	list, err := sqldb.Records[expiredServer](ctx, d.db, fmt.Sprintf(`SELECT uuid, task_type, left_time,
			{now} AS database_time FROM schedule_server_history
		WHERE reason = 'EXPIRED' AND left_time > {ago %d} AND own_sign = ?%s ORDER BY left_time, uuid`,
		expiredFor.Milliseconds(), w.Text), w.Args...)
	return list, sqldb.Wrap(err, "list the expired workers")
}

// missing reports processes that were expired lately and have not joined again. The others have taken their queues
// over, so that nothing else shows that one is missing.
func (d serverCheck) missing(r rosterRows) {
	if len(r.servers) == 0 {
		return // availability says it
	}
	var list []string
	for _, s := range r.expired {
		name := ops.ServerName(s.UUID)
		if !slices.ContainsFunc(r.servers, func(o ops.ServerRecord) bool { return ops.ServerName(o.UUID) == name }) {
			list = append(list, fmt.Sprintf("%s (%s ago)", name, s.ago()))
		}
	}
	d.list(condition.ServerExpired, "workers that were silent for judge_dead_interval, so that others have taken "+
		"their queues over, and that have not joined again", list)
}

// lastExpired names the last server if it was expired lately: it has not left by itself.
func (r rosterRows) lastExpired() string {
	if len(r.expired) == 0 {
		return ""
	}
	last := r.expired[len(r.expired)-1]
	return fmt.Sprintf("; %s was expired %s ago, because it had sent no heartbeat", ops.ServerName(last.UUID),
		last.ago())
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

// farWindow is how far away the opening of a window of permitted work is that is a note. A window of each night or of
// each week is closed most of the time, as it should be.
const farWindow = 7 * 24 * time.Hour

// window reports that nothing is selected until the window of permitted work opens: otherwise a mistake in its settings
// would look as if there were nothing to do.
func (d serverCheck) window(r rosterRows) {
	opens := r.closedUntil()
	if opens.IsZero() || r.task.Paused {
		return
	}
	report := func(kind condition.Kind, format string, args ...any) { d.add(kind, format, args...) }
	if opens.Sub(r.servers[0].Now) <= farWindow {
		report = d.ok
	}
	report(condition.WindowClosed, "no worker selects before %s: permit_run_start_time and permit_run_end_time say so",
		opens.UTC().Format(time.RFC3339))
}

// stalledCalls reports servers with a call of the dealer that takes longer than stall_after, unless failing reports
// them: calls that end with an error and calls that do not end have one cause.
func (d serverCheck) stalledCalls(r rosterRows, after time.Duration) {
	for _, s := range r.servers {
		age, hangs := stalled(s, after)
		if !hangs || failing(s) {
			continue
		}
		c := d.add(condition.Stalled, "a call of the dealer of %s has been in flight for %s (stall_after %s)",
			ops.ServerName(s.UUID), age, after)
		c.Server, c.Since = s.UUID, time.Now().Add(-age)
	}
}

const (
	// maxErrors is how many errors of servers are findings.
	maxErrors = 5

	// freshError is how old an error may be that is a finding, if the server goes on. rota worker list has older ones.
	freshError = 10 * time.Minute
)

// errors reports the last errors of servers, each kind once. FAILING and OUTAGE have the error of their server.
func (d serverCheck) errors(r rosterRows) {
	list := r.byError(func(s ops.ServerRecord) bool {
		fresh := s.LastErrorAge == nil || errorAge(s) < freshError.Seconds()
		return s.LastError != "" && !failing(s) && !r.outage(s) && fresh
	})
	slices.SortFunc(list, func(a, b sameError) int {
		return cmp.Or(len(b.servers)-len(a.servers), strings.Compare(a.kind, b.kind))
	})
	for _, e := range list[:min(len(list), maxErrors)] {
		latest, when := e.latest(), ""
		if latest.LastErrorAge != nil {
			when = fmt.Sprintf(", %s ago", time.Duration(errorAge(latest))*time.Second)
		}
		c := d.advise(condition.LastError, "see the log of "+ops.ServerName(latest.UUID), "last error of %s%s: %s",
			human.Count(len(e.servers), "worker", "workers"), when, sqldb.JoinLines(latest.LastError))
		if c.Subject = e.kind; when != "" {
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
// whether all failures are those of one item, which may be poison. Servers with one kind of error are one finding.
func (d serverCheck) failing(r rosterRows, stallAfter time.Duration) {
	list := r.byError(failing)
	for _, e := range list[:min(len(list), maxErrors)] {
		var names []string
		var calls int64
		longest, hangs := time.Duration(0), ""
		for _, s := range e.servers {
			names = append(names, ops.ServerName(s.UUID))
			calls += s.FailedCalls
			longest = max(longest, s.Now.Sub(*s.FailingSince))
			if age, stalls := stalled(s, stallAfter); stalls && hangs == "" {
				hangs = fmt.Sprintf("a call of %s has been in flight for %s (stall_after %s); ", ops.ServerName(s.UUID), age,
					stallAfter)
			}
		}
		c := d.advise(condition.Failing, "correct what the error says; the log of "+names[0]+" has more",
			"%s of %s have failed in %s, and none has succeeded; %sthe last error: %s",
			human.Count(calls, "call", "calls"), human.First(names, 5), longest.Round(time.Second), hangs,
			sqldb.JoinLines(e.latest().LastError))
		c.Subject, c.Since = e.kind, time.Now().Add(-longest)
	}
}
