package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// inbox is a dealer that is a Peeker: items arrive in it at any time. The methods are called concurrently.
type inbox struct {
	w  *world
	mu sync.Mutex

	items   map[string][]string
	selects map[string]int
	peeks   int
	quiet   bool // the journal has no selects
	peek    func(ctx context.Context, idle []string) ([]string, error)
}

func newInbox(w *world) *inbox {
	return &inbox{w: w, items: map[string][]string{}, selects: map[string]int{}}
}

func (i *inbox) arrive(items ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, item := range items {
		i.items[item[:1]] = append(i.items[item[:1]], item)
	}
}

func (i *inbox) Select(_ context.Context, s processor.Selection) ([]string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.selects[s.Queue.ID]++
	if !i.quiet {
		i.w.note("select %s", s.Queue.ID)
	}
	return slices.Clone(i.items[s.Queue.ID]), nil
}

func (i *inbox) Execute(_ context.Context, items []string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.w.note("execute %s", items)
	q := items[0][:1]
	i.items[q] = slices.DeleteFunc(i.items[q], func(item string) bool { return slices.Contains(items, item) })
	return nil
}

// Peek names the queues that have items, unless the test has another peek.
func (i *inbox) Peek(ctx context.Context, idle []processor.Selection) ([]string, error) {
	var asked []string
	for _, s := range idle {
		asked = append(asked, s.Queue.ID)
		if s.Limit != 1 || s.TaskType != "settle" || s.Total == 0 {
			return nil, fmt.Errorf("selection %+v", s)
		}
	}
	i.mu.Lock()
	i.peeks++
	i.mu.Unlock()
	if i.peek != nil {
		return i.peek(ctx, asked)
	}
	i.w.note("peek %s", asked)
	return i.busy(asked), nil
}

// peeked returns the number of peeks.
func (i *inbox) peeked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.peeks
}

// selected returns the number of selects of a queue.
func (i *inbox) selected(id string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.selects[id]
}

// busy returns the queues that have items.
func (i *inbox) busy(ids []string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(i.items[id]) == 0 })
}

// X8: idle queues are peeked together, once in sleep_time_nodata. The queue that has work is selected at once.
func TestIdleQueuesArePeekedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		w.start(t, i, engine.Env{}, settings(), "a", "b", "c")
		w.expect(t, "0s select a", "0s select b", "0s select c")
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "1s peek [a b c]")
		i.arrive("b1")
		time.Sleep(time.Second)
		w.expect(t, "2s execute [b1]", "2s peek [a b c]", "2s select b", "2s select b")
		time.Sleep(time.Second)
		w.expect(t, "3s peek [a b c]")
		if s := w.Stats(); s.PeekCount != 3 || s.FetchCount != 5 {
			t.Errorf("stats: %d peeks, %d selects", s.PeekCount, s.FetchCount)
		}
	})
}

// X8: at rest a hundred queues cost a peek each interval, and a select a minute.
func TestStatementsAtRest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		i.peek = func(_ context.Context, idle []string) ([]string, error) { return i.busy(idle), nil }
		w.start(t, i, engine.Env{}, settings())
		for n := range 100 {
			if err := w.Grant(processor.Queue{ID: fmt.Sprint(n), Index: n, Epoch: 1}, 100); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10*time.Minute + 500*time.Millisecond)
		if i.peeked() < 580 || i.peeked() > 600 {
			t.Errorf("%d peeks in 600 s", i.peeked())
		}
		// All are selected in the same moment of a minute, so a peek may meet one that is idle alone, which is polled.
		sum := 0
		for n := range 100 {
			got := i.selected(fmt.Sprint(n))
			if got < 10 {
				t.Errorf("queue %d: %d selects in 10 minutes", n, got)
			}
			sum += got
		}
		if sum > 100*11+10 {
			t.Errorf("%d selects in 10 minutes", sum)
		}
	})
}

// X8: a queue that no peek names is selected all the same.
func TestQueueThatPeekMissesIsSelected(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		i.peek = func(context.Context, []string) ([]string, error) { return []string{"nobody"}, nil }
		w.start(t, i, engine.Env{}, settings(), "a", "b")
		time.Sleep(1500 * time.Millisecond)
		i.arrive("a1")
		time.Sleep(time.Minute)
		w.expect(t, "1m0s execute [a1]")
	})
}

// X8: while Peek fails or hangs, the queues are selected as without it.
func TestQueuesOfAFailedPeekAreSelected(t *testing.T) {
	for name, peek := range map[string]func(context.Context, []string) ([]string, error){
		"error": func(context.Context, []string) ([]string, error) { return nil, errors.New("away") },
		"panic": func(context.Context, []string) ([]string, error) { panic("boom") },
		"hang": func(ctx context.Context, _ []string) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"hang, and then nothing": func(context.Context, []string) ([]string, error) {
			time.Sleep(time.Hour)
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				i.quiet, i.peek = true, peek
				w.start(t, i, engine.Env{}, settings(), "a", "b")
				time.Sleep(1500 * time.Millisecond)
				i.arrive("a1")
				time.Sleep(time.Second)
				w.expect(t, "2s execute [a1]")
				if name == "error" && !strings.Contains(fmt.Sprint(w.Stats().LastError), "peek at queue a, b: away") {
					t.Errorf("last error: %v", w.Stats().LastError)
				}
				if since := w.Stats().OutageSince; !since.IsZero() {
					t.Error("a peek that fails counts as an outage")
				}
			})
		})
	}
}

// X8: after ErrNoPeek the dealer is selected as if it were no Peeker.
func TestErrNoPeekEndsThePeeks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.peek = func(context.Context, []string) ([]string, error) {
			return nil, fmt.Errorf("wrapped: %w", processor.ErrNoPeek)
		}
		w.start(t, i, engine.Env{}, settings(), "a", "b")
		time.Sleep(10500 * time.Millisecond)
		if i.peeked() != 1 || i.selected("a") != 11 || w.Stats().LastError != nil {
			t.Errorf("%d peeks, %d selects of a, last error %v", i.peeked(), i.selected("a"), w.Stats().LastError)
		}
	})
}

// X8: each data database is asked by itself. One that is away keeps the queues of no other from resting.
func TestEachDatabaseIsPeekedByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		i.peek = func(_ context.Context, idle []string) ([]string, error) {
			if w.note("peek %s", idle); idle[0] == "b" {
				return nil, errors.New("away")
			}
			return nil, nil
		}
		enter := func(context.Context, processor.Queue, bool) (bool, error) { return false, nil }
		w.start(t, i, engine.Env{Enter: enter, Databases: 2}, settings())
		for n, database := range []string{"east", "west", "east"} {
			w.grantIn(t, processor.Queue{ID: string(rune('a' + n)), Index: n, Database: database}, 3)
		}
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "1s peek [a c]", "1s peek [b]")
		time.Sleep(10 * time.Second)
		if i.selected("a") != 1 || i.selected("b") < 10 {
			t.Errorf("%d selects of a, %d of b", i.selected("a"), i.selected("b"))
		}
	})
}

// X8: neither a drain nor the next owner waits for a peek, and its result touches no later grant.
func TestPeekDelaysNoDrain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.peek = func(context.Context, []string) ([]string, error) {
			time.Sleep(700 * time.Millisecond)
			return []string{"a"}, nil
		}
		w.start(t, i, engine.Env{}, settings(), "a", "b", "c")
		time.Sleep(1200 * time.Millisecond)
		w.Drain("a")
		if !w.holding(t, "a").Drained || !w.Forget("a") {
			t.Fatal("the drain waits for the peek")
		}
		w.Drain("b")
		time.Sleep(100 * time.Millisecond)
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 8}, 3); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "0s select a", "0s select b", "0s select c", "1.3s select a")
		time.Sleep(500 * time.Millisecond)
		w.expect(t)
		w.Resume("b")
		w.expect(t, "1.8s select b")
	})
}

// X8: a peek that has found nothing lets the queues rest for twice the interval from its begin, if the next one hangs.
func TestQueuesAreSelectedWhileTheirPeekHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.peek = func(ctx context.Context, _ []string) ([]string, error) {
			if time.Since(w.begin) < 1500*time.Millisecond {
				time.Sleep(500 * time.Millisecond)
				return nil, nil
			}
			return nil, nap(ctx, time.Hour)
		}
		w.start(t, i, engine.Env{}, settings(), "a", "b")
		time.Sleep(1100 * time.Millisecond)
		i.arrive("a1")
		time.Sleep(2 * time.Second)
		w.expect(t, "0s select a", "0s select b", "3s execute [a1]", "3s select a", "3s select a", "3s select b")
	})
}

// A peek that hangs is seen.
func TestPeekThatHangsIsStalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.peek = func(context.Context, []string) ([]string, error) {
			time.Sleep(time.Minute)
			return nil, nil
		}
		w.start(t, i, engine.Env{}, settings(), "a", "b")
		time.Sleep(20 * time.Second)
		stalled := w.Stalled(10 * time.Second)
		if len(stalled) != 1 || !stalled[0].Select || !slices.Equal(stalled[0].Queues, []string{"a", "b"}) {
			t.Errorf("stalled: %+v", stalled)
		}
	})
}

// A queue with failed items is not idle, and neither is one alone.
func TestQueuesThatAreNotIdle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		d := &keyedInbox{i}
		i.arrive("a!")
		s := settings()
		s.Retry, s.RetryMax = time.Hour, time.Hour
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(10500 * time.Millisecond)
		if i.peeked() != 0 || i.selected("a") < 10 || i.selected("b") != 11 {
			t.Errorf("%d peeks, %d and %d selects", i.peeked(), i.selected("a"), i.selected("b"))
		}
	})
}

// keyedInbox is an inbox in which items that end with ! fail.
type keyedInbox struct{ *inbox }

func (keyedInbox) Key(item string) string { return item }

func (k keyedInbox) Execute(ctx context.Context, items []string) error {
	if strings.HasSuffix(items[0], "!") {
		return errBroken
	}
	return k.inbox.Execute(ctx, items)
}

// While the circuit breaker is open there are no peeks. When it closes, all queues are selected.
func TestNoPeekWhileTheBreakerIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		s := settings()
		s.ProbeMax = 30 * time.Second
		w.start(t, &keyedInbox{i}, engine.Env{}, s, "a", "b", "c", "d")
		time.Sleep(1500 * time.Millisecond)
		i.arrive("a1!", "a2!", "a3!", "a4!")
		time.Sleep(10 * time.Second)
		if w.Stats().OutageSince.IsZero() {
			t.Fatal("the breaker is closed")
		}
		before := i.peeked()
		time.Sleep(20 * time.Second)
		if i.peeked() != before {
			t.Errorf("%d peeks while the breaker is open", i.peeked()-before)
		}
		selects := i.selected("c")
		i.mu.Lock()
		i.items = map[string][]string{"b": {"b1"}}
		i.mu.Unlock()
		time.Sleep(time.Minute)
		if !w.Stats().OutageSince.IsZero() || i.selected("c") == selects || i.peeked() == before {
			t.Errorf("after the outage: %d selects of c, %d peeks", i.selected("c")-selects, i.peeked()-before)
		}
	})
}

// A sweep ends by a select, and an isolated queue takes its turn: neither of them is peeked.
func TestQueuesThatAreNeverPeeked(t *testing.T) {
	for name, c := range map[string]struct {
		dealer func(i *inbox) processor.TaskDealer[string]
		queue  processor.Queue
	}{
		"sweep": {
			func(i *inbox) processor.TaskDealer[string] { return i },
			processor.Queue{Run: &processor.Run{ID: "1", Attempt: 1}},
		},
		"isolated": {func(i *inbox) processor.TaskDealer[string] { return &keyedInbox{i} }, processor.Queue{Crashes: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				i.quiet = true
				s := settings()
				s.MaxCrashes, s.Runs = 1, c.queue.Run != nil
				w.start(t, c.dealer(i), engine.Env{}, s)
				for n, id := range []string{"a", "b"} {
					q := c.queue
					q.ID, q.Index, q.Epoch = id, n, 1
					if err := w.Grant(q, 2); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * time.Second)
				if name != "isolated" && i.peeked() > 0 || name == "isolated" && i.peeked() > 3 {
					t.Errorf("%d peeks", i.peeked())
				}
			})
		})
	}
}

// Reload and Configure make a queue that peeks keep idle due.
func TestReloadEndsTheRestOfIdleQueues(t *testing.T) {
	for name, call := range map[string]func(w *world) error{
		"Reload":    func(w *world) error { w.Reload(); return nil },
		"Configure": func(w *world) error { return w.Configure(settings()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				w.start(t, i, engine.Env{}, settings(), "a", "b")
				time.Sleep(1500 * time.Millisecond)
				w.expect(t, "0s select a", "0s select b", "1s peek [a b]")
				if err := call(w); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1100 * time.Millisecond)
				w.expect(t, "2.5s select a", "2.5s select b")
			})
		})
	}
}

// X8, X9: with peeks, whether they are right, fail or hang, and with hints of which most are lost, an item is found no
// later than a further sleep_time_nodata after the time at which it would be found without them. If peeks miss queues,
// it takes a minute more at most.
func TestPeeksFindItemsInTime(t *testing.T) {
	for _, lies := range []bool{false, true} {
		t.Run(fmt.Sprintf("lies %t", lies), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rapid.SyncTest(rt, func(rt *rapid.T) { findInTime(rt, lies) })
			})
		})
	}
}

func findInTime(rt *rapid.T, lies bool) {
	const longest = 50 * time.Millisecond // of a select
	s := settings()
	s.ThreadNumber = 9 // so that no lane waits for an executor
	within := 2*s.SleepTimeNoData + 3*longest
	if lies {
		within += time.Minute
	}
	r := &randomPeeks{
		rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)), lies: lies, longest: longest,
		arrived: map[string]time.Time{}, late: map[string]time.Duration{},
	}
	p, err := engine.New(r, engine.Env{}, s)
	if err != nil {
		rt.Fatal(err)
	}
	for n, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := p.Grant(processor.Queue{ID: id, Index: n, Epoch: 1}, 6); err != nil {
			rt.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(rt.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for n := range rapid.IntRange(1, 30).Draw(rt, "items") {
		time.Sleep(time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "pause")) * time.Millisecond)
		q := string(rune('a' + rapid.IntRange(0, 5).Draw(rt, "queue")))
		r.arrive(fmt.Sprint(q, n))
		switch rapid.IntRange(0, 5).Draw(rt, "hint") { // else it is lost
		case 0:
			p.Hint()
		case 1:
			p.Hint(q)
		}
	}
	time.Sleep(within)
	synctest.Wait()
	r.mu.Lock()
	for item := range r.arrived {
		rt.Errorf("item %s was not executed", item)
	}
	for item, d := range r.late {
		if d > within {
			rt.Errorf("item %s was executed after %s, want within %s", item, d, within)
		}
	}
	r.mu.Unlock()
	cancel()
	if err := <-ended; err != nil {
		rt.Fatal(err)
	}
}

// randomPeeks is a dealer whose calls take random times, and whose peeks fail, hang and miss queues at random.
type randomPeeks struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	lies    bool
	longest time.Duration
	arrived map[string]time.Time // of the items that are left
	late    map[string]time.Duration
}

func (r *randomPeeks) arrive(item string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived[item] = time.Now()
}

// draw returns a duration up to most, and a number up to 9.
func (r *randomPeeks) draw(most time.Duration) (time.Duration, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(1 + r.rnd.Int64N(int64(most))), r.rnd.IntN(10)
}

func (r *randomPeeks) left(id string) (items []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for item := range r.arrived {
		if item[:1] == id {
			items = append(items, item)
		}
	}
	return items
}

func (r *randomPeeks) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	items := r.left(s.Queue.ID)
	d, _ := r.draw(r.longest)
	return items, nap(ctx, d)
}

func (r *randomPeeks) Execute(_ context.Context, items []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		r.late[item] = time.Since(r.arrived[item])
		delete(r.arrived, item)
	}
	return nil
}

func (r *randomPeeks) Peek(ctx context.Context, idle []processor.Selection) (named []string, err error) {
	for _, s := range idle {
		if len(r.left(s.Queue.ID)) > 0 {
			named = append(named, s.Queue.ID)
		}
	}
	d, what := r.draw(r.longest)
	switch {
	case what == 0:
		err = errBroken
	case what == 1:
		d, _ = r.draw(8 * time.Second)
	case what == 2:
		d = time.Hour
	case what == 3:
		panic("boom")
	case r.lies:
		named = nil
	}
	if wait := nap(ctx, d); wait != nil {
		return nil, wait
	}
	return named, err
}
