package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dealer is a TaskDealer made of functions. Items are named after their queue: "a1" is an item of queue a.
type dealer struct {
	sel  func(ctx context.Context, s processor.Selection) ([]string, error)
	exec func(ctx context.Context, items []string) error
}

func (d *dealer) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return d.sel(ctx, s)
}

func (d *dealer) Execute(ctx context.Context, items []string) error { return d.exec(ctx, items) }

// world runs a processor in a bubble and keeps a journal of events with their times.
type world struct {
	*engine.Processor
	log    *logtest.Log
	begin  time.Time
	before func() // what start calls between the grants and Run; nil means nothing
	stop   func() // ends Run and waits for it

	mu      sync.Mutex
	journal []string
}

// bubble runs f in a synctest bubble with a world that is not started yet.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &world{begin: time.Now()}) })
}

// start creates the processor of d, grants the queues, and runs the processor until the test ends.
func (w *world) start(t *testing.T, d processor.TaskDealer[string], env engine.Env, s engine.Settings,
	ids ...string,
) {
	t.Helper()
	env.Logger, w.log = logtest.New(slog.LevelDebug)
	env.TaskType, env.OwnSign = "settle", "TEST"
	p, err := engine.New(d, env, s)
	if err != nil {
		t.Fatal(err)
	}
	w.Processor = p
	w.grant(t, ids...)
	if w.before != nil {
		w.before()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.stop)
}

// settings returns typical settings: pages of ten items, batches of two.
func settings() engine.Settings {
	return engine.Settings{
		ThreadNumber: 4, FetchNumber: 10, ExecuteNumber: 2,
		SleepTimeNoData: time.Second, Retry: time.Second, RetryFactor: 2, RetryJitter: 0.5, RetryMax: time.Minute,
	}
}

// grant grants queues a, b, ... at once.
func (w *world) grant(t *testing.T, ids ...string) {
	t.Helper()
	for i, id := range ids {
		if err := w.Grant(processor.Queue{ID: id, Index: i, Epoch: 7}, len(ids)); err != nil {
			t.Fatal(err)
		}
	}
}

// note adds a line to the journal, with the time since the start of the test.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprint(time.Since(w.begin), " ", fmt.Sprintf(format, args...)))
}

// text returns the whole journal, one line per note.
func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.journal, "\n")
}

// expect waits until all goroutines are blocked. It compares the journal with lines, sorts the notes of one instant,
// and clears the journal.
func (w *world) expect(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	instant := func(line string) time.Duration {
		d, err := time.ParseDuration(strings.Fields(line)[0])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	slices.SortStableFunc(w.journal, func(a, b string) int {
		if x, y := instant(a), instant(b); x != y {
			return int(x - y)
		}
		return strings.Compare(a, b)
	})
	if !slices.Equal(w.journal, lines) {
		t.Errorf("journal:\n\t%s\nwant:\n\t%s", strings.Join(w.journal, "\n\t"), strings.Join(lines, "\n\t"))
	}
	w.journal = nil
}

// once returns a Select that returns the items of each queue in one page, and then nothing.
func once(pages map[string][]string) func(context.Context, processor.Selection) ([]string, error) {
	var mu sync.Mutex
	return func(_ context.Context, s processor.Selection) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		page := pages[s.Queue.ID]
		delete(pages, s.Queue.ID)
		return page, nil
	}
}

// holding returns the state of one queue.
func (w *world) holding(t *testing.T, id string) engine.QueueState {
	t.Helper()
	for _, h := range w.Queues() {
		if h.Queue.ID == id {
			return h
		}
	}
	t.Fatalf("queue %s is not held", id)
	return engine.QueueState{}
}

// signalled reports whether Drained has a value, and receives it.
func (w *world) signalled() bool {
	select {
	case <-w.Drained():
		return true
	default:
		return false
	}
}

// nap simulates the work of a dealer: it takes d, unless ctx is cancelled.
func nap(ctx context.Context, d time.Duration) error {
	if d <= 0 { // two timers without a duration at a time crash the race detector of Go 1.26 in a bubble
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
