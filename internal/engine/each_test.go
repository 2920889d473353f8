package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// eachWorld runs a processor of Each(f) until the test ends.
func eachWorld(t *testing.T, w *world, f func(context.Context, processor.Selection) error, env engine.Env) {
	t.Helper()
	env.TaskType = "settle"
	p, err := engine.New(processor.Each(f), env, settings())
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
		}, engine.Env{Bind: bind})
		w.grantRun(t, nightly(), "a", "b")
		w.swept(t, "a", 1, 0)
		w.swept(t, "b", 1, 0)
		w.Drain("a")
		w.Forget("a")
		w.grantRun(t, nightly(), "a") // the same run again, because its result was not recorded
		time.Sleep(time.Hour)
		w.swept(t, "a", 1, 0)
		w.expect(t, "0s a nightly 1 a:7", "0s a nightly 1 a:7", "0s b nightly 1 b:7")
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
				}, engine.Env{})
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
		env := engine.Env{Trusted: func() bool {
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
		eachWorld(t, w, func(context.Context, processor.Selection) error { w.note("call"); return nil }, engine.Env{})
		w.grant(t, "a")
		time.Sleep(time.Minute)
		w.expect(t)
		if err := w.Stats().LastError; err == nil ||
			!strings.Contains(err.Error(), "task type settle is made by Each, which needs mode RUN") {
			t.Errorf("error: %v, want one with \"task type settle is made by Each, which needs mode RUN\"", err)
		}
	})
}

// A dealer of Each serves several task types: none of them makes it forget what it has done for another.
func TestEachServesSeveralTaskTypes(t *testing.T) {
	calls := map[string]int{}
	d := processor.Each(func(_ context.Context, s processor.Selection) error { calls[s.TaskType]++; return nil })
	selections := map[string]processor.Selection{}
	for _, name := range []string{"import", "settle"} {
		run := nightly()
		selections[name] = processor.Selection{TaskType: name, Queue: processor.Queue{ID: "0", Run: run}, Run: run}
	}
	for range 2 {
		for _, name := range []string{"import", "settle"} {
			items, err := d.Select(t.Context(), selections[name])
			if err == nil && len(items) > 0 {
				err = d.Execute(t.Context(), items)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if calls["import"] != 1 || calls["settle"] != 1 {
		t.Errorf("calls by task type: %v, want one each", calls)
	}
}
