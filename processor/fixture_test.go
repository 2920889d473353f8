package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/dutyrota/rota/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dealer is a TaskDealer made of functions. Items are named after their queue: "a1" is one of queue a.
type dealer struct {
	sel  func(ctx context.Context, s processor.Selection) ([]string, error)
	exec func(ctx context.Context, items []string) error
}

func (d *dealer) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return d.sel(ctx, s)
}

func (d *dealer) Execute(ctx context.Context, items []string) error { return d.exec(ctx, items) }

// setDealer is the same as a SetSelector.
type setDealer struct {
	dealer
	selSet  func(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error)
	queueOf func(item string) string
}

func (d *setDealer) SelectSet(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error) {
	return d.selSet(ctx, s, owned)
}

func (d *setDealer) QueueOf(item string) string {
	if d.queueOf != nil {
		return d.queueOf(item)
	}
	return item[:1]
}

// world runs a processor in a bubble and keeps a journal of what happens when.
type world struct {
	*processor.Processor
	logs  *test.Hook
	begin time.Time
	stop  func() // ends Run and waits for it

	mu      sync.Mutex
	journal []string
}

// bubble runs f in a synctest bubble with a world that is not yet started.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &world{begin: time.Now()}) })
}

// start makes the processor of d, grants the queues, and runs it until the test ends.
func (w *world) start(t *testing.T, d processor.TaskDealer[string], env processor.Env, s processor.Settings, ids ...string) {
	t.Helper()
	logger, hook := test.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)
	w.logs, env.Log = hook, logger
	env.TaskType, env.OwnSign = "settle", "TEST"
	p, err := processor.New(d, env, s)
	if err != nil {
		t.Fatal(err)
	}
	w.Processor = p
	w.grant(t, ids...)
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

// settings are usual ones: pages of ten, batches of two.
func settings() processor.Settings {
	return processor.Settings{
		ThreadNumber: 4, FetchNumber: 10, ExecuteNumber: 2,
		SleepTimeNoData: time.Second, Retry: time.Second, RetryMax: time.Minute,
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

// note adds a line with the time since the beginning.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprint(time.Since(w.begin), " ", fmt.Sprintf(format, args...)))
}

// text is the whole journal, a line for each note.
func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.journal, "\n")
}

// expect waits until everything is blocked and compares the journal, sorted within an instant, with lines.
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

// once is a Select that returns the items of each queue in one page, and nothing ever after.
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

// onceSet is the same for a set: all items are in one page.
func onceSet(items ...string) func(context.Context, processor.Selection, []processor.Queue) ([]string, error) {
	return func(context.Context, processor.Selection, []processor.Queue) ([]string, error) {
		page := items
		items = nil
		return page, nil
	}
}

// holding returns what is held of one queue.
func (w *world) holding(t *testing.T, id string) processor.Holding {
	t.Helper()
	for _, h := range w.Held() {
		if h.Queue.ID == id {
			return h
		}
	}
	t.Fatalf("queue %s is not held", id)
	return processor.Holding{}
}

// signalled reports whether Drained has a signal, and takes it.
func (w *world) signalled() bool {
	select {
	case <-w.Drained():
		return true
	default:
		return false
	}
}

// nap is a dealer's work: it takes d, unless it is cancelled.
func nap(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
