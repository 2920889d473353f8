package processor_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// work runs a dealer until its queues are empty. A real program passes the dealer to manager.Serve, and a test to
// manager/rotatest.
func work[T any](d processor.TaskDealer[T], queues ...processor.Queue) processor.Stats {
	return drive(func(p *engine.Processor) bool {
		return !slices.ContainsFunc(p.Queues(), func(q engine.QueueState) bool { return q.EmptySince.IsZero() })
	}, d, queues...)
}

// workUntil runs a dealer until its counters say so.
func workUntil[T any](enough func(processor.Stats) bool, d processor.TaskDealer[T], queues ...processor.Queue) {
	drive(func(p *engine.Processor) bool { return enough(p.Stats()) }, d, queues...)
}

func drive[T any](
	enough func(*engine.Processor) bool, d processor.TaskDealer[T], queues ...processor.Queue,
) processor.Stats {
	p, err := engine.New(d, engine.Env{TaskType: "example"}, engine.Settings{
		ThreadNumber: 1, FetchNumber: 20, ExecuteNumber: 10, ItemMaxAttempts: 1,
		SleepTimeNoData: 50 * time.Millisecond, Retry: time.Millisecond, RetryFactor: 2, RetryMax: time.Second,
	})
	if err != nil {
		panic(err)
	}
	for _, q := range queues {
		if err := p.Grant(q, len(queues)); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { err = p.Run(ctx) })
	for !enough(p) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if running.Wait(); err != nil {
		panic(err)
	}
	return p.Stats()
}
