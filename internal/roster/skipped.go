package roster

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// skipRetryInterval is how long after a plan that skipped rows the servers of a roster together make the next attempt
// (L5).
const skipRetryInterval = time.Second

// mostSkipped is how many queues the lock row names at most, because each heartbeat reads them. A later plan names the
// others.
const mostSkipped = 1_000

// planDue is a condition on the lock row: the membership has changed since the last plan, or that plan skipped rows and
// is due for its next attempt, or a reservation has ended (P13). A plan that seems to come from the future was written before the clock was set back.
var planDue = fmt.Sprintf(`(membership_version <> planned_version
	OR reserved_until <= {now} OR NOT (%s)
	OR skipped IS NOT NULL AND (last_assign_time IS NULL OR last_assign_time > {now} OR last_assign_time < {ago %d}))`, soonReserved, skipRetryInterval.Milliseconds())

// skippedColumn returns the value of the column `skipped`: NULL if the plan skipped nothing, otherwise a JSON list of
// the queues that are to move. The owner drains the queues in the list. A queue whose request the plan withdraws is not
// in it, because this queue stays where it is.
func (v versions) skippedColumn() (any, error) {
	if !v.skipped {
		return nil, nil
	}
	return sqldb.JSON(v.toMove)
}

// queuesToMove returns the queues of the changes that move a queue, at most mostSkipped.
func queuesToMove(changes []plan.Change) []string {
	ids := []string{}
	for _, c := range changes {
		if (c.ChangesOwner() || c.Requester != "") && len(ids) < mostSkipped {
			ids = append(ids, c.QueueID)
		}
	}
	return ids
}
