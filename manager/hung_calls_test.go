package manager_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// hangs is a dealer whose items are the queue's index. Its first call of Execute for the queue hangs for half an hour and
// ignores its context.
type hangs struct {
	queue int // -1: none hangs

	mu     sync.Mutex
	hung   bool
	latest map[int]time.Time // when a call for the queue ended
}

func (*hangs) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (h *hangs) Execute(_ context.Context, items []int) error {
	takes := 10 * time.Millisecond
	h.mu.Lock()
	if items[0] == h.queue && !h.hung {
		h.hung, takes = true, 30*time.Minute
	}
	h.mu.Unlock()
	time.Sleep(takes)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil {
		h.latest = map[int]time.Time{}
	}
	h.latest[items[0]] = time.Now()
	return nil
}

// idleFor returns how long ago a call for the queue ended.
func (h *hangs) idleFor(queue int) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.latest[queue])
}

// runs starts a worker with 4 queues.
func (h *hangs) runs(cl *cluster) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second},
		manager.Serve("settle", h, manager.Settings{Queues: 4, SleepTimeInterval: 100 * time.Millisecond, DrainTimeout: 3 * time.Second, StallAfter: time.Minute}))
	if err != nil {
		cl.Fatal(err)
	}
	w := cl.run(m)
	time.Sleep(5 * time.Second)
	return w
}

// expireNewest does what another server does after a partition of the server that joined last.
func (cl *cluster) expireNewest() {
	cl.Helper()
	cl.exec("DELETE FROM schedule_server WHERE uuid = ?", cl.uuidOf("1 = 1 ORDER BY register_time DESC LIMIT 1"))
	cl.exec("UPDATE schedule_task_running SET membership_version = membership_version + 1")
}

// wantOwner checks which server owns a queue; "" for none.
func (cl *cluster) wantOwner(queue, uuid string) {
	cl.Helper()
	var owner string
	cl.scan("SELECT COALESCE(cur_server, '') FROM schedule_queue WHERE queue_id = '"+queue+"'", &owner)
	if owner != uuid {
		cl.Fatalf("queue %s belongs to %q, want %q", queue, owner, uuid)
	}
}

// P9: after an expiry, another server gets the queue whose call still hangs, and the server that joins anew gets its share
// of the others. It may get the queue when the call has ended.
func TestHungCallMovesItsQueue(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		b, a := &hangs{queue: -1}, &hangs{queue: 1}
		workers := []*worker{b.runs(cl), a.runs(cl)}
		other := cl.uuidOf("1 = 1 ORDER BY register_time LIMIT 1")
		cl.expireNewest()
		time.Sleep(30 * time.Second)
		cl.wantOwners(2, 2)
		cl.wantOwner("1", other)
		for queue := range 4 {
			if idle := min(a.idleFor(queue), b.idleFor(queue)); idle > 5*time.Second {
				t.Errorf("queue %d was executed %s ago", queue, idle)
			}
		}
		var hung string
		cl.scan("SELECT COALESCE(MAX(hung_queues), '') FROM schedule_server", &hung)
		if hung != `["1"]` {
			t.Errorf("hung_queues = %s", hung)
		}
		time.Sleep(30 * time.Minute)
		cl.scan("SELECT COALESCE(MAX(hung_queues), '') FROM schedule_server", &hung)
		if hung != "" {
			t.Errorf("after the call, hung_queues = %s", hung)
		}
		if err := cl.leave(workers[0]); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		cl.wantOwners(4)
		if idle := a.idleFor(1); idle > 5*time.Second {
			t.Errorf("the queue of the call that has ended was executed %s ago", idle)
		}
		if err := cl.leave(workers[1]); err != nil {
			t.Error(err)
		}
	})
}

// P9: without another server the queue has no owner until the call has ended.
func TestHungCallOfTheOnlyServer(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		a := &hangs{queue: 1}
		w := a.runs(cl)
		cl.expireNewest()
		time.Sleep(5 * time.Minute)
		cl.wantOwner("1", "")
		cl.wantOwners(3)
		for _, queue := range []int{0, 2, 3} {
			if idle := a.idleFor(queue); idle > 5*time.Second {
				t.Errorf("queue %d was executed %s ago", queue, idle)
			}
		}
		time.Sleep(25 * time.Minute)
		cl.wantOwners(4)
		if idle := a.idleFor(1); idle > 5*time.Second {
			t.Errorf("the queue of the call that has ended was executed %s ago", idle)
		}
		if err := cl.leave(w); err != nil {
			t.Error(err)
		}
	})
}

// P9: an entry of hung_queues that cannot be cleared, because the database refuses it, is cleared later.
func TestHungQueueIsClearedAfterAFailure(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		a := &hangs{queue: 1}
		w := a.runs(cl)
		cl.expireNewest()
		time.Sleep(29 * time.Minute)
		cl.exec("CREATE TRIGGER no_clear BEFORE UPDATE OF hung_queues ON schedule_server BEGIN SELECT RAISE(ABORT, 'not now'); END")
		time.Sleep(2 * time.Minute)
		cl.wantOwner("1", "")
		cl.exec("DROP TRIGGER no_clear")
		time.Sleep(10 * time.Second)
		cl.wantOwners(4)
		if err := cl.leave(w); err != nil {
			t.Error(err)
		}
	})
}
