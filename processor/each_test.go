package processor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// eachWorld runs a processor of Each(f) until the test ends.
func eachWorld(t *testing.T, w *world, f func(context.Context, processor.Selection) error, env processor.Env) {
	t.Helper()
	env.TaskType = "settle"
	p, err := processor.New(processor.Each(f), env, settings())
	if err != nil {
		t.Fatal(err)
	}
	w.Processor = p
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestEachIsCalledOncePerQueueAndGrant(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		eachWorld(t, w, func(ctx context.Context, s processor.Selection) error {
			w.note("%s %s %d %v", s.Queue.ID, s.Run.Key, s.Run.Attempt, bound(ctx))
			return nil
		}, processor.Env{Bind: bind})
		w.grantRun(t, nightly(), "a", "b")
		w.swept(t, "a", 1, 0)
		w.swept(t, "b", 1, 0)
		w.Drain("a")
		w.Forget("a")
		w.grantRun(t, nightly(), "a") // the same run again, because its result was not recorded
		time.Sleep(time.Hour)
		w.swept(t, "a", 1, 0)
		w.expect(t, "0s a nightly 1 [a:7]", "0s a nightly 1 [a:7]", "0s b nightly 1 [b:7]")
	})
}

func TestEachRetriesAFailedCall(t *testing.T) {
	for name, fail := range map[string]func() error{"error": func() error { return errBroken }, "panic": explode} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				eachWorld(t, w, func(_ context.Context, s processor.Selection) error {
					w.note("%d", s.Run.Attempt)
					if s.Run.Attempt == 1 {
						return fail()
					}
					return nil
				}, processor.Env{})
				w.grantRun(t, nightly(), "a")
				time.Sleep(time.Hour)
				w.failedWith(t, "a", "execute 1 item of queue a")
				w.Drain("a")
				w.Forget("a")
				r := nightly()
				r.Attempt = 2
				w.grantRun(t, r, "a")
				w.swept(t, "a", 1, 0)
				w.expect(t, "0s 1", "1h0m0s 2")
			})
		})
	}
}

// A dropped or cancelled call does not count as the one call.
func TestEachRepeatsAnInterruptedCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		trusted := []bool{true, false} // one select, and one batch that is dropped
		env := processor.Env{Trusted: func() bool {
			if len(trusted) == 0 {
				return true
			}
			now := trusted[0]
			trusted = trusted[1:]
			return now
		}}
		eachWorld(t, w, func(ctx context.Context, _ processor.Selection) error {
			w.note("call")
			return nap(ctx, time.Minute)
		}, env)
		w.grantRun(t, nightly(), "a")
		synctest.Wait()
		w.expect(t)
		w.Wake()
		time.Sleep(time.Second)
		w.Revoke("a", nil)
		time.Sleep(time.Second)
		w.Resume("a")
		time.Sleep(time.Hour)
		w.expect(t, "0s call", "2s call")
		w.swept(t, "a", 1, 0)
	})
}

func TestEachIsRefusedInContinuous(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		eachWorld(t, w, func(context.Context, processor.Selection) error { w.note("call"); return nil }, processor.Env{})
		w.grant(t, "a")
		time.Sleep(time.Minute)
		w.expect(t)
		if err := w.Stats().LastError; err == nil ||
			!strings.Contains(err.Error(), "task type settle is made by Each, which needs mode RUN") {
			t.Errorf("error: %v, want one with \"task type settle is made by Each, which needs mode RUN\"", err)
		}
	})
	if _, err := processor.RunOnce(t.Context(), processor.Each(nil), processor.TestOptions{}); err == nil ||
		!strings.Contains(err.Error(), "mode RUN") {
		t.Errorf("error: %v, want one with \"mode RUN\"", err)
	}
}

func TestRunOnceSweeps(t *testing.T) {
	eachForm(t, 30, func(t *testing.T, _ *world, d processor.TaskDealer[string], s processor.Settings) {
		done := int64(29)
		if tape, ok := d.(*tape); ok {
			tape.bad["a07"], done = errBroken, 7 // the cursor does not pass the failing item
		}
		if rows, ok := d.(*rows); ok {
			rows.bad["a7"] = errBroken
		}
		o := processor.TestOptions{
			Names: []string{"a"}, ExecuteNumber: 4, FetchNumber: 7, NotSleep: s.NotSleep,
			Run: nightly(),
		}
		stats, err := processor.RunOnce(t.Context(), d, o)
		if _, ok := d.(plain); ok {
			if err != nil || stats.SuccessCount != 30 {
				t.Errorf("%v, stats %+v, want no error, SuccessCount 30", err, stats)
			}
			return
		}
		if !errors.Is(err, errBroken) || stats.SuccessCount != done || stats.DeadCount != 0 || stats.InFlight != 0 {
			t.Errorf("%v, stats %+v, want err %v, SuccessCount %v, DeadCount 0, InFlight 0", err, stats, errBroken, done)
		}
	})
}

func TestRunOnceReturnsTheErrorOfASweep(t *testing.T) {
	sel := func(page []string, err error) func(context.Context, processor.Selection) ([]string, error) {
		return func(context.Context, processor.Selection) ([]string, error) { return page, err }
	}
	exec := func(err error) func(context.Context, []string) error {
		return func(context.Context, []string) error { return err }
	}
	for name, c := range map[string]struct {
		d    dealer
		want string
	}{
		"select":      {dealer{sel(nil, errBroken), exec(nil)}, "select queue 0: broken"},
		"execute":     {dealer{sel([]string{"1"}, nil), exec(errBroken)}, "execute 1 item of queue 0: broken"},
		"no progress": {dealer{sel([]string{"1"}, nil), exec(nil)}, "no progress"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := processor.RunOnce(t.Context(), &c.d, processor.TestOptions{Run: nightly()})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error: %v, want one with %v, in one line", err, c.want)
			}
		})
	}
}
