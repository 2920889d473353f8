package manager_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// loaded has always an item of its busy queues, and never one of the others. Their backlog grows by half of what is done.
type loaded struct {
	began time.Time
	busy  func(queue int) bool
}

func isEven(queue int) bool     { return queue%2 == 0 }
func isInFirst4(queue int) bool { return queue < 4 }

func (l loaded) Select(_ context.Context, s processor.Selection) ([]int, error) {
	if !l.busy(s.Queue.Index) {
		return nil, nil
	}
	return []int{s.Queue.Index}, nil
}

func (loaded) Execute(context.Context, []int) error {
	time.Sleep(time.Second)
	return nil
}

func (l loaded) Backlog(_ context.Context, s processor.Selection) (processor.Backlog, error) {
	if !l.busy(s.Queue.Index) {
		return processor.Backlog{}, nil
	}
	return processor.Backlog{Items: 100 + int64(time.Since(l.began)/(2*time.Second))}, nil
}

// startLoaded starts two workers with eight queues.
func startLoaded(cl *cluster, busy func(queue int) bool, s manager.Settings) {
	s.Queues = 8
	for range 2 {
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("load", loaded{time.Now(), busy}, s))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		time.Sleep(10 * time.Second)
	}
}

// The owners measure how many executors their queues need. A plan by load shows which queues would move, and moves none.
func TestPlanByLoad(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		startLoaded(cl, isEven, manager.Settings{}) // the first worker keeps the even queues (P3)
		if _, err := ops.New(cl.c).Queues().Plan(cl.Context(), "nothing", ops.Scenario{ByLoad: true}); err == nil {
			t.Error("a plan for an unknown task type")
		}
		time.Sleep(time.Minute)
		before := cl.epochs()
		p, err := ops.New(cl.c).Queues().Plan(cl.Context(), "load", ops.Scenario{ByLoad: true})
		if err != nil {
			cl.Fatal(err)
		}
		if p.Load.Queues != 8 || p.Load.Measured != 8 || p.LoadMoves() != 2 || math.Abs(p.Load.Fair-3) > 0.2 || p.Load.InForce {
			t.Errorf("%+v: want 2 moves of queues that need one and a half executors", p)
		}
		for _, s := range p.Shares {
			if math.Abs(*s.NextLoad-3) > 0.2 {
				t.Errorf("%+v, want the same load for both", s)
			}
		}
		time.Sleep(time.Minute)
		if after := cl.epochs(); after != before {
			t.Errorf("%d queues moved", after-before)
		}
		servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
		if err != nil || len(servers) != 2 || servers[0].Queues != 4 {
			t.Errorf("%+v, %v; want four queues each", servers, err)
		}
	})
}

// P16: with balance LOAD the servers have even loads within a minute, with two moves, and nothing moves after that.
func TestBalanceByLoad(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		startLoaded(cl, isInFirst4, manager.Settings{Balance: center.BalanceLoad})
		before := cl.epochs()
		time.Sleep(time.Minute)
		p, err := ops.New(cl.c).Queues().Plan(cl.Context(), "load", ops.Scenario{ByLoad: true})
		if err != nil {
			cl.Fatal(err)
		}
		if moved := cl.epochs() - before; moved != 2 || len(p.Moves) != 0 || !p.Load.InForce || p.Load.Budget != 58 {
			t.Errorf("%d queues moved, and then: %+v; want 2 moves, a budget of 58, and no moves left", moved, p)
		}
		for _, s := range p.Shares {
			if math.Abs(*s.Load-3) > 0.3 {
				t.Errorf("%+v, want the same load for both", s)
			}
		}
		before = cl.epochs()
		time.Sleep(30 * time.Minute)
		if moved := cl.epochs() - before; moved != 0 {
			t.Errorf("%d queues moved without a reason", moved)
		}
		var n int
		cl.scan("SELECT COUNT(*) FROM schedule_event WHERE kind = 'REQUESTED' AND reason = 'its owner has more than its part of the load'", &n)
		if n != 2 {
			t.Errorf("%d events say that a queue moves to even the load, want 2", n)
		}
	})
}

// P16: load_moves_per_hour bounds the moves that only even the load.
func TestBalanceByLoadKeepsToItsBudget(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		startLoaded(cl, isInFirst4, manager.Settings{Balance: center.BalanceLoad, LoadMovesPerHour: 1})
		before := cl.epochs()
		time.Sleep(50 * time.Minute)
		if moved := cl.epochs() - before; moved != 1 {
			t.Errorf("%d queues moved in 50 minutes, want 1", moved)
		}
		time.Sleep(20 * time.Minute)
		if moved := cl.epochs() - before; moved != 2 {
			t.Errorf("%d queues moved in 70 minutes, want 2", moved)
		}
	})
}
