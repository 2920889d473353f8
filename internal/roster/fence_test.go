package roster_test

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// F3: where share locks do not reach every writer, the fence writes, and batches of one queue run one after another.
func TestFenceByWriting(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		c.Roster().DB.Dialect = c.Roster().DB.WithWriteFence()
		centertest.Fence(t, c)
	})
}

// F1: a fence locks the queue of its batch and no other. InnoDB locks what a statement reads, and with a condition on
// the owner the optimizer may read an index of the owners.
func TestFenceLocksItsOwnQueueOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			c := centertest.Open(t, testdb.URL(t, kind), center.Options{})
			for _, queues := range []int{2, 16, 100} {
				task := fmt.Sprint("settle", queues)
				if _, err := ops.New(c).Tasks().Define(t.Context(), task, center.Settings{Queues: queues}); err != nil {
					t.Fatal(err)
				}
				centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A' WHERE task_type = '"+task+"'")
				if got := unlockedQueues(t, c, task); got != queues-1 {
					t.Errorf("unlocked queues while 1 of %d is fenced: got %d, want %d", queues, got, queues-1)
				}
			}
		})
	}
}

// unlockedQueues fences a queue of a task type and returns how many queues another transaction can lock.
func unlockedQueues(t *testing.T, c *center.Center, task string) int {
	t.Helper()
	ctx := c.Bind(t.Context(), center.Batch{
		Server: "A", TaskType: task, Queue: center.QueueEpoch{ID: "1", Epoch: 1},
	})
	tx, err := c.DB().BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := center.Fence(ctx, tx); err != nil {
		t.Fatal(err)
	}
	return centertest.CountRows(t, c, "SELECT queue_id FROM schedule_queue WHERE task_type = '"+task+"'"+
		" FOR UPDATE SKIP LOCKED")
}
