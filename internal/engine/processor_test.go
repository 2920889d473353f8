package engine_test

import (
	"context"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

func TestNewRefusesBadSettings(t *testing.T) {
	for want, change := range map[string]func(*engine.Settings){
		"thread_number (0) must be at least 1":   func(s *engine.Settings) { s.ThreadNumber = 0 },
		"fetch_number (-1) must be at least 1":   func(s *engine.Settings) { s.FetchNumber = -1 },
		"execute_number (0) must be at least 1":  func(s *engine.Settings) { s.ExecuteNumber = 0 },
		"sleep_time_nodata (0s) must be above 0": func(s *engine.Settings) { s.SleepTimeNoData = 0 },
		"sleep_time_interval (-1s) must not be " +
			"negative": func(s *engine.Settings) { s.SleepTimeInterval = -time.Second },
		"item_retry (0s) must be above 0": func(s *engine.Settings) { s.Retry = 0 },
		"item_retry_max (1ms) must be at least item_retry " +
			"(1s)": func(s *engine.Settings) { s.RetryMax = time.Millisecond },
		"item_max_attempts (-1) must not be negative":            func(s *engine.Settings) { s.ItemMaxAttempts = -1 },
		"failing_after (-1) must not be negative":                func(s *engine.Settings) { s.FailingAfter = -1 },
		"rate_per_second (-1) must be a number and not negative": func(s *engine.Settings) { s.RatePerSecond = -1 },
		"rate_per_second (NaN) must be a number and not " +
			"negative": func(s *engine.Settings) { s.RatePerSecond = math.NaN() },
		"batch_timeout (-1s) must not be " +
			"negative": func(s *engine.Settings) { s.BatchTimeout = -time.Second },
		"settings of task type settle: thread_number (0) must be a": func(s *engine.Settings) { s.ThreadNumber = 0 },
	} {
		s := settings()
		change(&s)
		_, err := engine.New(&dealer{}, engine.Env{TaskType: "settle"}, s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := engine.New[string](nil, engine.Env{}, settings()); err == nil {
		t.Error("a nil dealer was accepted")
	}
}

// The end of the context of Run cancels running calls and drops unstarted items. Run waits for the calls.
func TestRunWaitsForCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w, "a")
		d.exec = func(ctx context.Context, items []string) error {
			<-ctx.Done()
			time.Sleep(time.Second) // takes its time
			w.note("%v", items)
			return ctx.Err()
		}
		s := settings()
		s.ThreadNumber = 2
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(10 * time.Second)
		w.stop()
		w.expect(t, "11s [a1 a2]", "11s [a3 a4]")
		if s := w.Stats(); s.SkipCount != 1 || s.FailureCount != 0 || s.InFlight != 0 || !s.OldestCallSince.IsZero() {
			t.Errorf("stats: %+v, want SkipCount 1, FailureCount 0, InFlight 0, OldestCallSince zero", s)
		}
		w.Drain("a")
		if !w.Forget("a") {
			t.Error("calls are in flight after Run")
		}
		if err := w.Run(t.Context()); err == nil {
			t.Error("a second Run returned no error")
		}
	})
}

// A page that a select returns after the end of the context is dropped.
func TestRunEndsDuringSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w)
		d.sel = func(context.Context, processor.Selection) ([]string, error) {
			time.Sleep(time.Second) // ignores its context
			return []string{"a1", "a2"}, nil
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		w.stop()
		w.expect(t)
		if s := w.Stats(); s.SkipCount != 2 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SkipCount 2, InFlight 0", s)
		}
	})
}

func TestGrantDrainAndResumeBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.before = func() {
			w.Drain("a")
			w.Resume("a")
		}
		w.start(t, slow(w, "a"), engine.Env{}, settings(), "a")
		w.expect(t, "0s [a1 a2]", "0s [a3 a4]", "0s [a5]")
	})
}

// The context of Execute has the values of the context of Run.
func TestContextDerivesFromRun(t *testing.T) {
	bubble(t, func(t *testing.T, _ *world) {
		got := make(chan any)
		d := &dealer{sel: once(map[string][]string{"a": {"a1"}}), exec: func(ctx context.Context, _ []string) error {
			got <- ctx.Value(key{})
			return nil
		}}
		p, err := engine.New(d, engine.Env{}, settings())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Grant(processor.Queue{ID: "a"}, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		if v := <-got; v != "value" {
			t.Errorf("the value is %v, want value", v)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestConfigureExecutors(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var now atomic.Int32
		d := slow(w)
		d.sel = func(_ context.Context, _ processor.Selection) ([]string, error) {
			return strings.Split("abcdefghij", ""), nil
		}
		d.exec = func(ctx context.Context, _ []string) error {
			now.Add(1)
			defer now.Add(-1)
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.ExecuteNumber = 2, 1
		w.start(t, d, engine.Env{}, s, "a")
		for _, n := range []int{2, 7, 1, 5} {
			s.ThreadNumber = n
			if err := w.Configure(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			if got := int(now.Load()); got != min(n, w.Stats().InFlight) {
				t.Errorf("%d executors at work, want %d", got, n)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}

func TestConfigureSizesAndSleeps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			w.note("select %d %s", s.Limit, s.Parameter)
			if n++; n == 1 {
				return nil, nil
			}
			return []string{"a1", "a2", "a3"}, nil
		}}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Second)
		}
		s := settings()
		s.SleepTimeNoData = time.Hour
		w.start(t, d, engine.Env{}, s, "a")
		w.expect(t, "0s select 10 ")
		s.SleepTimeNoData, s.SleepTimeInterval = 2*time.Second, time.Minute
		s.FetchNumber, s.ExecuteNumber, s.Parameter = 20, 3, "new"
		bad := s
		bad.ExecuteNumber = 0
		if err := w.Configure(bad); err == nil || !strings.Contains(err.Error(), "execute_number") {
			t.Errorf("error: %v, want one with \"execute_number\"", err)
		}
		time.Sleep(time.Second)
		w.expect(t) // the settings have not changed
		s.SleepTimeInterval = 0
		if err := w.Configure(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
		w.expect(t, "3s [a1 a2 a3]", "3s select 20 new")
	})
}

// A page costs some allocations, an item costs none.
func TestNoAllocationPerItem(t *testing.T) {
	racetest.Defer(t)
	e, k := &endless{}, newEndlessKeyed()
	for i := range 2000 {
		e.page = append(e.page, i)
	}
	inNotSleep := settings()
	inNotSleep.NotSleep = true
	for name, n := range map[string]float64{
		"sleep":    allocations(t, e, e, settings()),
		"notsleep": allocations(t, k, k.endless, inNotSleep),
	} {
		if n > 0.1 {
			t.Errorf("%s: %.3f allocations per item, want at most 0.1", name, n)
		}
	}
}

func allocations(t *testing.T, d processor.TaskDealer[int], e *endless, s engine.Settings) float64 {
	t.Helper()
	const items = 200_000
	ctx, cancel := context.WithCancel(t.Context())
	e.finish = cancel
	e.left.Store(items)
	s.FetchNumber, s.ExecuteNumber = 1000, 1
	p, err := engine.New(d, engine.Env{Bind: bind}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Grant(processor.Queue{ID: "a"}, 1); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / items
}
