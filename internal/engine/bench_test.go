package engine_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// endless is a dealer that returns a page at every select and does nothing with it. It ends the benchmark after enough
// items. Each page begins at another item than the last ones, because the processor pauses if a page comes again.
type endless struct {
	page   []int
	shift  atomic.Int64
	left   atomic.Int64
	finish context.CancelFunc
	run    *processor.Run
}

func (e *endless) Select(context.Context, processor.Selection) ([]int, error) {
	from := e.shift.Add(1) % 1000
	return e.page[from : from+1000], nil
}

func (e *endless) Execute(_ context.Context, items []int) error {
	if e.left.Add(-int64(len(items))) <= 0 {
		e.finish()
	}
	return nil
}

var ids = []string{"0", "1", "2", "3", "4", "5", "6", "7"}

// endlessKeyed is endless with keys. It returns four ranges in turn, so that the page in flight is not the selected
// page.
type endlessKeyed struct {
	*endless
	keys []string
	turn [8]int
}

func newEndlessKeyed() *endlessKeyed {
	e := &endlessKeyed{endless: &endless{}}
	for i := range 5000 {
		e.keys = append(e.keys, fmt.Sprint("order-", i))
		e.page = append(e.page, i)
	}
	return e
}

func (e *endlessKeyed) Key(item int) string { return e.keys[item] }

func (e *endlessKeyed) Select(_ context.Context, s processor.Selection) ([]int, error) {
	turn := e.turn[s.Queue.Index]
	from := 1000*(turn%4) + turn/4%1000
	e.turn[s.Queue.Index]++
	return e.page[from : from+1000], nil
}

// poisoned fails for one item of a hundred. The processor knows these items after their first attempt.
type poisoned struct{ *endlessKeyed }

func (p poisoned) Execute(ctx context.Context, items []int) error {
	for _, item := range items {
		if item%100 == 42 {
			return errBroken
		}
	}
	return p.endlessKeyed.Execute(ctx, items)
}

// Benchmark measures the time and the allocations per item of a dealer that does nothing: 4 executors, pages of 1,000.
// The goal is 160 ns with execute_number 1, 70 ns with 100, and no allocation.
func Benchmark(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("select/execute_number=%d", n), func(b *testing.B) {
			e := &endless{}
			run(b, e, e, n, nil)
		})
		b.Run(fmt.Sprintf("notsleep/execute_number=%d", n), func(b *testing.B) {
			e := newEndlessKeyed()
			run(b, e, e.endless, n, func(s *engine.Settings) { s.NotSleep = true })
		})
		b.Run(fmt.Sprintf("sweep/execute_number=%d", n), func(b *testing.B) {
			e := newEndlessKeyed()
			e.run = &processor.Run{}
			run(b, e, e.endless, n, nil)
		})
		b.Run(fmt.Sprintf("poison/execute_number=%d", n), func(b *testing.B) {
			e := poisoned{newEndlessKeyed()}
			run(b, e, e.endless, n, nil)
		})
	}
}

// BenchmarkPoison measures how much of their rate queues keep while new items arrive and one in a thousand of them
// always fails: rate-with/rate-without. A batch of a hundred takes ten milliseconds. The poison case of Benchmark shows
// the cost of such items after their first failures.
func BenchmarkPoison(b *testing.B) {
	for b.Loop() {
		well := timed(b, 0)
		b.ReportMetric(float64(well)/float64(timed(b, 1)), "rate-with/rate-without")
	}
}

// timed returns the time to execute the good items among 20,000, with the given number of bad items in each thousand.
func timed(b *testing.B, bad int) time.Duration {
	d := &slowTable{bad: bad}
	begin := time.Now()
	p, err := engine.New(d, engine.Env{}, engine.Settings{
		ThreadNumber: 4, FetchNumber: 1000, ExecuteNumber: 100, ItemMaxAttempts: 3,
		SleepTimeNoData: time.Second, Retry: 20 * time.Millisecond, RetryMax: 20 * time.Millisecond,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	d.finish, d.left = cancel, 20_000-20*bad
	for i := range 4 {
		if err := p.Grant(processor.Queue{ID: ids[i], Index: i}, 4); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// slowTable has 5,000 items in each queue. The first bad items of each thousand always fail.
type slowTable struct {
	bad    int
	finish context.CancelFunc

	mu   sync.Mutex
	gone [20_000]bool
	left int
}

func (d *slowTable) Key(item int) string { return strconv.Itoa(item) }

func (d *slowTable) Select(_ context.Context, s processor.Selection) (page []int, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := s.Queue.Index * 5_000; i < (s.Queue.Index+1)*5_000 && len(page) < s.Limit; i++ {
		if !d.gone[i] {
			page = append(page, i)
		}
	}
	return page, nil
}

func (d *slowTable) Execute(_ context.Context, items []int) error {
	time.Sleep(time.Millisecond + time.Duration(len(items))*90*time.Microsecond)
	for _, item := range items {
		if item%1000 < d.bad {
			return errBroken
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range items {
		d.gone[item] = true
	}
	if d.left -= len(items); d.left == 0 {
		d.finish()
	}
	return nil
}

// run makes the processor execute b.N items, so that one iteration is one item.
func run(b *testing.B, d processor.TaskDealer[int], e *endless, executeNumber int, change func(*engine.Settings)) {
	for i := range 2000 {
		e.page = append(e.page, i)
	}
	ctx, cancel := context.WithCancel(b.Context())
	e.finish = cancel
	e.left.Store(int64(b.N))
	s := engine.Settings{
		ThreadNumber: 4, FetchNumber: 1000, ExecuteNumber: executeNumber,
		SleepTimeNoData: time.Second, Retry: time.Hour, RetryMax: time.Hour,
	}
	if change != nil {
		change(&s)
	}
	p, err := engine.New(d, engine.Env{}, s)
	if err != nil {
		b.Fatal(err)
	}
	for i, id := range ids {
		if err := p.Grant(processor.Queue{ID: id, Index: i, Run: e.run}, len(ids)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
