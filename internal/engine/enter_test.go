package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// grantIn grants a queue whose items are in a data database.
func (w *world) grantIn(t *testing.T, q processor.Queue, total int) {
	t.Helper()
	q.Epoch = 7
	if err := w.Grant(q, total); err != nil {
		t.Fatal(err)
	}
}

// F11: a queue is not selected before its data database was entered. Others go on, and it is no outage. The queue tries
// again each second, however long that lasts.
func TestQueueIsSelectedAfterItsDatabaseIsEntered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away := errors.New("away")
		enter := func(_ context.Context, q processor.Queue, _ bool) (bool, error) {
			if q.ID == "b" && time.Since(w.begin) < 90*time.Second {
				return false, away
			}
			return true, nil
		}
		d := &dealer{}
		d.sel = func(_ context.Context, s processor.Selection) ([]string, error) {
			w.note("select %s", s.Queue.ID)
			return nil, nil
		}
		s := settings()
		s.SleepTimeNoData, s.ProbeMax = time.Minute, time.Minute
		w.start(t, d, engine.Env{Enter: enter, Databases: 2}, s)
		w.grantIn(t, processor.Queue{ID: "a", Database: "east"}, 2)
		w.grantIn(t, processor.Queue{ID: "b", Index: 1, Database: "west"}, 2)
		time.Sleep(100 * time.Second)
		w.expect(t, "0s select a", "1m0s select a", "1m30s select b")
		if w.Stats().OutageSince != (time.Time{}) {
			t.Error("a data database that is away counts as an outage")
		}
	})
}

// F11: the cursor of the earlier owner counts, as the raise has found it.
func TestCursorIsLoadedAfterTheRaise(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 5), newMemory()
		m.cursors["a"] = "a03"
		raised := false
		enter := func(context.Context, processor.Queue, bool) (bool, error) {
			first := !raised
			raised = true
			return first, nil
		}
		w.start(t, d, engine.Env{Enter: enter, Databases: 1, Cursors: cursorsOf{m}, Bind: bindCursor}, settings())
		w.grantIn(t, processor.Queue{ID: "a", Database: "east", Cursor: "a00"}, 1)
		time.Sleep(500 * time.Millisecond)
		w.expect(t, "0s a04-a04 a04")
	})
}

// F11: if the cursor cannot be read after the raise, a later select reads it. It is told of no raise.
func TestCursorIsLoadedAgainAfterTheRaise(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 5), newMemory()
		m.cursors["a"], m.err = "a03", errBroken
		entries := 0
		enter := func(context.Context, processor.Queue, bool) (bool, error) {
			if entries++; entries == 2 {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.err = nil
			}
			return entries == 1, nil
		}
		w.start(t, d, engine.Env{Enter: enter, Databases: 1, Cursors: cursorsOf{m}, Bind: bindCursor}, settings())
		w.grantIn(t, processor.Queue{ID: "a", Database: "east", Cursor: "a00"}, 1)
		time.Sleep(time.Minute)
		if got := strings.Fields(w.text()); !slices.Equal(got[1:], []string{"a04-a04", "a04"}) {
			t.Errorf("executed %q, want only what is behind the cursor a03", got)
		}
	})
}

// F11: a sweep waits for its data database, and does not fail.
func TestSweepWaitsForItsDatabase(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		enter := func(context.Context, processor.Queue, bool) (bool, error) {
			if time.Since(w.begin) < 10*time.Minute {
				return false, errors.New("away")
			}
			return true, nil
		}
		d := &dealer{sel: once(map[string][]string{})}
		s := settings()
		s.Runs = true
		w.start(t, d, engine.Env{Enter: enter, Databases: 1}, s)
		w.grantIn(t, processor.Queue{ID: "a", Database: "east", Run: &processor.Run{ID: "1", Attempt: 1}}, 1)
		time.Sleep(9 * time.Minute)
		if sweep := w.holding(t, "a").Sweep; sweep.Ended() {
			t.Fatalf("the sweep has ended: %+v", sweep)
		}
		time.Sleep(2 * time.Minute)
		if sweep := w.holding(t, "a").Sweep; !sweep.Swept {
			t.Fatalf("the sweep is not complete: %+v", sweep)
		}
	})
}

// F11: what a data database cannot do is refused when the worker starts.
func TestDealersThatDataDatabasesRefuse(t *testing.T) {
	runs := settings()
	runs.Runs = true
	for _, c := range []struct {
		dealer    processor.TaskDealer[string]
		settings  engine.Settings
		databases int
		want      string
	}{
		{&keyedCursored{}, runs, 1, "mode (RUN) keeps cursors in the roster"},
	} {
		_, err := engine.New(c.dealer, engine.Env{Databases: c.databases}, c.settings)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error that says %q", err, c.want)
		}
		if _, err := engine.New(c.dealer, engine.Env{Databases: c.databases - 1}, c.settings); err != nil {
			t.Errorf("with one database less: %v", err)
		}
	}
}
