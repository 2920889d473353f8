package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
)

// Items that fail are recorded in schedule_failed_item, survive their owner, die, and are tried again when an operator asks
// for it.
func TestFailedItems(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		k := &keyed{store{items: map[int]bool{}}}
		k.put(10)
		s := manager.Settings{Queues: 2, ExecuteNumber: 10, ItemMaxAttempts: 5, ItemRetry: time.Second, ItemRetryMax: 10 * time.Second}
		alerts := new(alertLog)
		a := cl.serveAlerted(alerts, k, s)
		time.Sleep(3 * time.Second)
		if k.left() != 3 {
			cl.Fatalf("%d items are left, want the 3 that fail", k.left())
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		var attempts int
		cl.scan("SELECT MIN(attempts) FROM schedule_failed_item WHERE state = 'RETRY'", &attempts)
		if attempts == 0 || attempts > 4 {
			cl.Fatalf("%d attempts, want 1 to 4", attempts)
		}
		cl.serveAlerted(alerts, k, s)
		time.Sleep(2 * time.Minute)
		items, err := cl.c.Items().Load(cl.Context(), "settle", "", 0)
		if err != nil || len(items) != 3 {
			cl.Fatalf("failed items are %+v (error %v), want 3", items, err)
		}
		for _, i := range items {
			if i.State != center.ItemDead || i.Attempts != 5 || i.LastError == "" {
				cl.Fatalf("the failed item is %+v, want State %v, Attempts 5 and LastError", i, center.ItemDead)
			}
		}
		if n, err := cl.c.Items().Retry(cl.Context(), "settle", "test", "a"); err != nil || n != 1 {
			cl.Fatalf("%d items are retried (error %v), want 1", n, err)
		}
		time.Sleep(5 * time.Minute) // it may be a probe, once in half a minute
		cl.scan("SELECT COUNT(*) FROM schedule_failed_item WHERE item_key = 'a' AND attempts = 5 AND state = 'DEAD'", &attempts)
		if attempts != 1 {
			cl.Fatal("the item that an operator retried was not executed again")
		}
	})
}

// Cursors survive their owners: each item of an append-only source is executed once.
func TestCursorsMove(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		c := &cursored{store{items: map[int]bool{}, takes: 50 * time.Millisecond}}
		c.put(101)
		s := manager.Settings{Queues: 2, ExecuteNumber: 3}
		alerts := new(alertLog)
		a := cl.serveAlerted(alerts, c, s)
		time.Sleep(300 * time.Millisecond)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		if c.left() < 20 {
			cl.Fatal("nothing is left for the next worker")
		}
		cl.serveAlerted(alerts, c, s)
		cl.serveAlerted(alerts, c, s)
		time.Sleep(time.Minute)
		if c.left() != 1 || c.doubled() { // 0 is not in the source
			cl.Fatalf("%d items are left, twice: %t, want 1, false", c.left(), c.doubled())
		}
	})
}
