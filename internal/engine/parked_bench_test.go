package engine_test

import (
	"context"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// BenchmarkParked measures how much of its rate a queue keeps if 100,000 dead items are ahead of 100,000 healthy ones:
// rate-with/rate-without. A select takes a millisecond and two microseconds for each item, a batch of a hundred ten
// milliseconds. The goal is 0.8.
func BenchmarkParked(b *testing.B) {
	for b.Loop() {
		well := timedBehind(b, 0)
		b.ReportMetric(float64(well)/float64(timedBehind(b, 100_000)), "rate-with/rate-without")
	}
}

// timedBehind returns the time to execute 100,000 items behind the given number of dead items.
func timedBehind(b *testing.B, deadItems int) time.Duration {
	d := &longTable{dead: deadItems, left: 100_000}
	for i := range deadItems + d.left {
		d.open = append(d.open, i)
	}
	begin := time.Now()
	p, err := engine.New(d, engine.Env{Items: deadBefore{nothing, deadItems}}, engine.Settings{
		ThreadNumber: 4, FetchNumber: 500, ExecuteNumber: 100, ItemMaxAttempts: 3,
		SleepTimeNoData: 500 * time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	d.finish = cancel
	if err := p.Grant(processor.Queue{ID: "0"}, 1); err != nil {
		b.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// longTable is a table whose first items are dead. It is Paged.
type longTable struct {
	dead   int
	finish context.CancelFunc

	mu   sync.Mutex
	open []int // in order
	left int
}

func (d *longTable) Key(item int) string      { return strconv.Itoa(item) }
func (d *longTable) Position(item int) string { return strconv.Itoa(item) }

func (d *longTable) Select(_ context.Context, s processor.Selection) ([]int, error) {
	d.mu.Lock()
	from := 0
	if s.After != "" {
		after, _ := strconv.Atoi(s.After)
		from = sort.SearchInts(d.open, after+1)
	}
	page := append([]int(nil), d.open[from:min(len(d.open), from+s.Limit)]...)
	d.mu.Unlock()
	time.Sleep(time.Millisecond + time.Duration(len(page))*2*time.Microsecond)
	return page, nil
}

func (d *longTable) Execute(_ context.Context, items []int) error {
	time.Sleep(time.Millisecond + time.Duration(len(items))*90*time.Microsecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	at := sort.SearchInts(d.open, items[0]) // batches are in order, and each item is executed once
	n := at
	for _, item := range d.open[at:] {
		if item > items[len(items)-1] {
			break
		}
		n++
	}
	d.open = append(d.open[:at:at], d.open[n:]...)
	if d.left -= len(items); d.left == 0 {
		d.finish()
	}
	return nil
}

// deadBefore is an ItemStore in which the items below a number are dead.
type deadBefore struct {
	failedItems
	number int
}

var nothing = failedItems{}

func (d deadBefore) Any(context.Context, processor.Queue) (bool, error) { return d.number > 0, nil }

func (d deadBefore) Find(_ context.Context, _ processor.Queue, keys []string) (list []engine.FailedItem, _ error) {
	for _, key := range keys {
		if n, err := strconv.Atoi(key); err == nil && n < d.number {
			list = append(list, deadItem(key))
		}
	}
	return list, nil
}

func deadItem(key string) engine.FailedItem {
	return engine.FailedItem{Key: key, Attempts: 3, Dead: true, LastError: "broken"}
}
