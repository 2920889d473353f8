package runs

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/sqldb"
)

// queueCounts are the numbers of queues of a run by state, and the sums of their items.
type queueCounts struct {
	open, done, failed, cancelled int
	itemsDone, itemsFailed        int64
	atLeast                       bool   // itemsDone and itemsFailed are lower bounds
	cause                         string // the error of the first queue that failed
}

func countQueues(ctx context.Context, t sqldb.Tx, runID string) (sum queueCounts, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var state string
		var n int
		var done, failed int64
		var atLeast sqldb.Flag
		err := rows.Scan(&state, &n, &done, &failed, &atLeast)
		sum.itemsDone, sum.itemsFailed, sum.atLeast = sum.itemsDone+done, sum.itemsFailed+failed, sum.atLeast || bool(atLeast)
		switch state {
		case RunQueueDone:
			sum.done += n
		case RunQueueFailed:
			sum.failed += n
		case RunQueueCancelled:
			sum.cancelled += n
		default:
			sum.open += n
		}
		return err
	}, `SELECT state, COUNT(*), SUM(items_done), SUM(items_failed), `+anyLowerBound+` FROM schedule_run_queue WHERE run_id = ? GROUP BY state ORDER BY state`, runID)
	if err != nil || sum.failed == 0 {
		return sum, err
	}
	var queue, why string
	err = t.QueryRow(ctx, `SELECT queue_id, last_error FROM schedule_run_queue WHERE run_id = ? AND state = '`+RunQueueFailed+`' ORDER BY finished_at, queue_id LIMIT 1`, runID).Scan(&queue, &why)
	sum.cause = fmt.Sprintf("%d of %d queues failed, first queue %s: %s", sum.failed, sum.done+sum.failed+sum.cancelled+sum.open, queue, why)
	return sum, err
}

// outcome returns the state and the message of a run whose queues are all finished.
func (sum queueCounts) outcome() (state, message string) {
	switch {
	case sum.failed > 0:
		return RunFailed, sum.cause
	case sum.cancelled > 0 && sum.done == 0:
		return RunCancelled, "all its queues were removed"
	case sum.cancelled > 0:
		return RunSuccess, "without " + plural.Of(sum.cancelled, "queue that was removed", "queues that were removed")
	}
	return RunSuccess, ""
}

// lowerBound notes in an UPDATE of a queue of a run, before it assigns the state (L6), that the counts of a queue whose
// sweep did not record its end are lower bounds (R15). The items that the sweep has executed since its last save are
// not counted.
const lowerBound = `items_at_least = CASE WHEN state = '` + RunQueueRunning + `' THEN TRUE ELSE items_at_least END`

// anyLowerBound reports in a query over queues of runs whether the counts of any of them are lower bounds.
const anyLowerBound = `MAX(CASE WHEN items_at_least THEN 1 ELSE 0 END)`
