package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// burst is a dealer whose select returns items once.
type burst struct{ items chan string }

func (b burst) Select(context.Context, processor.Selection) (page []string, err error) {
	for len(b.items) > 0 {
		page = append(page, <-b.items)
	}
	return page, nil
}

func (burst) Execute(ctx context.Context, _ []string) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return nil
}

// A processor at rest has no executors, and as many as thread_number while it has work.
func TestProcessorAtRestHasNoExecutors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := burst{items: make(chan string, 8)}
		p, err := New(d, Env{}, Settings{
			ThreadNumber: 4, FetchNumber: 8, ExecuteNumber: 1, SleepTimeNoData: time.Minute, Retry: time.Second, RetryMax: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			defer p.lock().mu.Unlock()
			if got := len(p.scheduler.executors); got != want {
				t.Errorf("%d executors %s, want %d", got, when, want)
			}
		}
		expect("without a queue", 0)
		if err := p.Grant(processor.Queue{ID: "0"}, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		for range 3 { // a minute after an empty select, two rounds of calls and another empty select
			expect("at rest", 0)
			for range cap(d.items) {
				d.items <- "item"
			}
			time.Sleep(time.Minute)
			expect("with eight items", 4)
			time.Sleep(2 * time.Second)
		}
		cancel()
		run.Wait()
	})
}
