package ops

import (
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/sqldb"
)

// failing reports servers whose calls do nothing but fail. The servers decide this themselves, because only they know
// whether all failures are those of one item, which may be poison. Servers with the same error are one finding.
func (d serverCheck) failing(r rosterRows) {
	var texts []string
	servers := map[string][]ServerRecord{}
	for _, s := range r.servers {
		if s.FailingSince == nil || s.Overdue {
			continue
		}
		if servers[s.LastError] == nil {
			texts = append(texts, s.LastError)
		}
		servers[s.LastError] = append(servers[s.LastError], s)
	}
	for _, text := range texts[:min(len(texts), 5)] {
		var names []string
		var calls int64
		longest := time.Duration(0)
		for _, s := range servers[text] {
			names = append(names, ServerName(s.UUID))
			calls += s.FailedCalls
			longest = max(longest, s.Now.Sub(*s.FailingSince))
		}
		c := d.advise(condition.Failing, "correct what the error says; the log of "+names[0]+" has more",
			"%s of %s have failed in %s, and none has succeeded; the last error: %s",
			plural.Of(calls, "call", "calls"), firstFive(names), longest.Round(time.Second), sqldb.OneLine(errText(text)))
		c.Subject, c.Since = text, time.Now().Add(-longest)
	}
}

// failing reports queues that fail while others of their owners succeed (X7).
func (d queueCheck) failing(r rosterRows) {
	var list []string
	var longest float64
	for _, q := range r.queues {
		if q.FailingFor == nil || r.task.Paused || q.Status != "HELD" && q.Status != "MOVING" || r.failingServer(*q.CurServer) {
			continue
		}
		list = append(list, fmt.Sprintf("%s (%s)", q.QueueID, time.Duration(*q.FailingFor)*time.Second))
		longest = max(longest, *q.FailingFor)
	}
	if len(list) == 0 {
		return
	}
	c := d.add(condition.QueueFailing, "queues of which all calls have failed, while others may succeed: %s", firstFive(list))
	c.Since = time.Now().Add(-time.Duration(longest) * time.Second)
}

// failingServer reports whether the calls of a server do nothing but fail.
func (r rosterRows) failingServer(uuid string) bool {
	return slices.ContainsFunc(r.servers, func(s ServerRecord) bool { return s.UUID == uuid && s.FailingSince != nil })
}
