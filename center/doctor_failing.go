package center

import (
	"time"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/plural"
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
		c := d.problem(condition.Failing, "correct what the error says; the log of "+names[0]+" has more",
			"%s of %s have failed in %s, and none has succeeded; the last error: %s",
			plural.Of(calls, "call", "calls"), firstFive(names), longest.Round(time.Second), oneLine(errText(text)))
		c.Subject, c.Since = text, time.Now().Add(-longest)
	}
}
