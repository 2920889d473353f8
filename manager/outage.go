package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/center"
)

// probeMax is the longest pause between two probes of a queue while its circuit breaker is open. It bounds how late the
// server notices the end of an outage.
const probeMax = 30 * time.Second

// checkOutage notes that nothing has succeeded for half a minute, unless the alert FAILING already says so. It logs the
// end of the outage.
func (a *alerter) checkOutage(ctx context.Context, failing *FailingError) {
	stats := a.proc.Stats()
	was := a.outage
	a.outage = stats.OutageSince
	switch {
	case a.outage.IsZero() && !was.IsZero():
		a.log.LogAttrs(ctx, slog.LevelInfo, fmt.Sprintf("outage is over after %s", time.Since(was).Round(time.Second)))
	case !a.outage.IsZero() && failing == nil && time.Since(a.outage) >= failingAlert:
		a.see(center.Condition{Kind: center.AlertOutage, Since: a.outage, Server: a.uuid, Text: outageText(a.outage, stats.LastError)})
	}
}

func outageText(since time.Time, last error) string {
	return fmt.Sprintf("several items have failed, and nothing has succeeded for %s: each queue tries one item at a time; last error: %v",
		time.Since(since).Round(time.Second), last)
}
