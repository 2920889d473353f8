package manager_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// loaded has always an item of the queues with even numbers, and never one of the others. Their backlog grows by half of
// what is done.
type loaded struct{ began time.Time }

func (l loaded) Select(_ context.Context, s processor.Selection) ([]int, error) {
	if s.Queue.Index%2 == 1 {
		return nil, nil
	}
	return []int{s.Queue.Index}, nil
}

func (loaded) Execute(context.Context, []int) error {
	time.Sleep(time.Second)
	return nil
}

func (l loaded) Backlog(_ context.Context, s processor.Selection) (processor.Backlog, error) {
	if s.Queue.Index%2 == 1 {
		return processor.Backlog{}, nil
	}
	return processor.Backlog{Items: 100 + int64(time.Since(l.began)/(2*time.Second))}, nil
}

// The owners measure how many executors their queues need. A plan by load shows which queues would move, and moves none.
func TestPlanByLoad(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		for range 2 {
			m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("load", loaded{time.Now()}, manager.Settings{Queues: 8}))
			if err != nil {
				cl.Fatal(err)
			}
			cl.run(m)
			time.Sleep(10 * time.Second) // the first worker keeps the even queues (P3)
		}
		if _, err := cl.c.Queues().PlanByLoad(cl.Context(), "nothing", -1); err == nil {
			t.Error("a plan for an unknown task type")
		}
		time.Sleep(time.Minute)
		before := cl.epochs()
		p, err := cl.c.Queues().PlanByLoad(cl.Context(), "load", -1)
		if err != nil {
			cl.Fatal(err)
		}
		if p.Queues != 8 || p.Measured != 8 || len(p.Moves) != 2 || math.Abs(p.Largest-1.5) > 0.1 || math.Abs(p.Fair-3) > 0.2 {
			t.Errorf("%+v: want 2 moves of queues that need one and a half executors", p)
		}
		for _, s := range p.Servers {
			if math.Abs(s.Next-3) > 0.2 {
				t.Errorf("%+v, want the same load for both", s)
			}
		}
		if one, err := cl.c.Queues().PlanByLoad(cl.Context(), "load", 1); err != nil || len(one.Moves) != 1 {
			t.Errorf("with a budget of one move: %+v, %v", one, err)
		}
		time.Sleep(time.Minute)
		if after := cl.epochs(); after != before {
			t.Errorf("%d queues moved", after-before)
		}
		servers, err := cl.c.Servers().List(cl.Context(), center.ServerFilter{})
		if err != nil || len(servers) != 2 || servers[0].Queues != 4 {
			t.Errorf("%+v, %v; want four queues each", servers, err)
		}
	})
}
