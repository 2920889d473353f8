package processor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
)

// endless is a dealer that always finds the same page and does nothing with it, until enough items were executed.
type endless struct {
	page   []int
	left   atomic.Int64
	finish context.CancelFunc
}

func (e *endless) Select(context.Context, processor.Selection) ([]int, error) { return e.page, nil }

func (e *endless) Execute(_ context.Context, items []int) error {
	if e.left.Add(-int64(len(items))) <= 0 {
		e.finish()
	}
	return nil
}

// endlessSet is the same as a SetSelector.
type endlessSet struct{ *endless }

func (e endlessSet) SelectSet(context.Context, processor.Selection, []processor.Queue) ([]int, error) {
	return e.page, nil
}

var ids = []string{"0", "1", "2", "3", "4", "5", "6", "7"}

func (e endlessSet) QueueOf(item int) string { return ids[item/8%8] }

// Benchmark is the time and the allocations per item of a dealer that does nothing: 4 executors, pages of 1,000.
// The goal is 160 ns with execute_number 1 and 70 ns with 100, and no allocation.
func Benchmark(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("select/execute_number=%d", n), func(b *testing.B) {
			e := &endless{}
			run(b, e, e, n)
		})
		b.Run(fmt.Sprintf("set/execute_number=%d", n), func(b *testing.B) {
			e := endlessSet{&endless{}}
			run(b, e, e.endless, n)
		})
	}
}

// run lets the processor itself turn the loop, so that an iteration is an item.
func run(b *testing.B, d processor.TaskDealer[int], e *endless, executeNumber int) {
	for i := range 1000 {
		e.page = append(e.page, i)
	}
	ctx, cancel := context.WithCancel(b.Context())
	e.finish = cancel
	e.left.Store(int64(b.N))
	p, err := processor.New(d, processor.Env{}, processor.Settings{
		ThreadNumber: 4, FetchNumber: 1000, ExecuteNumber: executeNumber,
		SleepTimeNoData: time.Second, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		b.Fatal(err)
	}
	for i, id := range ids {
		if err := p.Grant(processor.Queue{ID: id, Index: i}, len(ids)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
