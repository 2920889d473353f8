package manager_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
)

// watched keeps the moves and plans of the workers of a test.
type watched struct {
	mu    sync.Mutex
	moves []manager.Move
	plans []manager.Plan
}

func (w *watched) Moved(m manager.Move) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves = append(w.moves, m)
}

func (w *watched) Planned(p manager.Plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans = append(w.plans, p)
}

func (*watched) Heartbeat(time.Duration, error)  {}
func (*watched) Statistics(time.Duration, error) {}
func (*watched) Swept(manager.Sweep)             {}

// A second worker joins while the first executes an item of each queue: one queue is requested, drained and released.
// Then the second one leaves.
func TestObserver(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		seen, twice := &watched{}, &watched{}
		serve := func(name string) *worker {
			m, err := manager.New(cl.c, manager.Config{Observers: []manager.Observer{seen, twice}},
				manager.Serve("settle", &shared{cl, name, 3 * time.Second}, manager.Settings{Queues: 2}))
			if err != nil {
				cl.Fatal(err)
			}
			return cl.run(m)
		}
		a := serve("a")
		time.Sleep(10 * time.Second)
		first := cl.uuid()
		b := serve("b")
		time.Sleep(20 * time.Second)
		if err := cl.leave(b); err != nil {
			cl.Fatal(err)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		released := slices.DeleteFunc(slices.Clone(seen.moves), func(m manager.Move) bool {
			return m.Kind != manager.MoveReleased
		})
		if len(released) < 2 || len(twice.moves) != len(seen.moves) || len(twice.plans) != len(seen.plans) {
			cl.Fatalf("the moves were %+v and for the other observer %+v, want two releases for both", seen.moves, twice.moves)
		}
		for i, m := range released[:2] {
			if m.TaskType != "settle" || m.OwnSign != "BASE" || m.Server == "" || m.Queue == "" || m.Epoch == 0 ||
				(i == 0) != (m.Server == first) || (i == 0) != (m.To != "") || m.To == m.Server ||
				m.Requested.IsZero() || m.Draining.Before(m.Requested) || m.Drained.Before(m.Draining) ||
				m.Released.Before(m.Drained) || m.DrainedFor() > 4*time.Second {
				t.Errorf("release %d is %+v", i, m)
			}
		}
		moves := map[string]int{}
		for _, p := range seen.plans {
			if p.TaskType != "settle" || p.Server == "" || p.Err != nil || p.Ended.Before(p.Began) || len(p.Expired)+p.Skipped > 0 {
				t.Errorf("a plan is %+v", p)
			}
			for rule, n := range p.Moves {
				moves[rule] += n
			}
		}
		if moves["owner"] != 2 || moves["balance"] != 1 || len(moves) != 2 {
			t.Errorf("the plans gave queues for %v, want 2 without an owner and 1 for balance", moves)
		}
	})
}
