package manager_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// serveAlerted starts a worker that records its alerts.
func (cl *cluster) serveAlerted(alerts *alertLog, d processor.TaskDealer[int], s manager.Settings) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Alerter: alerts, Grace: time.Second}, manager.Serve("settle", d, s))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// A dealer that hangs raises one alert, and one more when all executors hang.
func TestStalledDealerRaisesAlerts(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		cl.serveAlerted(alerts, &work{cl: cl, takes: time.Hour, stub: true}, manager.Settings{Queues: 1, StallAfter: time.Minute, DrainTimeout: time.Second})
		time.Sleep(50 * time.Second)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts before stall_after: %v, want none", kinds)
		}
		time.Sleep(20 * time.Minute)
		kinds := alerts.kinds()
		slices.Sort(kinds)
		if !slices.Equal(kinds, []string{center.AlertNoFetch, center.AlertStalled}) {
			cl.Fatalf("alerts: %v, want %s and %s", kinds, center.AlertNoFetch, center.AlertStalled)
		}
		i := slices.IndexFunc(alerts.all, func(a manager.Alert) bool { return a.Kind == center.AlertStalled })
		if a := alerts.all[i]; !strings.HasPrefix(a.Text, "execute of 1 item of queue 0 has been running for 1m") || a.QueueID != "0" || a.Server != cl.uuid() {
			cl.Fatalf("the alert is %+v, want one of this server about queue 0, execute of 1 item, for 1m", a)
		}
	})
}

// A server that has nothing to do, or must not work, raises no alert.
func TestIdleServerRaisesNoAlert(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := manager.Settings{Queues: 2, StallAfter: time.Minute, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: time.Minute}
		cl.serveAlerted(alerts, idle{}, s)
		time.Sleep(10 * time.Minute)
		if err := cl.c.Tasks().Pause(cl.Context(), "settle", "test"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Hour)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts: %v, want none", kinds)
		}
	})
}

// keyed is a dealer with items that fail.
type keyed struct{ store }

// Key implements processor.Keyed.
func (k *keyed) Key(i int) string { return string(rune('a' + i)) }

// Execute fails for items below 3.
func (k *keyed) Execute(ctx context.Context, items []int) error {
	var failed processor.Failures
	for n, i := range items {
		if i < 3 {
			failed.Add(n, context.DeadlineExceeded)
			continue
		}
		if err := k.store.Execute(ctx, []int{i}); err != nil {
			return err
		}
	}
	return failed.Err()
}

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
		time.Sleep(time.Minute)
		cl.scan("SELECT COUNT(*) FROM schedule_failed_item WHERE item_key = 'a' AND attempts = 5 AND state = 'DEAD'", &attempts)
		if attempts != 1 {
			cl.Fatal("the item that an operator retried was not executed again")
		}
	})
}

// cursored reads a source in order.
type cursored struct{ store }

// Select returns the items after the cursor.
func (c *cursored) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	for i := 1; i <= 100 && len(items) < 10; i++ {
		if i%sel.Total == sel.Queue.Index && c.Cursor(i) > sel.Queue.Cursor {
			items = append(items, i)
		}
	}
	return items, nil
}

// Cursor implements processor.Cursored.
func (c *cursored) Cursor(i int) string { return string(rune(1000 + i)) }

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

// Bad settings are rejected while a worker runs, and the server's row says why until they are corrected.
func TestRejectedSettingsAreReported(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.serveAlerted(new(alertLog), idle{}, manager.Settings{Queues: 1})
		time.Sleep(5 * time.Second)
		for set, want := range map[string]string{
			"processor_type = 'NOTSLEEP'":            "settings rejected: settings of task type settle: processor_type (NOTSLEEP) needs",
			"permit_run_start_time = '0 0 0 30 2 ?'": "settings rejected: permit_run_start_time",
			"mode = 'RUN'":                           "settings rejected: mode (RUN) takes effect when the worker starts again",
			"thread_number = -1":                     "settings rejected: thread_number (-1) must be between 1 and 10000",
			"permit_run_start_time = '0 0 2 * * ?', time_zone = 'Nowhere'": "settings rejected: time_zone",
		} {
			cl.exec("UPDATE schedule_task_type SET " + set + ", version = version + 1")
			time.Sleep(5 * time.Second)
			if age := cl.lastError().LastErrorAge; age == nil || *age < 1 || *age > 5 {
				cl.Errorf("%s: the error is %v s old, want 1 s to 5 s", set, age)
			}
			var got string
			cl.scan("SELECT last_error FROM schedule_server", &got)
			if !strings.HasPrefix(got, want) {
				cl.Errorf("%s:\n got %s\nwant %s", set, got, want)
			}
			cl.exec("UPDATE schedule_task_type SET processor_type = 'SLEEP', mode = 'CONTINUOUS', permit_run_start_time = '', thread_number = 5, time_zone = 'UTC', version = version + 1")
			time.Sleep(5 * time.Second)
			if s := cl.lastError(); s.LastError != "" || s.LastErrorAt != nil {
				cl.Errorf("%s: the error is %q, at %v, want none", set, s.LastError, s.LastErrorAt)
			}
		}
	})
}

// lastError returns the row of the only server.
func (cl *cluster) lastError() center.ServerRecord {
	cl.Helper()
	servers, err := cl.c.Servers().List(cl.Context(), center.ServerFilter{})
	if err != nil || len(servers) != 1 {
		cl.Fatalf("servers are %+v (error %v), want one", servers, err)
	}
	return servers[0]
}

// A server's row has the settings that its program gave, and when its dealer failed.
func TestAServerReportsItself(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		given := manager.Settings{Queues: 1, ExecuteNumber: 3, ItemRetry: time.Hour, ItemRetryMax: time.Hour}
		cl.serveAlerted(new(alertLog), broken{}, given)
		time.Sleep(time.Minute)
		s := cl.lastError()
		want := map[string]string{"queues": "1", "execute_number": "3", "item_retry": "1h0m0s", "item_retry_max": "1h0m0s"}
		if diff := cmp.Diff(want, s.GivenSettings); diff != "" {
			cl.Errorf("(-want +got):\n%s", diff)
		}
		// The first select failed at once, and the queue is idle for an hour.
		if s.LastError == "" || s.LastErrorAge == nil || *s.LastErrorAge < 55 || *s.LastErrorAge > 61 {
			cl.Errorf("the last error is %q, %v s ago, want one 55 s to 61 s ago", s.LastError, s.LastErrorAge)
		}
	})
}

// broken cannot select.
type broken struct{ idle }

func (broken) Select(context.Context, processor.Selection) ([]int, error) {
	return nil, errors.New("no such table")
}
