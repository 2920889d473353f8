package manager

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// R15: a call that ends after the state of its failed sweep was read, and before the processor forgets the queue, is
// counted.
func TestEndOfAFailedSweepCountsItsLastCall(t *testing.T) {
	p := newSweepProcessor(t)
	s := &sweeper{base: &base{proc: p}, ticker: &runTicker{}}
	s.ticker.last.Store(&runs.TickResult{Open: "run"})
	q := processor.Queue{ID: "0", Epoch: 1, Run: &processor.Run{ID: "run"}}
	if err := p.Grant(q, 1); err != nil {
		t.Fatal(err)
	}
	sw := &sweep{Sweep: runs.Sweep{RunID: "run", QueueID: "0"}}
	read := engine.QueueState{Queue: q, InFlight: 1, Sweep: engine.SweepState{Failed: true}}
	s.checkEnd(sw, read) // the call has ended meanwhile
	if sw.end != nil {
		t.Fatal("the end of the sweep is saved without its last call")
	}
	read = engine.QueueState{Queue: q, Sweep: engine.SweepState{Failed: true, ItemsDone: 1}}
	if s.checkEnd(sw, read); sw.end == nil || sw.last.ItemsDone != 1 {
		t.Fatalf("the sweep ends with %+v, want 1 item", sw.last)
	}
}

// R15: the run of the last tick has ended, and the claim has found the next one. Its sweep is suspended, so that no
// claim takes the queue for one whose sweep did not record its end.
func TestSweepOfTheNextRunIsSuspendedUntilATickFindsIt(t *testing.T) {
	view := &ownView{}
	s := &sweeper{
		base:   &base{log: slog.New(slog.DiscardHandler), proc: newSweepProcessor(t), settings: &Settings{}, view: view},
		ticker: &runTicker{}, sweeps: map[string]*sweep{},
	}
	view.base = s.base
	s.ticker.last.Store(&runs.TickResult{Open: "first"})
	free := []roster.ViewQueue{{ID: "0", Epoch: 1}}
	suspended := s.begin(t.Context(), []runs.Sweep{{RunID: "second", QueueID: "0", QueueTotal: 1, Epoch: 1}}, free)
	if !suspended || s.sweeps["0"].end == nil {
		t.Fatal("the sweep of the next run has begun")
	}
}

func newSweepProcessor(t *testing.T) *engine.Processor {
	t.Helper()
	d := processor.Each(func(context.Context, processor.Selection) error { return nil })
	p, err := engine.New(d, engine.Env{}, engine.Settings{
		ThreadNumber: 1, FetchNumber: 1, ExecuteNumber: 1, SleepTimeNoData: time.Second,
		SleepTimeInterval: time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
