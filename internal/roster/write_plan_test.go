package roster_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// L4: if a row has changed since the plan was made, no part of the plan is written.
func TestPlanIsCompareAndSet(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "race", 2)
		stale := map[string]plan.Change{
			"epoch": {QueueID: "1", OldEpoch: 7, Owner: "A"},
			"owner": {QueueID: "1", OldOwner: "B", OldEpoch: 1, Owner: "A"},
			"row":   {QueueID: "9", OldEpoch: 1, Owner: "A"},
		}
		for name, change := range stale {
			for _, changes := range [][]plan.Change{{change}, {{QueueID: "0", OldEpoch: 1, Owner: "A"}, change}} {
				err := c.Roster().WritePlan(t.Context(), "race", changes)
				if name == "row" && !c.Roster().DB.OneWriter {
					continue // lockFreeRows skips a row that is gone as if it were locked
				}
				if !errors.Is(err, sqldb.ErrRaced) {
					t.Errorf("write a plan of %d changes with another %s: got %v, want %v", len(changes), name, err, sqldb.ErrRaced)
				}
			}
		}
		if n := centertest.CountRows(t, c, "SELECT 1 FROM schedule_queue"+
			" WHERE queue_id <> '0' AND cur_server IS NOT NULL"); n != 0 {
			t.Errorf("queues with an owner from a stale plan: got %d, want 0", n)
		}
	})
}

// L5: PostgreSQL looks up each queue of a list by its key, also before it has statistics. Otherwise the first plan of a
// large roster would take longer than a transaction may.
func TestQueuesAreLockedByTheirKey(t *testing.T) {
	t.Parallel()
	c := openTask(t, testdb.URL(t, testdb.Postgres), "large", 5_000)
	db := c.Roster().DB
	from, args, err := db.SelectQueues("schedule_queue", []string{"1", "2"}, "large", "BASE")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	err = db.Each(t.Context(), func(rows *sql.Rows) error {
		lines = append(lines, "")
		return rows.Scan(&lines[len(lines)-1])
	}, `EXPLAIN SELECT q.queue_id`+from+` ORDER BY q.queue_id`+db.SkipLocked, args...)
	byKey := func(line string) bool {
		return strings.Contains(line, "Index Cond:") && strings.Contains(line, "queue_id = ")
	}
	if err != nil || !slices.ContainsFunc(lines, byKey) {
		t.Errorf("%v, want an index condition with queue_id:\n%s", err, strings.Join(lines, "\n"))
	}
}
