package scale

import (
	"fmt"
	"math"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
)

// share is the part of one processor of the database server that heartbeats may take.
const share = 0.25

// intervals returns a table of heartbeat intervals for numbers of servers: the default, unless the heartbeats then take
// more than their share.
func intervals(results []*Result, o Options) report.Table {
	t := report.Table{
		Title:   "Which heartbeat interval",
		Columns: []string{"workers"},
		Note: fmt.Sprintf(`The shortest interval, in whole seconds and not below the default, with which all heartbeats take at most %.0f %% of one
processor of the database server, at the cost per heartbeat above. After a crash the other servers take over within eight intervals.`, 100*share),
	}
	for _, r := range results {
		t.Columns = append(t.Columns, r.Database)
	}
	for _, n := range []int{o.Servers / 100, o.Servers / 10, o.Servers, 10 * o.Servers} {
		row := []any{n}
		for _, r := range results {
			row = append(row, interval(n, r.Idle.CPU))
		}
		t.Add(row...)
	}
	return t
}

// interval returns the interval for this number of servers. cpu is in milliseconds per heartbeat; 0 stands for unknown.
func interval(servers int, cpu float64) string {
	if cpu == 0 {
		return "-"
	}
	seconds := math.Ceil(float64(servers) * cpu / 1000 / share)
	return max(2*time.Second, time.Duration(seconds)*time.Second).String()
}
