package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// hooked returns hooks that note their arguments and mark the contexts.
func hooked(w *world) processor.Hooks {
	return processor.Hooks{
		Select: func(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
			return context.WithValue(ctx, hookKey{}, "s"), func(items int, err error) {
				w.note("selected %s: %d %v", s.Queue.ID, items, err)
			}
		},
		Execute: func(ctx context.Context, b processor.Batch) (context.Context, func(processor.Result)) {
			return context.WithValue(ctx, hookKey{}, "e"), func(r processor.Result) {
				w.note("executed %s %s %s %d: %s, failed %d, dead %d, %v in %s",
					b.TaskType, b.OwnSign, b.Queue.ID, b.Items, r.Outcome, r.Failed, r.Dead, r.Err, r.Took)
			}
		},
	}
}

type hookKey struct{}

func TestHooks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &keyed{}
		pages := once(map[string][]string{"a": {"a1", "a2", "a3"}})
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			if ctx.Value(hookKey{}) != "s" {
				t.Error("Select did not get the context of its hook")
			}
			return pages(ctx, s)
		}
		d.exec = func(ctx context.Context, items []string) error {
			if ctx.Value(hookKey{}) != "e" || bound(ctx) == "" {
				t.Error("Execute did not get the context of its hook")
			}
			if items[0] == "a3" {
				time.Sleep(time.Second)
				return processor.Permanent(errBroken)
			}
			return nil
		}
		w.start(t, d, engine.Env{Hooks: []processor.Hooks{hooked(w)}, Bind: bind}, settings(), "a")
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "0s executed settle TEST a 2: done, failed 0, dead 0, <nil> in 0s", "0s selected a: 3 <nil>",
			"1s executed settle TEST a 1: failed, failed 1, dead 1, broken in 1s", "1s selected a: 0 <nil>")
	})
}

// The first hooks are outside of the others, which get its context and end before it.
func TestHooksAreNested(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var calls []string
		begin := func(ctx context.Context, call, name string) (context.Context, func()) {
			outer, _ := ctx.Value(hookKey{}).(string)
			calls = append(calls, call+outer+name)
			return context.WithValue(ctx, hookKey{}, outer+name), func() { calls = append(calls, "end of "+call+name) }
		}
		hooks := []processor.Hooks{{}}
		for _, name := range []string{"1", "2"} {
			hooks = append(hooks, processor.Hooks{
				Select: func(ctx context.Context, _ processor.Selection) (context.Context, func(int, error)) {
					ctx, end := begin(ctx, "select ", name)
					return ctx, func(int, error) { end() }
				},
				Execute: func(ctx context.Context, _ processor.Batch) (context.Context, func(processor.Result)) {
					ctx, end := begin(ctx, "execute ", name)
					return ctx, func(processor.Result) { end() }
				},
			})
		}
		d := &dealer{sel: once(map[string][]string{"a": {"a1"}})}
		d.exec = func(ctx context.Context, _ []string) error {
			calls = append(calls, fmt.Sprint(ctx.Value(hookKey{})))
			return nil
		}
		w.start(t, d, engine.Env{Hooks: hooks}, settings(), "a")
		synctest.Wait()
		if want := []string{
			"select 1", "select 12", "end of select 2", "end of select 1",
			"execute 1", "execute 12", "12", "end of execute 2", "end of execute 1",
		}; !slices.Equal(calls[:len(want)], want) {
			t.Errorf("the calls are %q, want first %q", calls, want)
		}
	})
}

// traced is a dealer whose items have trace contexts, except those that end in 2.
type traced struct{ dealer }

func (*traced) TraceParent(item string) string {
	switch item {
	case "a2":
		return ""
	case "a3":
		panic("boom")
	}
	return "of " + item
}

func TestHooksGetTheTraceContextsOfItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &traced{dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3"}})}}
		d.exec = func(context.Context, []string) error { return nil }
		hooks := processor.Hooks{
			Execute: func(ctx context.Context, b processor.Batch) (context.Context, func(processor.Result)) {
				w.note("%d items, traces %q", b.Items, b.TraceParents)
				return ctx, nil
			},
		}
		w.start(t, d, engine.Env{Hooks: []processor.Hooks{hooks}}, settings(), "a")
		time.Sleep(500 * time.Millisecond)
		w.expect(t, `0s 2 items, traces ["of a1"]`)
		if s := w.Stats(); s.SuccessCount != 2 || s.FailureCount != 1 || !strings.Contains(s.LastError.Error(), "boom") {
			t.Errorf("stats %+v, want 2 done, and 1 failed with the panic", s)
		}
	})
}

// The end function of a hook is called even if the call panics.
func TestHooksEndWithPanics(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &dealer{sel: func(context.Context, processor.Selection) ([]string, error) {
			if n++; n == 1 {
				return []string{"a1"}, nil
			}
			panic("boom")
		}}
		d.exec = func(context.Context, []string) error { panic("boom") }
		w.start(t, d, engine.Env{Hooks: []processor.Hooks{hooked(w)}}, settings(), "a")
		time.Sleep(1600 * time.Millisecond)
		synctest.Wait()
		var what []string
		for _, line := range w.journal {
			_, text, _ := cut(line)
			what = append(what, text)
		}
		if want := []string{
			"selected a: 1 <nil>", "executed settle TEST a 1: failed, failed 1, dead 0, panic: boom in 0s",
			"selected a: 0 panic: boom",
		}; !slices.Equal(what[:3], want) {
			t.Errorf("journal: %v, want %v first", what, want)
		}
	})
}

func cut(line string) (at, text string, ok bool) {
	var d string
	if _, err := fmt.Sscan(line, &d); err != nil {
		return "", "", false
	}
	return d, line[len(d)+1:], true
}

// A call that takes longer than BatchTimeout fails, unless it ignores its context and succeeds.
func TestBatchTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.takes = time.Hour
		s := limited()
		s.BatchTimeout, s.ItemMaxAttempts = 5*time.Second, 1
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := w.Stats(); s.FailureCount != 1 || s.DeadCount != 1 || !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("stats: %+v, want FailureCount 1, DeadCount 1, LastError %v", s, context.DeadlineExceeded)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(ctx context.Context, _ processor.Selection) ([]string, error) {
			return nil,
				nap(ctx, time.Hour)
		}}
		s := settings()
		s.BatchTimeout = 5 * time.Second
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if s := w.Stats(); !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("stats: %+v, want LastError %v", s, context.DeadlineExceeded)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1"}})}
		d.exec = func(context.Context, []string) error { time.Sleep(time.Minute); return nil }
		s := settings()
		s.BatchTimeout = 5 * time.Second
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := w.Stats(); s.SuccessCount != 1 {
			t.Errorf("stats: %+v, want SuccessCount 1", s)
		}
	})
}

func TestStalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			if s.Queue.ID == "b" {
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			return []string{"a1"}, nil
		}}
		d.exec = func(context.Context, []string) error { time.Sleep(time.Minute); return nil }
		w.start(t, d, engine.Env{}, settings(), "a")
		time.Sleep(10 * time.Second)
		w.grant(t, "b")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		all := w.Stalled(5 * time.Second)
		if len(all) != 2 || all[0].Select || all[0].Items != 1 || !all[1].Select ||
			!slices.Equal(all[1].Queues, []string{"b"}) {
			t.Errorf("stalled: %+v, want a batch of 1 item, then a select of queue b", all)
		}
		if all = w.Stalled(15 * time.Second); len(all) != 1 || all[0].Since != w.begin {
			t.Errorf("stalled: %+v, want one since %v", all, w.begin)
		}
	})
}

func TestEmptySince(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var page atomic.Pointer[[]string]
		page.Store(&[]string{"a1"})
		d := &dealer{sel: func(ctx context.Context, _ processor.Selection) ([]string, error) {
			return *page.Load(), nap(ctx, 100*time.Millisecond)
		}}
		d.exec = func(_ context.Context, items []string) error {
			if items[0] == "a1" {
				page.Store(&[]string{})
			}
			return nil
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		if !w.holding(t, "a").EmptySince.IsZero() || len(w.Emptied()) != 0 {
			t.Error("the queue counts as empty before its first select")
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if at := w.holding(t, "a").EmptySince.Sub(w.begin); at != 100*time.Millisecond || len(w.Emptied()) != 1 {
			t.Errorf("empty since %s, want 100ms and a signal", at)
		}
		<-w.Emptied()
		time.Sleep(time.Second)
		synctest.Wait()
		if at := w.holding(t, "a").EmptySince.Sub(w.begin); at != 1200*time.Millisecond || len(w.Emptied()) != 0 {
			t.Errorf("empty since %s, want 1.2s and no signal", at) // the last empty select counts, but sends no new signal
		}
		page.Store(&[]string{"a2"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !w.holding(t, "a").EmptySince.IsZero() {
			t.Error("the queue counts as empty after a select found items")
		}
	})
}
