package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// failingQueueDealer settles orders, unless the table away has their queue.
const failingQueueDealer = `
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: >-
          UPDATE orders SET state = CASE WHEN EXISTS (SELECT 1 FROM away WHERE away.queue_id = {{queue}}) THEN NULL ELSE 'SETTLED' END
          WHERE id IN ({{keys}})
        key: id
`

// X7: a worker goes on from what the last one has found about a queue that fails while others succeed. The doctor names
// it until its first success.
func TestWorkerKeepsWhichQueueFails(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		orders := 80
		db, dir := openOrders(t, url, orders)
		execute(t, db, "CREATE TABLE away (queue_id VARCHAR(9) PRIMARY KEY)")
		execute(t, db, "INSERT INTO away (queue_id) VALUES ('1')")
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+`
tasks:
  settle:
    queues: 4
    sleep_time_nodata: 50ms
    heartbeat_interval: 200ms
    item_retry_max: 2s
    item_max_attempts: 100000`+failingQueueDealer)
		first := startWorker(t, dir)
		eventually(t, "all orders of the other queues are settled, and those of queue 1 fail", func() bool {
			return count(t, db, "orders WHERE state = 'SETTLED'") == 60 && count(t, db, "schedule_failed_item WHERE queue_id = '1' AND attempts >= 2") == 20
		})
		first.signal(syscall.SIGTERM)
		if code := first.exit(); code != 0 {
			t.Fatalf("exit code %d after SIGTERM", code)
		}
		since := time.Now().Add(-20*time.Minute - 30*time.Second).UTC().Format("2006-01-02 15:04:05.000000") // ten minutes are too long for a test
		execute(t, db, "UPDATE schedule_queue SET failing_since = '"+since+"' WHERE queue_id = '1'")
		second := startWorker(t, dir)
		eventually(t, "the doctor names queue 1 while the others succeed", func() bool {
			orders += 4
			execute(t, db, fmt.Sprintf("INSERT INTO orders (id) VALUES (%d)", orders))
			stdout, _, _ := runRota(t, dir, "doctor", "settle")
			return strings.Contains(stdout, "queues whose calls have all failed, while others may succeed: 1 (20m") &&
				count(t, db, fmt.Sprintf("orders WHERE id = %d AND state = 'SETTLED'", orders)) == 1
		})
		execute(t, db, "DELETE FROM away")
		eventually(t, "a success ends it", func() bool { return count(t, db, "schedule_queue WHERE failing_since IS NOT NULL") == 0 })
		eventually(t, "all orders are settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
		second.signal(syscall.SIGTERM)
		if code := second.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}
