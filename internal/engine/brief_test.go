package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// The text of an error is cut where it enters, for an error of a batch, of Failures and of a select. What the error
// means is kept.
func TestErrorTextsAreCut(t *testing.T) {
	huge := errors.New(strings.Repeat("<div>502 Bad Gateway</div>é", 4000))
	bubble(t, func(t *testing.T, w *world) {
		d, m := newService(w, "a1", "a2", "a3"), newMemory()
		for _, item := range d.open {
			d.bad[item] = huge
		}
		d.bad["a3"] = processor.Permanent(huge)
		s := usual()
		s.ExecuteNumber = 1
		w.start(t, d, engine.Env{Items: failedItems{m}}, s, "a")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(m.records()); n != 3 {
			t.Fatalf("%d records, want 3", n)
		}
		for key, i := range m.records() {
			if n := len(i.LastError); n > 2100 || !strings.Contains(i.LastError, "bytes)") || i.Dead != (key == "a3") {
				t.Errorf("the record of %s has an error of %d bytes, dead: %t; want it cut, and a3 dead", key, n, i.Dead)
			}
		}
		if n := len(w.Stats().LastError.Error()); n > 2200 {
			t.Errorf("the last error has %d bytes", n)
		}
		for _, line := range w.log.Lines() {
			if err, ok := line.Fields["error"].(error); ok && len(err.Error()) > 2200 {
				t.Errorf("the log has an error of %d bytes: %s", len(err.Error()), line.Text)
			}
		}
	})
}

// An error that batch_timeout has caused names it.
func TestErrorNamesBatchTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{
			sel:  once(map[string][]string{"a": {"a1"}}),
			exec: func(ctx context.Context, _ []string) error { return nap(ctx, time.Hour) },
		}
		s := settings()
		s.BatchTimeout = 30 * time.Second
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := w.Stats().LastError; err == nil || !strings.Contains(err.Error(), "batch_timeout is 30s") ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the last error is %v, want it to name batch_timeout", err)
		}
	})
}
