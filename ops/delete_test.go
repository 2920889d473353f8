package ops_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// A task type with more open runs than one transaction has the time for is deleted in several.
func TestDeleteCancelsManyRuns(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		var locks atomic.Int64
		ctx := t.Context()
		c := centertest.Open(t, url, center.Options{OnLock: func(string, time.Duration) { locks.Add(1) }})
		_, err := ops.New(c).Tasks().Define(ctx, "import", center.Settings{Queues: 2, Mode: center.ModeRun})
		must(t, err)
		id, _, err := ops.New(c).Runs().Submit(ctx, "import", runs.Submission{})
		must(t, err)
		centertest.Exec(t, c, `CREATE TABLE another AS SELECT * FROM schedule_run WHERE run_id = '`+id+`'`)
		tx := centertest.Begin(t, c)
		for i := range 2 * runs.CleanRows {
			for _, query := range []string{
				fmt.Sprintf(`UPDATE another SET run_id = 'r%[1]d', run_key = 'k%[1]d', root_run_id = 'r%[1]d'`, i),
				`INSERT INTO schedule_run SELECT * FROM another`,
			} {
				_, err := tx.ExecContext(ctx, query)
				must(t, err)
			}
		}
		must(t, tx.Commit())
		locks.Store(0)
		must(t, ops.New(c).Tasks().Delete(ctx, "import", "test"))
		if n := locks.Load(); n < 3 {
			t.Errorf("%d transactions under the lock row, want at least 3", n)
		}
		left, err := center.Column[int](ctx, c.DB(), `SELECT COUNT(*) FROM schedule_run
			WHERE state <> 'CANCELLED' OR finished_at IS NULL OR message <> 'cancelled'`)
		if must(t, err); left[0] > 0 {
			t.Errorf("%d runs are not cancelled", left[0])
		}
	})
}
