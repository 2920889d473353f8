package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// worn counts up the rows of its queues, again and again. An item is the row and its count: a dealer that returns an
// item that it has executed is paused (NO_EFFECT).
type worn struct{ db *sql.DB }

const wornRows = 9

func (w worn) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	query := fmt.Sprintf(`SELECT %d * n + id FROM items WHERE id = %d`, wornRows, s.Queue.Index)
	return center.Column[int64](ctx, w.db, query)
}

func (w worn) Execute(ctx context.Context, items []int64) error {
	return center.InTx(ctx, w.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE items SET n = n + 1 WHERE id = %d`, items[0]%wornRows))
		return err
	})
}

// F10: the connections of a process lead to the database over two ways, and one of them freezes: it takes connections
// and says nothing. Heartbeats go on over the other one. Each queue works on, although it has waited for a reply.
func TestAFrozenWayStopsNoQueue(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		const queues = wornRows
		freezing, frozen := testdb.Through(t, url)
		other, _ := testdb.Through(t, url)
		balanced, _ := testdb.Balanced(t, freezing, other)
		settings := manager.Settings{
			Queues: queues, ThreadNumber: queues, SleepTimeNoData: 10 * time.Millisecond,
			ItemRetry: 50 * time.Millisecond, ItemRetryMax: 400 * time.Millisecond,
			HeartbeatInterval: 500 * time.Millisecond, JudgeDeadInterval: time.Minute,
		}
		near := startProcess(t, url, nothing, settings) // creates the tables, and perhaps the settings
		near.stop()
		if err := <-near.ended; err != nil {
			t.Fatal(err)
		}
		var rows []string
		for i := range queues {
			rows = append(rows, fmt.Sprintf("(%d, 0)", i))
		}
		for _, statement := range []string{
			`CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL)`,
			`INSERT INTO items (id, n) VALUES ` + strings.Join(rows, ", "),
		} {
			if _, err := near.c.DB().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		logger := slog.New(slog.NewTextHandler(t.Output(), nil)) // seen if the test fails
		worker := startOpened(t, balanced, center.Options{ReplyTimeout: 3 * time.Second, Logger: logger},
			func(c *center.Center) processor.TaskDealer[int64] { return worn{c.DB()} },
			settings)
		t.Cleanup(func() { // before the end of the test, because the process logs
			worker.stop()
			if err := <-worker.ended; err != nil { // nil again after the test has read it
				t.Log(err)
			}
		})
		works := func(what string) {
			t.Helper()
			before := make([]int, queues)
			for i := range before {
				before[i] = near.count(t, fmt.Sprintf(`SELECT n FROM items WHERE id = %d`, i))
			}
			for i := range before {
				until(t, fmt.Sprintf("queue %d works on %s", i, what), func() bool {
					return near.count(t, fmt.Sprintf(`SELECT n FROM items WHERE id = %d`, i)) > before[i]+3
				})
			}
		}
		works("before")
		frozen.Swallow(true)
		works("over the other way")
		if n := near.count(t, `SELECT COUNT(*) FROM schedule_server_history WHERE reason = 'EXPIRED'`); n != 0 {
			t.Errorf("%d servers have expired, want none: heartbeats do not go on", n)
		}
		frozen.Swallow(false)
		frozen.Cut()
		works("again")
		worker.stop()
		if err := <-worker.ended; err != nil {
			t.Error(err)
		}
	})
}
