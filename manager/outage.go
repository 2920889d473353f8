package manager

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
)

// probeMax is the longest pause between two probes of a queue while its circuit breaker is open. It bounds how late the
// end of an outage is noticed.
const probeMax = 30 * time.Second

// checkOutage notes that nothing succeeds, so that the queues execute one item at a time. It logs the end of the outage.
func (a *alerter) checkOutage() {
	stats := a.proc.Stats()
	switch {
	case !stats.OutageSince.IsZero():
		a.outage = stats.OutageSince
		a.note(center.Alert{Kind: center.AlertOutage, Server: a.uuid, Text: outageText(stats.OutageSince, stats.LastError)})
	case !a.outage.IsZero():
		a.log.Infof("outage is over after %s", time.Since(a.outage).Round(time.Second))
		a.outage = time.Time{}
	}
}

func outageText(since time.Time, last error) string {
	return fmt.Sprintf("several items have failed, and nothing has succeeded for %s: each queue tries one item at a time; last error: %v",
		time.Since(since).Round(time.Second), last)
}
