package manager_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// limited is the source of all workers of a task type with max_in_flight. An item is the index of its queue. Each call
// of Execute takes a second.
type limited struct {
	mu            sync.Mutex
	inFlight, max int
	queues        map[int]int // calls of Execute by queue
}

func (*limited) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return slices.Repeat([]int{s.Queue.Index}, min(3, s.Limit)), nil
}

func (l *limited) Execute(_ context.Context, items []int) error {
	defer l.enter(items[0])()
	time.Sleep(time.Second)
	return nil
}

// enter counts a call of Execute for the queue, and returns the function that ends it.
func (l *limited) enter(queue int) (exit func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight++
	l.max = max(l.max, l.inFlight)
	l.queues[queue]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inFlight--
	}
}

// take returns the most calls that were in flight at once, how many there were, and the number of queues that had one,
// since the last take.
func (l *limited) take() (most, calls, queues int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.queues {
		calls += n
	}
	most, queues = l.max, len(l.queues)
	l.max, l.queues = l.inFlight, map[int]int{}
	return most, calls, queues
}

// limitedStore has items that exist until they are executed.
type limitedStore struct {
	store
	limited
}

// Select implements processor.TaskDealer.
func (l *limitedStore) Select(ctx context.Context, s processor.Selection) ([]int, error) {
	return l.store.Select(ctx, s)
}

// Execute implements processor.TaskDealer.
func (l *limitedStore) Execute(ctx context.Context, items []int) error {
	defer l.enter(items[0] % 4)()
	return l.store.Execute(ctx, items)
}

// limitedCluster runs f with a task type that may have most calls in flight.
func limitedCluster(t *testing.T, most int, f func(cl *cluster, l *limited, start func() *worker)) {
	t.Helper()
	inBubble(t, func(cl *cluster) {
		l := &limited{queues: map[int]int{}}
		f(cl, l, func() *worker {
			m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("settle", l, manager.Settings{
				Queues: 8, ThreadNumber: 4, SleepTimeInterval: 10 * time.Millisecond, DrainTimeout: 3 * time.Second, MaxInFlight: most,
			}))
			if err != nil {
				cl.Fatal(err)
			}
			return cl.run(m)
		})
	})
}

// shares returns how many calls the servers may have in flight, the oldest first; "-" is no limit.
func (cl *cluster) shares() (shares []string) {
	cl.Helper()
	servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
	if err != nil {
		cl.Fatal(err)
	}
	for _, s := range servers {
		if s.MaxInFlight == nil {
			shares = append(shares, "-")
			continue
		}
		shares = append(shares, fmt.Sprint(*s.MaxInFlight))
	}
	return shares
}

// P10: the workers together have at most 3 calls in flight while workers join and leave. They use all 3, and execute
// items of each queue.
func TestMaxInFlightHoldsForAllWorkers(t *testing.T) {
	limitedCluster(t, 3, func(cl *cluster, l *limited, start func() *worker) {
		phase := func(what string, change func(), want ...string) {
			cl.Helper()
			l.take()
			change()
			time.Sleep(12 * time.Second)
			if most, _, _ := l.take(); most > 3 {
				cl.Errorf("%s: %d calls in flight at once", what, most)
			}
			if got := cl.shares(); !slices.Equal(got, want) {
				cl.Errorf("%s: the shares are %v 12 s later, want %v", what, got, want)
			}
			time.Sleep(60 * time.Second)
			if most, calls, queues := l.take(); most != 3 || calls < 170 || queues != 8 {
				cl.Errorf("%s: %d calls for %d queues in 60 s, %d at once; want 180 for 8 queues, 3 at once", what, calls, queues, most)
			}
		}
		var all []*worker
		join := func() { all = append(all, start()) }
		leave := func() {
			if err := cl.leave(all[0]); err != nil {
				cl.Error(err)
			}
			all = all[1:]
		}
		phase("the first joins", join, "3")
		phase("a second joins", join, "2", "1")
		phase("a third joins", join, "1", "1", "1")
		phase("more than there are calls", join, "1", "1", "1", "0")
		phase("one leaves, and the spare one takes over", leave, "1", "1", "1")
		phase("another one leaves", leave, "2", "1")
		phase("two join at once", func() { join(); join() }, "1", "1", "1", "0")
	})
}

// P10: another max_in_flight takes effect while the workers run.
func TestMaxInFlightChangesWhileWorkersRun(t *testing.T) {
	limitedCluster(t, 0, func(cl *cluster, l *limited, start func() *worker) {
		start()
		start()
		set := func(n int, want ...string) {
			cl.Helper()
			row, err := ops.New(cl.c).Tasks().Settings(cl.Context(), "settle")
			if err != nil {
				cl.Fatal(err)
			}
			row.MaxInFlight = n
			diff, err := ops.New(cl.c).Tasks().Compare(cl.Context(), "settle", row)
			if err == nil {
				err = ops.New(cl.c).Tasks().Apply(cl.Context(), diff, "test")
			}
			if err != nil {
				cl.Fatal(err)
			}
			time.Sleep(12 * time.Second)
			if got := cl.shares(); !slices.Equal(got, want) {
				cl.Errorf("with max_in_flight %d the shares are %v, want %v", n, got, want)
			}
			l.take()
			time.Sleep(30 * time.Second)
			if most, calls, queues := l.take(); n > 0 && most != n || calls < 30*most*9/10 || queues != 8 {
				cl.Errorf("with max_in_flight %d: %d calls for %d queues in 30 s, %d at once", n, calls, queues, most)
			}
		}
		time.Sleep(12 * time.Second)
		if most, _, _ := l.take(); most != 8 {
			cl.Errorf("%d calls at once without a limit, want those of 8 executors", most)
		}
		set(5, "3", "2")
		set(2, "1", "1")
		set(1, "1", "0")
		set(6, "3", "3")
		set(0, "-", "-")
	})
}

// P10: a run with more workers than calls in flight ends, and the calls of its sweeps are within the limit.
func TestMaxInFlightHoldsInRuns(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		l := &limitedStore{store: store{takes: time.Second, items: map[int]bool{}}, limited: limited{queues: map[int]int{}}}
		l.put(200)
		settings := inRuns
		settings.MaxInFlight = 2
		for range 3 {
			m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("settle", processor.TaskDealer[int](l), settings))
			if err != nil {
				cl.Fatal(err)
			}
			cl.run(m)
			time.Sleep(10 * time.Second)
		}
		cl.wantRun(cl.ends(cl.submit("one"), 10*time.Minute), runs.Success, 200, 0)
		if most, calls, queues := l.take(); most != 2 || calls < 100 || queues != 4 {
			cl.Errorf("%d calls for %d queues, %d at once; want 100 or more for 4 queues, 2 at once", calls, queues, most)
		}
	})
}
