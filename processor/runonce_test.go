package processor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
)

func TestRunOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, append(numbered("a", 30), numbered("b", 5)...)...)
		stats, err := processor.RunOnce(t.Context(), r,
			processor.TestOptions{Names: []string{"a", "b", "c"}, ExecuteNumber: 4, FetchNumber: 7})
		if err != nil || stats.SuccessCount != 35 || stats.InFlight != 0 || len(r.open) != 0 {
			t.Errorf("%v, stats %+v, open %v, want no error, SuccessCount 35, InFlight 0, none open", err, stats, r.open)
		}
	})
}

func TestRunOnceReturnsTheFailuresOfItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, notSleep := range []bool{false, true} {
			b := &bin{newRows(w, numbered("0", 30)...), nil}
			b.bad["017"] = errBroken
			o := processor.TestOptions{ExecuteNumber: 10, ThreadNumber: 2, NotSleep: notSleep}
			stats, err := processor.RunOnce(t.Context(), b, o)
			if !errors.Is(err, errBroken) || stats.SuccessCount != 29 || stats.DeadCount != 1 ||
				len(b.open) > 0 {
				t.Errorf("%v, stats %+v, open %v, want err %v, SuccessCount 29, DeadCount 1, none open", err, stats, b.open,
					errBroken)
			}
		}
	})
}

func TestRunOnceGivesUpAFailingQueue(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := failing(w, inSelect, explode)
				_, err := processor.RunOnce(t.Context(), d, processor.TestOptions{Names: []string{"a", "b"}})
				if err == nil || !strings.Contains(err.Error(), name+" ") || !strings.Contains(err.Error(), "panic: boom") {
					t.Errorf("the error is %v, want one with %s and panic: boom", err, name)
				}
			})
		})
	}
}

func TestRunOnceEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, _ *world) {
		d := &dealer{
			sel:  func(context.Context, processor.Selection) ([]string, error) { return []string{"a1"}, nil },
			exec: func(ctx context.Context, _ []string) error { return nap(ctx, time.Second) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stats, err := processor.RunOnce(ctx, d, processor.TestOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || stats.SuccessCount < 59 {
			t.Errorf("%v, stats %+v, want err %v, SuccessCount at least 59", err, stats, context.DeadlineExceeded)
		}
	})
}

func TestRunOnceReadsASourceToItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newTape(w, 20)
		d.bad["a13"] = errBroken
		o := processor.TestOptions{Names: []string{"a"}, Cursors: map[string]string{"a": "a02"}, ExecuteNumber: 5}
		stats, err := processor.RunOnce(t.Context(), d, o)
		if !errors.Is(err, errBroken) || stats.SuccessCount != 16 || stats.DeadCount != 1 {
			t.Errorf("%v, stats %+v, want err %v, SuccessCount 16, DeadCount 1", err, stats, errBroken)
		}
	})
}

func TestRunOnceRefuses(t *testing.T) {
	if _, err := processor.RunOnce(t.Context(), &dealer{}, processor.TestOptions{NotSleep: true}); err == nil {
		t.Error("NOTSLEEP was accepted without Keyed")
	}
	if _, err := processor.RunOnce(t.Context(), &dealer{}, processor.TestOptions{Names: []string{"a", "a"}}); err == nil {
		t.Error("the same queue was accepted twice")
	}
}
