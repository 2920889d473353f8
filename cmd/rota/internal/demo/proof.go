package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// claim is true if the query, a SELECT of one number, returns want.
type claim struct {
	text  string
	query string
	want  int
}

// claims returns what the demo proves. lastEvent is the id of the last event before the workers leave, for that moves
// queues too.
func claims(lastEvent int64) []claim {
	moves := fmt.Sprintf(` AND event_id <= %d
   AND event_id > (SELECT MAX(event_id) FROM schedule_event
                    WHERE kind = 'JOINED')`, lastEvent)
	const (
		gone  = `SELECT COUNT(*) FROM schedule_server_history WHERE reason = `
		event = "SELECT COUNT(*) FROM schedule_event\n WHERE kind "
	)
	return []claim{
		{
			"each order took effect exactly once",
			`SELECT COUNT(*) FROM orders WHERE state = 'SETTLED' AND effects = 1`, orderCount,
		},
		{"one worker was evicted", gone + `'EXPIRED'`, 1},
		{"the others left in order", gone + `'LEFT'`, 3},
		// Each of the four workers has two queues after the join, however the three shared eight queues before.
		{"the join moved two queues, as few as possible", event + `= 'RELEASED'` + moves, 2},
		{"the crash moved two queues, as few as possible", event + `= 'TAKEN_OVER'` + moves, 2},
		{"no other queue moved", event + `IN ('GRANTED', 'FORCED', 'UNASSIGNED')` + moves, 0},
	}
}

// prove prints the claims. With proof, and for a false claim, it prints the SELECT and the answer too. It returns an
// error if a claim is false.
func prove(ctx context.Context, db sqldb.Eacher, claims []claim, out io.Writer, proof bool) error {
	var errs []error
	if !proof {
		printf(out, "Checked with SELECTs (--proof shows them):\n")
	}
	for _, c := range claims {
		got, err := sqldb.Value[int](ctx, db, c.query)
		if err != nil {
			return fmt.Errorf("prove that %s: %w", c.text, err)
		}
		verdict := "ok   "
		if got != c.want {
			verdict = "FALSE"
			errs = append(errs, fmt.Errorf("it is false that %s: got %d, want %d", c.text, got, c.want))
		}
		printf(out, "%s  %s\n", verdict, c.text)
		if proof || got != c.want {
			printf(out, "       %s\n       = %d\n", strings.ReplaceAll(c.query, "\n", "\n       "), got)
		}
	}
	if len(errs) > 0 {
		printf(out, "\nThe others evict a worker that is stopped for judge_dead_interval.\n")
	}
	return errors.Join(errs...)
}
