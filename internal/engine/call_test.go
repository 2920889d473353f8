package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

var errBroken = errors.New("broken")

// failing returns a dealer whose queue a fails in Select or Execute with the error of bad, and whose queue b succeeds.
func failing(w *world, inSelect bool, bad func() error) *dealer {
	return &dealer{
		sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			w.note("%s", s.Queue.ID)
			if inSelect && s.Queue.ID == "a" {
				return nil, bad()
			}
			if s.Queue.ID == "b" {
				return nil, nil
			}
			return []string{"a1", "a2", "a3"}, nil
		},
		exec: func(context.Context, []string) error { return bad() },
	}
}

// pauses returns the times between the selects of queue a.
func (w *world) pauses() (all []time.Duration) {
	last := time.Duration(-1)
	for line := range strings.Lines(w.text()) {
		at, id, _ := strings.Cut(line, " ")
		if strings.TrimSpace(id) != "a" {
			continue
		}
		d, _ := time.ParseDuration(at)
		if last >= 0 {
			all = append(all, d-last)
		}
		last = d
	}
	return all
}

func TestFailuresPauseTheLaneWithGrowth(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := settings()
				s.RetryMax = 20 * time.Second
				s.SleepTimeNoData = 100 * time.Millisecond
				w.start(t, failing(w, inSelect, func() error { return errBroken }), engine.Env{}, s, "a", "b")
				time.Sleep(200 * time.Second)
				synctest.Wait()
				checkGrowth(t, w.pauses(), s)
				if others := strings.Count(w.text(), "b"); others != 2001 {
					t.Errorf("the other queue was selected %d times, want 2001", others)
				}
				if !errors.Is(w.Stats().LastError, errBroken) || !strings.Contains(w.Stats().LastError.Error(), "queue a") {
					t.Errorf("last error: %v, want %v of queue a", w.Stats().LastError, errBroken)
				}
				if age := time.Since(w.Stats().LastErrorTime); age < 0 || age > 2*s.RetryMax {
					t.Errorf("the last error is %s old, want at most %s", age, 2*s.RetryMax)
				}
			})
		})
	}
}

// checkGrowth expects pauses of 1, 2, 4, 8, 16, 20, 20 ... seconds with a jitter of one half, never above RetryMax.
func checkGrowth(t *testing.T, pauses []time.Duration, s engine.Settings) {
	t.Helper()
	if len(pauses) < 6 {
		t.Fatalf("only %d pauses, want at least 6", len(pauses))
	}
	different, nominal := false, s.Retry
	for i, d := range pauses {
		if d < nominal/2 || d > min(nominal*3/2+1, s.RetryMax) {
			t.Errorf("pause %d is %s, want about %s", i, d, nominal)
		}
		different = different || d != min(nominal, s.RetryMax)
		nominal = min(2*nominal, s.RetryMax)
	}
	if !different {
		t.Error("the pauses have no jitter")
	}
}

func TestSuccessResetsThePause(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &dealer{sel: func(context.Context, processor.Selection) ([]string, error) {
			w.note("a")
			if n++; n != 6 {
				return nil, errBroken
			}
			return []string{"a1"}, nil
		}}
		d.exec = func(context.Context, []string) error { return nil }
		w.start(t, d, engine.Env{}, settings(), "a")
		time.Sleep(2 * time.Minute)
		pauses := w.pauses()
		if pauses[4] < 8*time.Second || pauses[5] != 0 || pauses[6] > 1500*time.Millisecond {
			t.Errorf("pauses: %v, want 8 s or more at 4, 0 at 5, and 1.5 s or less at 6", pauses)
		}
	})
}

// The rest of a page is executed after a failed batch. The lane pauses once.
func TestPageGoesOnAfterAFailedBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3", "a4", "a5"}})}
		d.exec = func(_ context.Context, items []string) error {
			if items[0] != "a5" {
				return errBroken
			}
			return nil
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		if s := w.Stats(); s.FailureCount != 4 || s.SuccessCount != 1 || s.FetchCount != 1 {
			t.Errorf("stats: %+v, want FailureCount 4, SuccessCount 1, FetchCount 1", s)
		}
		if n := w.logged(slog.LevelWarn); n != 1 {
			t.Errorf("%d warnings logged for one page, want 1", n)
		}
		e := w.log.Lines()[0]
		if e.Fields["task_type"] != "settle" || e.Fields["own_sign"] != "TEST" || e.Fields["queue"] != "a" ||
			!errors.Is(e.Fields["error"].(error), errBroken) {
			t.Errorf("fields: %v, want task_type settle, own_sign TEST, queue a, err %v", e.Fields, errBroken)
		}
	})
}

func (w *world) logged(level slog.Level) (n int) {
	for _, e := range w.log.Lines() {
		if e.Level == level {
			n++
		}
	}
	return n
}

func TestPanicIsAFailureWithItsStack(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start(t, failing(w, inSelect, explode), engine.Env{}, settings(), "a", "b")
				synctest.Wait()
				if n := w.logged(slog.LevelError); n != 1 {
					t.Errorf("%d errors logged, want 1", n)
				}
				if stack := fmt.Sprint(w.log.Lines()[0].Fields["stack"]); !strings.Contains(stack, "explode") {
					t.Errorf("stack: %s, want explode in it", stack)
				}
				if err := w.Stats().LastError; err == nil || !strings.Contains(err.Error(), "panic: boom") {
					t.Errorf("last error: %v, want one with \"panic: boom\"", err)
				}
				time.Sleep(1600 * time.Millisecond)
				synctest.Wait()
				if len(w.pauses()) == 0 {
					t.Error("the queue is not tried again")
				}
			})
		})
	}
}

func explode() error { panic("boom") }

// nilError is an error without a value: a dealer returns a nil pointer of its own type, which is no nil error.
type nilError struct{ code int }

func (e *nilError) Error() string { return fmt.Sprint("code ", e.code) }

func typedNil() error {
	var e *nilError
	return e
}

// An error whose text cannot be asked for is a failure like a panic, also as that of an item.
func TestErrorThatPanicsIsAFailure(t *testing.T) {
	ofItem := func() error {
		var f processor.Failures
		for i := range 6 { // the error of a batch has the texts of its first items only
			f.Add(i, errors.New(strings.Repeat("x", i+1)))
		}
		f.Add(6, typedNil())
		return f.Err()
	}
	bubble(t, func(t *testing.T, w *world) {
		d := &keyed{}
		d.sel = func(_ context.Context, s processor.Selection) ([]string, error) {
			if s.Queue.ID == "a" {
				return nil, typedNil()
			}
			return []string{"b1", "b2", "b3", "b4", "b5", "b6", "b7"}, nil
		}
		d.exec = func(_ context.Context, items []string) error {
			if len(items) == 7 {
				return ofItem()
			}
			return typedNil()
		}
		s := settings()
		s.ExecuteNumber = 7
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(10 * time.Second)
		if s := w.Stats(); s.FailureCount < 8 || s.FetchCount < 4 || !strings.Contains(s.LastError.Error(), "panic: ") {
			t.Errorf("stats: %+v, want the items of queue b and the selects of queue a to have failed again", s)
		}
	})
}

// A dealer that ends its goroutine, as t.FailNow does, costs neither an executor nor a queue.
func TestGoexitIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := failing(w, false, func() error { runtime.Goexit(); return nil })
		s := settings()
		s.ThreadNumber = 1
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(1600 * time.Millisecond)
		if s := w.Stats(); s.FailureCount < 6 || s.FailureCount%3 != 0 || s.FetchCount < 4 {
			t.Errorf("stats: %+v, want FailureCount at least 6, a multiple of 3, FetchCount at least 4", s)
		}
	})
}

func TestOwnCancellationIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1"}, "c": {"c1", "c2", "c3"}})}
		plain := d.sel
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			if s.Queue.ID == "b" {
				return nil, nap(ctx, time.Hour)
			}
			return plain(ctx, s)
		}
		d.exec = func(ctx context.Context, _ []string) error {
			err := nap(ctx, time.Hour)
			w.note("%v", context.Cause(ctx))
			return err
		}
		w.start(t, d, engine.Env{}, settings(), "a", "b", "c")
		synctest.Wait()
		w.Revoke("a", errBroken)
		w.Revoke("a", nil)
		w.Revoke("b", nil)
		w.expect(t, "0s "+errBroken.Error())
		w.stop()
		if s := w.Stats(); s.FailureCount != 0 || s.SkipCount != 0 || s.LastError != nil || s.SuccessCount != 0 ||
			s.InFlight != 0 {
			t.Errorf("stats: %+v, want FailureCount 0, SkipCount 0, no LastError, SuccessCount 0, InFlight 0", s)
		}
		if n := w.logged(slog.LevelError) + w.logged(slog.LevelWarn); n != 0 {
			t.Errorf("logged: %v, want no errors and warnings", w.log.Lines())
		}
	})
}

// An error that means the loss of the queue is no failure. The queue stops until Resume or Revoke decides.
func TestLostQueueStops(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			w.note("select %s", s.Queue.ID)
			if s.Queue.ID == "b" {
				return nil, nil
			}
			return []string{"a1", "a2", "a3", "a4", "a5"}, nil
		}}
		d.exec = func(context.Context, []string) error { return fmt.Errorf("write: %w", errBroken) }
		s := settings()
		s.ThreadNumber = 1
		env := engine.Env{Lost: func(err error) bool { return errors.Is(err, errBroken) }}
		w.start(t, d, env, s, "a", "b")
		w.expect(t, "0s select a", "0s select b")
		if h := w.holding(t, "a"); !h.Lost || !h.Draining || !h.Drained || !w.signalled() {
			t.Errorf("holding: %+v, want Lost, Draining, Drained, a signal", h)
		}
		if s := w.Stats(); s.FailureCount != 0 || s.LastError != nil || s.SkipCount != 3 {
			t.Errorf("stats: %+v, want FailureCount 0, no LastError, SkipCount 3", s)
		}
		if w.logged(slog.LevelError) != 0 || w.logged(slog.LevelWarn) != 1 {
			t.Errorf("logged: %v, want no error and 1 warning", w.log.Lines())
		}
		time.Sleep(100 * time.Millisecond)
		w.Resume("a") // a wrong Resume must not cause a loop without pauses
		time.Sleep(300 * time.Millisecond)
		w.expect(t)
		time.Sleep(1200 * time.Millisecond)
		if h := w.holding(t, "a"); !h.Lost {
			t.Errorf("the queue was not tried again: %+v", h)
		}
		if !w.Forget("a") {
			t.Error("Forget returned false for a drained queue")
		}
	})
}
