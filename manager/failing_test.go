package manager_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// failer is a dealer whose batches fail while broken is true.
type failer struct {
	broken atomic.Bool
}

func (f *failer) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (f *failer) Execute(context.Context, []int) error {
	if f.broken.Load() {
		return errors.New("no such column: stat")
	}
	return nil
}

// failingServers returns the number of failing servers that operators see.
func (cl *cluster) failingServers() (n int) {
	cl.Helper()
	servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{TaskType: "settle"})
	if err != nil {
		cl.Fatal(err)
	}
	for _, s := range servers {
		if s.FailingSince != nil && !s.Overdue {
			n++
		}
	}
	return n
}

// A dealer does nothing but fail. Within a minute its status and the roster show it, and all servers together raise one
// alert. A success ends all of this. The workers are ready all the time: they can work.
func TestFailingDealerRaisesOneAlert(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		alerts, f := new(alertLog), new(failer)
		s := manager.Settings{Queues: 4, SleepTimeInterval: time.Second}
		first, second := cl.serveAlerted(alerts, f, s), cl.serveAlerted(alerts, f, s)
		time.Sleep(time.Minute)
		if n := cl.failingServers(); n != 0 {
			cl.Fatalf("a dealer that succeeds: %d failing servers", n)
		}
		f.broken.Store(true)
		time.Sleep(time.Minute)
		for _, w := range []*worker{first, second} {
			e := w.Status()[0].Failing
			if e == nil || e.TaskType != "settle" || e.Calls < 5 || time.Since(e.Since) > time.Minute || e.Err == nil || !strings.Contains(e.Error(), "no such column: stat") {
				cl.Fatalf("failing: %v, want at least 5 calls and the last error", e)
			}
			if err := w.Ready(); err != nil {
				cl.Fatalf("not ready: %v", err)
			}
		}
		if n := cl.failingServers(); n != 2 {
			cl.Fatalf("%d failing servers in the roster, want 2", n)
		}
		if kinds := alerts.kinds(); len(kinds) != 1 || kinds[0] != condition.Failing.Name {
			cl.Fatalf("alerts: %v, want one of %s", kinds, condition.Failing.Name)
		}
		if a := alerts.all[0]; !strings.Contains(a.Text, "calls have failed in ") || !strings.Contains(a.Text, "no such column: stat") || a.Server != "" {
			cl.Fatalf("the alert is %+v, want one for the roster with the last error", a)
		}
		time.Sleep(2*time.Hour + time.Minute)
		if n := len(alerts.kinds()); n != 1 {
			cl.Fatalf("%d alerts in two hours, want 1", n)
		}
		f.broken.Store(false)
		time.Sleep(6 * time.Minute) // item_retry_max
		if first.Status()[0].Failing != nil || second.Status()[0].Failing != nil || cl.failingServers() != 0 {
			cl.Fatalf("after a success: %d failing servers", cl.failingServers())
		}
	})
}

// halfHung is a dealer whose calls fail, except those of queue 0, which hang.
type halfHung struct{ failer }

func (f *halfHung) Execute(ctx context.Context, items []int) error {
	if items[0] == 0 {
		time.Sleep(time.Hour)
	}
	return f.failer.Execute(ctx, items)
}

// Calls that hang while all others fail have one cause with these: one alert names both.
func TestHungCallsOfAFailingDealerAreOneAlert(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts, f := new(alertLog), new(halfHung)
		f.broken.Store(true)
		s := manager.Settings{Queues: 4, SleepTimeInterval: time.Second, StallAfter: 20 * time.Second, DrainTimeout: time.Second}
		w := cl.serveAlerted(alerts, f, s)
		time.Sleep(10 * time.Minute)
		seen := w.Conditions()
		if len(seen) != 1 || seen[0].Kind != condition.Failing.Name || !strings.Contains(seen[0].Text, "execute of 1 item of queue 0 has been running for ") {
			cl.Errorf("conditions %+v, want one of %s that names the call", seen, condition.Failing.Name)
		}
	})
}

// After an outage of the database nothing has been called for longer than failures last until they are an alert. So they
// are none, unless something fails again.
func TestOutageOfTheDatabaseIsNoFailingDealer(t *testing.T) {
	for name, goesOn := range map[string]bool{"they end": false, "they go on": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				alerts, f := new(alertLog), new(failer)
				w := cl.serveAlerted(alerts, f, manager.Settings{Queues: 4, SleepTimeInterval: time.Second})
				time.Sleep(time.Minute)
				f.broken.Store(true)
				time.Sleep(8 * time.Second)
				block, err := cl.c.DB().BeginTx(cl.Context(), nil)
				if err != nil {
					cl.Fatal(err)
				}
				time.Sleep(40 * time.Second)
				f.broken.Store(goesOn)
				if w.Status()[0].Failing == nil {
					cl.Fatal("nothing had failed before the outage")
				}
				if err := block.Rollback(); err != nil {
					cl.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if got := len(alerts.ofKind(condition.Failing)); got != map[bool]int{true: 1}[goesOn] {
					cl.Errorf("%d alerts", got)
				}
			})
		})
	}
}

// S16: a second outage within the hour raises an alert of its own, also in a process that has started meanwhile. The
// server whose first failure comes late takes part in the outage of the other one.
func TestSecondOutageWithinTheHourRaisesAnAlert(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts, f, late := new(alertLog), new(failer), new(failer)
		s := manager.Settings{Queues: 4, SleepTimeInterval: time.Second, ItemRetryMax: 5 * time.Second}
		first := cl.serveAlerted(alerts, f, s)
		cl.serveAlerted(alerts, late, s)
		outage := func(want int, when string) {
			cl.Helper()
			f.broken.Store(true)
			time.Sleep(time.Minute)
			late.broken.Store(true)
			time.Sleep(3 * time.Minute)
			if n := len(alerts.ofKind(condition.Failing)); n != want {
				cl.Fatalf("%d alerts %s, want %d", n, when, want)
			}
			f.broken.Store(false)
			late.broken.Store(false)
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Minute)
		outage(1, "in the first outage")
		outage(2, "in the second outage within the hour")
		if err := cl.leave(first); err != nil {
			cl.Fatal(err)
		}
		f.broken.Store(true)
		cl.serveAlerted(alerts, f, s)
		outage(3, "in an outage that a new process finds")
	})
}

// S16: an outage is one episode although all processes are replaced while it lasts, and the next one is another.
func TestNewProcessKnowsTheOutage(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts, f := new(alertLog), new(failer)
		s := manager.Settings{Queues: 4, SleepTimeInterval: time.Second, ItemRetryMax: 5 * time.Second}
		f.broken.Store(true)
		for range 3 {
			w := cl.serveAlerted(alerts, f, s)
			time.Sleep(5 * time.Minute)
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			if n := len(alerts.ofKind(condition.Failing)); n != 1 {
				cl.Fatalf("%d alerts in one outage, want 1", n)
			}
		}
		time.Sleep(3 * time.Minute) // nothing tells that the outage lasts
		cl.serveAlerted(alerts, f, s)
		time.Sleep(time.Minute)
		if n := len(alerts.ofKind(condition.Failing)); n != 2 {
			cl.Fatalf("%d alerts after a pause without workers, want 2", n)
		}
	})
}

// A short outage raises no alert, and is no failing dealer for operators either: they judge alike.
func TestShortFailureIsNoFailingDealer(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts, f := new(alertLog), new(failer)
		w := cl.serveAlerted(alerts, f, manager.Settings{Queues: 4, SleepTimeInterval: time.Second, ItemRetryMax: 5 * time.Second})
		time.Sleep(time.Minute)
		f.broken.Store(true)
		time.Sleep(20 * time.Second)
		if n := cl.failingServers(); w.Status()[0].Failing != nil || n != 0 || w.Status()[0].Work.FailedCalls < 5 {
			cl.Fatalf("after 20 s of failures: failing %v, %d failing servers", w.Status()[0].Failing, n)
		}
		f.broken.Store(false)
		time.Sleep(time.Hour)
		if kinds := alerts.kinds(); len(kinds) > 0 || w.Status()[0].Failing != nil {
			cl.Fatalf("alerts %v, failing %v, want none", kinds, w.Status()[0].Failing)
		}
	})
}

// In mode RUN a dealer is failing during a run, and not after the run has failed.
func TestDealerIsFailingOnlyDuringARun(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		alerts, f := new(alertLog), new(failer)
		f.broken.Store(true)
		s := manager.Settings{Queues: 8, Mode: center.ModeRun, QueueRetry: 10 * time.Second, QueueMaxAttempts: 2, FailingAfter: 3, RunTimeout: time.Hour}
		w := cl.serveAlerted(alerts, f, s)
		time.Sleep(10 * time.Second)
		run := cl.submit("one")
		time.Sleep(time.Minute)
		if w.Status()[0].Failing == nil || cl.failingServers() != 1 {
			cl.Fatalf("during the run: %d failing servers", cl.failingServers())
		}
		time.Sleep(time.Hour) // the sweeps wait for a success until the deadline (X5)
		if r := cl.ends(run, time.Minute); r.State != runs.Failed {
			cl.Fatalf("the run is %s, want %s", r.State, runs.Failed)
		}
		time.Sleep(time.Minute)
		if w.Status()[0].Failing != nil || cl.failingServers() != 0 {
			cl.Fatalf("after the run: %d failing servers", cl.failingServers())
		}
	})
}
