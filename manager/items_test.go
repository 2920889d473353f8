package manager_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// Items that fail are recorded in schedule_failed_item, survive their owner, die, and are tried again when an operator
// asks for it.
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
		items, err := ops.New(cl.c).Items().List(cl.Context(), ops.ItemFilter{TaskType: "settle"}, 10)
		if err != nil || len(items) != 3 {
			cl.Fatalf("failed items are %+v (error %v), want 3", items, err)
		}
		for _, i := range items {
			if i.State != ops.ItemDead || i.Attempts != 5 || i.LastError == "" {
				cl.Fatalf("the failed item is %+v, want State %v, Attempts 5 and LastError", i, ops.ItemDead)
			}
		}
		if n, err := ops.New(cl.c).Items().Retry(cl.Context(), "settle", "test", "a"); err != nil || n != 1 {
			cl.Fatalf("%d items are retried (error %v), want 1", n, err)
		}
		time.Sleep(5 * time.Minute) // the item may be a probe, once in half a minute
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

// F4: where a restore takes the last transactions back, an owner goes on from the cursor that is left, and not from the
// one that it remembers.
func TestCursorIsSetBack(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		c := &cursored{store{items: map[int]bool{}, takes: 50 * time.Millisecond}}
		c.put(101)
		alerts := new(alertLog)
		cl.serveAlerted(alerts, c, manager.Settings{Queues: 1, ExecuteNumber: 3})
		time.Sleep(320 * time.Millisecond) // a batch is under way
		if left := c.left(); left < 50 || left > 95 {
			cl.Fatalf("%d items are left, want some done and some not", left)
		}
		c.put(101)
		cl.exec("UPDATE schedule_queue SET cursor_value = ''")
		time.Sleep(time.Minute)
		if c.left() != 1 { // 0 is not in the source
			cl.Fatalf("%d items are left, want 1: the cursor has passed what was lost", c.left())
		}
		if len(alerts.kinds()) > 0 {
			cl.Errorf("alerts %v, want none", alerts.kinds())
		}
	})
}

// mortal is a dealer of items that always fail. The test says which queue has an item.
type mortal struct {
	mu       sync.Mutex
	queueOf  func(item int, total int) string
	executed map[int]int
}

func (m *mortal) Key(i int) string { return strings.Repeat("a long key ", 100) + strconv.Itoa(i) }

func (m *mortal) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range 4 {
		if m.queueOf(i, sel.Total) == sel.Queue.ID {
			items = append(items, i)
		}
	}
	return items, nil
}

func (m *mortal) Execute(_ context.Context, items []int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range items {
		m.executed[i]++
	}
	return processor.Permanent(errors.New("broken"))
}

// move says which queue has an item from now on.
func (m *mortal) move(queueOf func(item int, total int) string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queueOf = queueOf
}

// wantEachOnce expects that each item was executed once and is dead.
func (m *mortal) wantEachOnce(cl *cluster) {
	cl.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range 4 {
		if n := m.executed[i]; n != 1 {
			cl.Errorf("item %d, which is dead, was executed %d times, want once", i, n)
		}
	}
	var dead int
	if cl.scan("SELECT COUNT(*) FROM schedule_failed_item WHERE state = 'DEAD'", &dead); dead != 4 {
		cl.Errorf("%d items are dead, want 4", dead)
	}
}

// X6: a dead item is not executed again when another number of queues gives it another queue.
func TestDeadItemsStayDeadAfterARepartition(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		m := &mortal{executed: map[int]int{}, queueOf: func(item, total int) string { return strconv.Itoa(item % total) }}
		cl.serveAlerted(new(alertLog), m, manager.Settings{Queues: 1})
		time.Sleep(time.Minute)
		m.wantEachOnce(cl)
		for _, total := range []int{3, 2, 4} {
			if err := cl.c.Roster().Operator("test").Repartition(cl.Context(), "settle", total, 0); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(time.Minute)
			if owned, _ := cl.owners(); len(owned) != 1 || owned[0] != total {
				cl.Fatalf("queues of each owner: %v, want %d", owned, total)
			}
			m.wantEachOnce(cl)
		}
	})
}

// X6: a dead item is not executed again when its queue is removed and another queue gets it, whether that queue is new
// or was there before.
func TestDeadItemsStayDeadAfterARemoval(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		in := func(queue string) func(int, int) string { return func(int, int) string { return queue } }
		m := &mortal{executed: map[int]int{}, queueOf: in("south")}
		cl.serveAlerted(new(alertLog), m, manager.Settings{QueueNames: []string{"north", "south"}})
		time.Sleep(time.Minute)
		m.wantEachOnce(cl)
		if err := cl.c.Roster().Operator("test").RemoveQueue(cl.Context(), "settle", "south"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		m.move(in("north"))
		time.Sleep(time.Minute)
		m.wantEachOnce(cl)
		if err := cl.c.Roster().Operator("test").AddQueue(cl.Context(), "settle", "west", ""); err != nil {
			cl.Fatal(err)
		}
		m.move(in("west"))
		time.Sleep(time.Minute)
		m.wantEachOnce(cl)
	})
}

// The records of dead items go after ItemRetention. Until then they stay.
func TestItemRetention(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		m := &mortal{executed: map[int]int{}, queueOf: func(int, int) string { return "0" }}
		w, err := manager.New(cl.c, manager.Config{Grace: time.Second, ItemRetention: 30 * time.Minute}, manager.Serve("settle", m, manager.Settings{Queues: 1}))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(w)
		time.Sleep(time.Minute)
		m.move(func(int, int) string { return "none" }) // an operator has repaired the items
		time.Sleep(20 * time.Minute)
		m.wantEachOnce(cl)
		time.Sleep(15 * time.Minute)
		var left int
		if cl.scan("SELECT COUNT(*) FROM schedule_failed_item", &left); left != 0 {
			cl.Errorf("%d records are left, want none", left)
		}
	})
}

// X6: an item that died before the retention is executed again if a select still returns it, also by the worker for which
// it has died.
func TestItemsAfterTheirRetention(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		m := &mortal{executed: map[int]int{}, queueOf: func(int, int) string { return "0" }}
		w, err := manager.New(cl.c, manager.Config{Grace: time.Second, ItemRetention: 30 * time.Minute}, manager.Serve("settle", m, manager.Settings{Queues: 1}))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(w)
		time.Sleep(50 * time.Minute)
		m.mu.Lock()
		defer m.mu.Unlock()
		for item, n := range m.executed {
			if n != 2 {
				cl.Errorf("item %d was executed %d times in 50 minutes, want 2", item, n)
			}
		}
	})
}
