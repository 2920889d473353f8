package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/processor"
)

// During an outage of an hour, the processor logs one line per minute and kind, with a count and an example. The lines
// are warnings, because no operator has to act.
func TestFailuresAreOneLinePerMinute(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		calls := 0
		d := &dealer{sel: func(context.Context, processor.Selection) ([]string, error) {
			calls++
			return nil, errBroken
		}}
		s := settings()
		s.ThreadNumber, s.RetryMax = 1, time.Second
		w.start(t, d, engine.Env{}, s, "a", "b", "c")
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		lines, told := 0, 0
		for _, e := range w.log.Lines() {
			if e.Level != slog.LevelWarn || e.Text != "select: failed" || e.Fields["error"] == nil || e.Fields["queue"] == nil {
				t.Errorf("line %s %q %v, want a warning with error and queue", e.Level, e.Text, e.Fields)
			}
			lines++
			if n, ok := e.Fields["count"].(int64); ok {
				told += int(n)
			} else {
				told++
			}
		}
		if lines != 61 || told < calls*9/10 {
			t.Errorf("%d lines report %d failures, want 61 lines and nearly %d", lines, told, calls)
		}
		w.stop() // it logs the other failures
		all := w.log.Lines()
		if n, _ := all[len(all)-1].Fields["count"].(int64); told+int(n) != calls {
			t.Errorf("%d of %d failures logged in the end", told+int(n), calls)
		}
	})
}

// The processor logs the death of an item as an error with its key. Many deaths are one line. After a quiet minute the
// next death is logged at once.
func TestDeadItemsAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 10)...)
		for _, item := range r.open {
			r.bad[item] = processor.Permanent(errBroken)
		}
		s := limited()
		s.ExecuteNumber = 1
		w.start(t, r, engine.Env{}, s, "a")
		dead := func() (list []logtest.Line) {
			synctest.Wait()
			for _, e := range w.log.Lines() {
				if e.Text == "item is dead" {
					list = append(list, e)
				}
			}
			return list
		}
		if list := dead(); len(list) != 1 || list[0].Level != slog.LevelError || list[0].Fields["key"] == nil {
			t.Errorf("lines: %v, want one error with the key of an item", list)
		}
		time.Sleep(61 * time.Second)
		if list := dead(); len(list) != 2 || list[1].Fields["count"] != int64(9) || list[1].Fields["key"] == nil {
			t.Errorf("lines: %v, want another for 9 items, with the key of one", list)
		}
		time.Sleep(2 * time.Minute)
		r.mu.Lock()
		r.open, r.bad["a99"] = []string{"a99"}, processor.Permanent(errBroken)
		r.mu.Unlock()
		time.Sleep(2 * time.Second)
		if list := dead(); len(list) != 3 || list[2].Fields["key"] != "a99" || list[2].Fields["count"] != nil {
			t.Errorf("lines: %v, want a third at once", list)
		}
	})
}
