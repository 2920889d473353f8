package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// owned returns how many queues the servers own, the oldest first, when nothing moves any more.
func (cl *cluster) owned() (queues []int64) {
	cl.Helper()
	time.Sleep(10 * time.Second)
	servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
	if err != nil {
		cl.Fatal(err)
	}
	for _, s := range servers {
		if s.Requested > 0 {
			cl.Errorf("%s still hands over: %+v", s.UUID, s)
		}
		queues = append(queues, s.Queues)
	}
	return queues
}

func (cl *cluster) wantOwned(what string, want ...int64) {
	cl.Helper()
	if got := cl.owned(); !slices.Equal(got, want) {
		cl.Errorf("%s: the servers own %v queues, want %v", what, got, want)
	}
}

// startWeighted starts a worker with a weight.
func (cl *cluster) startWeighted(weight *int, s manager.Settings) *worker {
	cl.Helper()
	d := &work{cl: cl, name: "worker", takes: 100 * time.Millisecond}
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Weight: weight}, manager.Serve("settle", d, s))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// Workers own queues by their weights, which an operator changes while they work. No two work one queue meanwhile.
func TestWeights(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 8, SleepTimeInterval: 10 * time.Millisecond}
		first := cl.startWeighted(nil, s)
		cl.wantOwned("one worker", 8)
		cl.startWeighted(new(3), s)
		cl.wantOwned("weights 1 and 3", 2, 6)
		cl.startWeighted(new(0), s)
		cl.wantOwned("weights 1, 3 and 0", 2, 6, 0)
		servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
		if err != nil {
			cl.Fatal(err)
		}
		if err := cl.c.Roster().Operator("test").SetWeight(cl.Context(), servers[2].UUID, 4); err != nil {
			cl.Fatal(err)
		}
		cl.wantOwned("weights 1, 3 and 4", 1, 3, 4)
		first.stop()
		cl.wantOwned("weights 3 and 4", 3, 5)
	})
	if _, err := manager.New(nil, manager.Config{Weight: new(1001)}, manager.Serve("settle", &work{}, manager.Settings{})); err == nil || err.Error() != "weight (1001) must be between 0 and 1000" {
		t.Errorf("weight 1001: %v", err)
	}
}

// With max_servers, the others stand by until one leaves.
func TestMaxServers(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 6, SleepTimeInterval: 10 * time.Millisecond, MaxServers: 2}
		first := cl.startWeighted(nil, s)
		cl.wantOwned("one worker", 6)
		cl.startWeighted(nil, s)
		cl.wantOwned("two workers", 3, 3)
		cl.startWeighted(nil, s)
		cl.wantOwned("three workers", 3, 3, 0)
		first.stop()
		cl.wantOwned("one has left", 3, 3)
	})
}
