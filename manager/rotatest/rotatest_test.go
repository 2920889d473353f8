package rotatest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/rotatest"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// The test of docs/worker.md.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rotatest.Open(t, rotatest.Options{})
		createOrders(r.DB(), 10, 7)
		r.Work(manager.Serve("settle", newSettle(r.DB()), manager.Settings{Queues: 4, ItemMaxAttempts: 3}))
		if n := count(r.DB(), `SELECT COUNT(*) FROM payments`); n != 9 {
			t.Errorf("%d payments, want 9", n)
		}
		if items := r.FailedItems("settle"); len(items) != 1 || items[0].State != "DEAD" {
			t.Errorf("failed items: %+v, want order 7, which is dead", items)
		}
	})
}

// In a bubble, an item dies after the pauses of production: 1 s, 2 s, 4 s ... up to 6 h.
func TestWorkWaitsForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := rotatest.Open(t, rotatest.Options{})
		createOrders(r.DB(), 10, 3, 4)
		r.Work(manager.Serve("settle", settle{r.DB()}, manager.Settings{Queues: 4, ItemMaxAttempts: 12}))
		items := r.FailedItems("settle")
		if len(items) != 2 || items[0].State != "DEAD" || items[0].Attempts != 12 || items[1].State != "DEAD" {
			t.Errorf("failed items: %+v, want two that are dead after 12 attempts", items)
		}
		if took := time.Since(began); took < 15*time.Minute {
			t.Errorf("it took %s of fake time, want the sum of the pauses", took)
		}
		if n := count(r.DB(), `SELECT COUNT(*) FROM payments`); n != 8 {
			t.Errorf("%d payments, want 8", n)
		}
	})
}

// Several workers share the queues; the others take over what TakeOver takes from one.
func TestTakeOverByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rotatest.Open(t, rotatest.Options{})
		createOrders(r.DB(), 50)
		other := r.Start(manager.Serve("settle", settle{r.DB()}, manager.Settings{Queues: 4}))
		d := takenOver{settle{r.DB()}, r, make(chan error, 1)}
		r.Start(manager.Serve("settle", d, manager.Settings{Queues: 4}))
		time.Sleep(time.Minute)
		other.Stop()
		time.Sleep(time.Minute)
		if n := count(r.DB(), `SELECT COUNT(*) FROM payments`); n != 50 {
			t.Errorf("%d payments, want 50", n)
		}
		if n := count(r.DB(), `SELECT COUNT(*) FROM (SELECT order_id FROM payments GROUP BY order_id HAVING COUNT(*) > 1) x`); n > 0 {
			t.Errorf("%d orders were paid twice", n)
		}
	})
}

// TakeOver needs the context of Execute.
func TestTakeOverOutsideOfExecute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rotatest.Open(t, rotatest.Options{})
		if err := r.TakeOver(t.Context()); err == nil || !strings.Contains(err.Error(), "carries no batch") {
			t.Errorf("got %v, want that the context carries no batch", err)
		}
	})
}

// On each kind of database a test finds an empty roster, and leaves one.
func TestOwnDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		for i := range 2 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				r := rotatest.Open(t, rotatest.Options{Database: anydb.URL(url)})
				d := &counted{left: 20}
				r.Work(manager.Serve("count", d, manager.Settings{Queues: 1}))
				if left := d.number(); left != 0 {
					t.Errorf("%d items left, want none", left)
				}
			})
		}
	})
}

// counted is a dealer whose items are in memory.
type counted struct{ left int64 }

func (c *counted) Select(context.Context, processor.Selection) ([]int64, error) {
	if n := c.number(); n > 0 {
		return []int64{n}, nil
	}
	return nil, nil
}

func (c *counted) Execute(context.Context, []int64) error {
	atomic.AddInt64(&c.left, -1)
	return nil
}

func (c *counted) number() int64 { return atomic.LoadInt64(&c.left) }

// failing is a TB that keeps the first failure, and ends the goroutine then.
type failing struct {
	*testing.T
	failure chan string
}

func (f failing) Fatal(args ...any) { f.fail(fmt.Sprint(args...)) }

func (f failing) Fatalf(format string, args ...any) { f.fail(fmt.Sprintf(format, args...)) }

func (f failing) fail(text string) {
	f.failure <- text
	f.SkipNow() // ends the test's goroutine without a failure
}

// failureOf runs f as a test, in a bubble, and returns why it failed.
func failureOf(t *testing.T, o rotatest.Options, f func(*rotatest.Roster)) string {
	t.Helper()
	tb := failing{failure: make(chan string, 1)}
	t.Run("failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := tb
			tb.T = t
			f(rotatest.Open(tb, o))
		})
	})
	select {
	case text := <-tb.failure:
		return text
	default:
		return ""
	}
}

// What cannot end fails the test, and says why.
func TestFailures(t *testing.T) {
	unkeyed := func(r *rotatest.Roster) processor.TaskDealer[int64] {
		return struct{ processor.TaskDealer[int64] }{settle{r.DB()}}
	}
	tests := map[string]struct {
		run  func(r *rotatest.Roster)
		want []string
	}{
		"work": {func(r *rotatest.Roster) {
			createOrders(r.DB(), 10, 3)
			r.Work(manager.Serve("settle", unkeyed(r), manager.Settings{Queues: 1}))
		}, []string{"after 2h0m0s there is work left; last error of settle", "the amount is negative"}},
		"select": {func(r *rotatest.Roster) {
			r.Work(manager.Serve("settle", settle{r.DB()}, manager.Settings{Queues: 1}))
		}, []string{"there is work left; last error of settle", "no such table"}},
		"settings": {func(r *rotatest.Roster) {
			r.Work(manager.Serve("settle", settle{r.DB()}, manager.Settings{}))
		}, []string{"task settle", "queues"}},
		"run": {func(r *rotatest.Roster) {
			r.Run("other", "key", "", manager.Serve("settle", settle{r.DB()}, manager.Settings{Queues: 1}))
		}, []string{"other"}},
		"key of before": {func(r *rotatest.Roster) {
			nightly := manager.Settings{Queues: 1, Mode: center.ModeRun}
			createOrders(r.DB(), 10)
			if run := r.Run("settle", "monday", "", manager.Serve("settle", settle{r.DB()}, nightly)); run.State != runs.Success {
				t.Errorf("the first run is %s", run.State)
			}
			broken := struct{ processor.TaskDealer[int64] }{}
			r.Run("settle", "monday", "", manager.Serve("settle", broken, nightly))
		}, []string{`key "monday" was submitted before`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := failureOf(t, rotatest.Options{Timeout: 2 * time.Hour}, test.run)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
		})
	}
}

// The cleanup deletes a dependant before its upstream, whatever their names are.
func TestCleanupOfDependants(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/rota.db"
	for range 2 { // the second finds no task type
		t.Run("roster", func(t *testing.T) {
			r := rotatest.Open(t, rotatest.Options{Database: anydb.URL(url)})
			after := manager.Settings{Queues: 1, Mode: center.ModeRun}
			upstream := manager.Serve("a", &counted{}, after)
			after.After = []runs.After{{Upstream: "a"}}
			middle := manager.Serve("b", &counted{}, after)
			after.After = []runs.After{{Upstream: "b"}}
			r.Run("a", "", "", upstream, middle, manager.Serve("c", &counted{}, after))
		})
	}
}

// A database in which a roster works is refused.
func TestDatabaseWithTaskTypes(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/rota.db"
	first := rotatest.Open(t, rotatest.Options{Database: anydb.URL(url)})
	first.Work(manager.Serve("count", &counted{}, manager.Settings{Queues: 1}))
	got := failureOf(t, rotatest.Options{Database: anydb.URL(url)}, func(*rotatest.Roster) {})
	if want := "it has task types (count)"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}
