package manager

import (
	"context"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// R15: a call that ends after the state of its failed sweep was read, and before the processor forgets the queue, is
// counted.
func TestEndOfAFailedSweepCountsItsLastCall(t *testing.T) {
	d := processor.Each(func(context.Context, processor.Selection) error { return nil })
	p, err := processor.New(d, processor.Env{}, processor.Settings{
		ThreadNumber: 1, FetchNumber: 1, ExecuteNumber: 1, SleepTimeNoData: time.Second,
		SleepTimeInterval: time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &sweeper{base: &base{proc: p}, ticker: &runTicker{}}
	s.ticker.last.Store(&runs.TickResult{Open: "run"})
	q := processor.Queue{ID: "0", Epoch: 1, Run: &processor.Run{ID: "run"}}
	if err := p.Grant(q, 1); err != nil {
		t.Fatal(err)
	}
	sw := &sweep{Sweep: runs.Sweep{RunID: "run", QueueID: "0"}}
	read := processor.QueueState{Queue: q, InFlight: 1, Sweep: processor.SweepState{Failed: true}}
	s.checkEnd(sw, read) // the call has ended meanwhile
	if sw.end != nil {
		t.Fatal("the end of the sweep is saved without its last call")
	}
	read = processor.QueueState{Queue: q, Sweep: processor.SweepState{Failed: true, ItemsDone: 1}}
	if s.checkEnd(sw, read); sw.end == nil || sw.last.ItemsDone != 1 {
		t.Fatalf("the sweep ends with %+v, want 1 item", sw.last)
	}
}
