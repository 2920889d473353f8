package manager_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// shared is a dealer whose items are numbers, 0 to 11, divided by mod(item, total) = index: an item's
// queue depends on the number of queues.
type shared struct {
	cl    *cluster
	name  string
	takes time.Duration
}

func (s *shared) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	for i := range 12 {
		if i%sel.Total == sel.Queue.Index {
			items = append(items, i)
		}
	}
	return items, nil
}

func (s *shared) Execute(_ context.Context, items []int) error {
	s.cl.enter(s.name, items[0])
	defer s.cl.exit(items[0])
	time.Sleep(s.takes)
	return nil
}

// N1: without the barrier an item would have two valid owners while the number of queues changes: that of the old queue
// and that of the new one. inBubble fails if two workers ever execute an item at once.
func TestRepartition(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 2, ThreadNumber: 12}
		var workers []*worker
		for _, name := range []string{"a", "b"} {
			m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", &shared{cl, name, 3 * time.Second}, s))
			if err != nil {
				cl.Fatal(err)
			}
			workers = append(workers, cl.run(m))
			time.Sleep(7 * time.Second)
		}
		for _, total := range []int{3, 5, 2} {
			if err := cl.c.Roster().Operator("test").Repartition(cl.Context(), "settle", total, 0); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			owners, ownerless := cl.owners()
			if sum := owners[0] + owners[1]; sum != total || ownerless > 0 || owners[0]-owners[1] > 1 {
				cl.Fatalf("%d queues: %v per owner, %d have none", total, owners, ownerless)
			}
			before := cl.executed("a") + cl.executed("b")
			time.Sleep(10 * time.Second)
			if cl.executed("a")+cl.executed("b") == before {
				cl.Fatalf("%d queues: no worker executes anything", total)
			}
		}
		for _, w := range workers {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// N3: queues are split and merged while everything runs. A worker whose queue waits for a slow item goes on with its other
// queues. inBubble fails if two workers ever execute an item at once, as they would under two totals.
func TestSplitAndMerge(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 2, ThreadNumber: 12, Splittable: true}
		moves := &moveCounts{of: map[string]int{}}
		var workers []*worker
		for _, name := range []string{"a", "b"} {
			m, err := manager.New(cl.c, manager.Config{Observers: []manager.Observer{moves}},
				manager.Serve("settle", &shared{cl, name, 3 * time.Second}, s))
			if err != nil {
				cl.Fatal(err)
			}
			workers = append(workers, cl.run(m))
			time.Sleep(7 * time.Second)
		}
		for _, total := range []int{6, 12, 3, 1, 4, 2} {
			if err := cl.c.Roster().Operator("test").ResizeAll(cl.Context(), "settle", total, 0); err != nil {
				cl.Fatal(err)
			}
			executed := func() int { return cl.executed("a") + cl.executed("b") }
			before := executed()
			time.Sleep(6 * time.Second)
			if total > 2 && executed() == before {
				cl.Fatalf("on the way to %d queues no worker executes anything", total)
			}
			time.Sleep(60 * time.Second)
			owners, ownerless := cl.owners()
			if owners = append(owners, 0); owners[0]+owners[1] != total || ownerless > 0 || owners[0]-owners[1] > 1 {
				cl.Fatalf("%d queues: %v per owner, %d have none", total, owners, ownerless)
			}
			before = executed()
			time.Sleep(10 * time.Second)
			if executed() == before {
				cl.Fatalf("%d queues: no worker executes anything", total)
			}
		}
		// 2 queues are split, then 6; 12 are merged, then 3; the only one is split, and 4 are merged.
		if moves.of[manager.MoveResized] != 2+6+12+3+1+4 || moves.of[manager.MoveRemoved] > 0 {
			cl.Errorf("the moves were %v", moves.of)
		}
		for _, w := range workers {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// slowQueue is a dealer like work. On worker b, the items of queue 3 take an hour.
type slowQueue struct {
	work
	began map[int]time.Time // when a queue was executed last
}

func (s *slowQueue) Execute(ctx context.Context, items []int) error {
	s.cl.mu.Lock()
	s.began[items[0]] = time.Now()
	s.cl.mu.Unlock()
	if s.name == "b" && items[0] == 3 {
		slow := s.work
		slow.takes = time.Hour
		return slow.Execute(ctx, items)
	}
	return s.work.Execute(ctx, items)
}

// N3: a worker that has given up a queue to be merged works its other queues while the owner of the other part has an
// item that takes long. It does not give them up, too, one after the other.
func TestMergeThatWaits(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 6, ThreadNumber: 6, Splittable: true, SleepTimeInterval: 10 * time.Millisecond}
		began := map[int]time.Time{}
		for _, name := range []string{"a", "b"} {
			d := &slowQueue{work{cl: cl, name: name, takes: time.Second}, began}
			m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", d, s))
			if err != nil {
				cl.Fatal(err)
			}
			cl.run(m)
			time.Sleep(10 * time.Second)
		}
		var owners int
		if cl.scan("SELECT COUNT(DISTINCT cur_server) FROM schedule_queue WHERE queue_id IN ('0', '3')", &owners); owners != 2 {
			cl.Fatal("one worker owns queues 0 and 3")
		}
		// Queue 3 is busy when 0 to 5 of 6 are to become 0 to 2 of 3.
		if err := cl.c.Roster().Operator("test").ResizeAll(cl.Context(), "settle", 3, 0); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if owners, ownerless := cl.owners(); ownerless > 1 {
			cl.Errorf("%v queues per owner, and %d have none, want only the one that waits for queue 3", owners, ownerless)
		}
		cl.mu.Lock()
		for _, queue := range []int{1, 2, 4} { // 2 and 5 have merged
			if since := time.Since(began[queue]); since > time.Minute {
				cl.Errorf("queue %d is not worked for %s", queue, since)
			}
		}
		cl.mu.Unlock()
		time.Sleep(time.Hour)
		if owners, ownerless := cl.owners(); len(owners) != 2 || owners[0]+owners[1] != 3 || ownerless > 0 {
			cl.Errorf("in the end %v queues per owner, and %d without one, want 3 queues", owners, ownerless)
		}
	})
}

// moveCounts counts the moves of queues by their kinds.
type moveCounts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *moveCounts) Moved(m manager.Move) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[m.Kind]++
}

func (c *moveCounts) Heartbeat(time.Duration, error)  {}
func (c *moveCounts) Statistics(time.Duration, error) {}
func (c *moveCounts) Planned(manager.Plan)            {}
func (c *moveCounts) Swept(manager.Sweep)             {}

// N2: named queues come and go while everything runs. If the first owner did not drain a queue that is removed and
// added again at once, the queue would have two owners: inBubble fails if two workers ever execute a queue at once.
func TestNamedQueues(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.Queues, s.QueueNames = 0, []string{"north", "south", "west"}
		slow := func() *work { return &work{takes: 3 * time.Second} }
		a := cl.start("a", slow(), s)
		time.Sleep(time.Second)
		b := cl.start("b", slow(), s)
		time.Sleep(10 * time.Second)
		cl.wantOwners(2, 1)
		names := func(verb func(name string) error, list ...string) {
			cl.Helper()
			for _, name := range list {
				if err := verb(name); err != nil {
					cl.Fatal(err)
				}
			}
		}
		add := func(name string) error {
			return cl.c.Roster().Operator("test").AddQueue(cl.Context(), "settle", name, "")
		}
		remove := func(name string) error {
			return cl.c.Roster().Operator("test").RemoveQueue(cl.Context(), "settle", name)
		}

		names(add, "east")
		time.Sleep(6 * time.Second)
		cl.wantOwners(2, 2)

		names(remove, "north", "west")
		time.Sleep(500 * time.Millisecond)
		names(add, "west") // kept after all, or added again
		time.Sleep(10 * time.Second)
		if n := cl.events("REMOVED"); n == 0 {
			cl.Fatal("north is not removed")
		}
		cl.wantOwners(2, 1)

		for range 5 { // at all stages of the removal
			names(remove, "west")
			time.Sleep(1300 * time.Millisecond)
			if err := add("west"); err != nil {
				cl.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		cl.wantOwners(2, 1)
		before := cl.executed("a") + cl.executed("b")
		time.Sleep(10 * time.Second)
		if n := cl.executed("a") + cl.executed("b") - before; n < 9 {
			cl.Fatalf("%d items in 10 s, by 3 queues whose items take 3 s each, want at least 9", n)
		}
		for _, w := range []*worker{a, b} {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// N2: a queue is removed, and comes back for another server, while its owner executes an item of it.
func TestRemovalWaitsForTheDrain(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.Queues, s.QueueNames = 0, []string{"north", "south"}
		cl.start("a", &work{takes: 20 * time.Second, stub: true}, s)
		time.Sleep(time.Second)
		cl.start("b", &work{takes: 20 * time.Second, stub: true}, s)
		time.Sleep(30 * time.Second)
		cl.wantOwners(1, 1)
		owner := cl.uuidOf("uuid = (SELECT cur_server FROM schedule_queue WHERE queue_id = 'south')")
		before := cl.executed("a") + cl.executed("b")
		for cl.executed("a")+cl.executed("b") < before+2 { // both have just started an item
			time.Sleep(100 * time.Millisecond)
		}
		for _, verb := range []func() error{
			func() error { return cl.c.Roster().Operator("test").RemoveQueue(cl.Context(), "settle", "south") },
			func() error { return cl.c.Roster().Operator("test").PauseServer(cl.Context(), owner, true) },
			func() error { return cl.c.Roster().Operator("test").AddQueue(cl.Context(), "settle", "south", "") },
		} {
			if err := verb(); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(30 * time.Second)
		cl.wantOwners(2)
	})
}

// X11: the owner adopts the limits of one queue while it works it.
func TestLimitsOfAQueueAreAdopted(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		w := &work{takes: time.Second}
		s := fast
		s.Queues, s.ThreadNumber = 1, 4
		a := cl.start("a", w, s)
		time.Sleep(10 * time.Second)
		busy := cl.executed("a")
		rate := 0.1
		setRate := func(to *float64) {
			err := cl.c.Roster().Operator("test").SetQueue(cl.Context(), "settle", "0", func(l *roster.QueueLimits) error {
				l.RatePerSecond = to
				return nil
			})
			if err != nil {
				cl.Fatal(err)
			}
		}
		setRate(&rate)
		time.Sleep(20 * time.Second) // a heartbeat, and what was in flight
		before := cl.executed("a")
		time.Sleep(60 * time.Second)
		if n := cl.executed("a") - before; n < 4 || n > 8 || busy < 5 {
			cl.Fatalf("%d items in a minute, want one in 10 s; %d in 10 s without a limit", n, busy)
		}
		cl.exec("UPDATE schedule_task_type SET mode = 'RUN', version = version + 1") // rejected until the worker starts again
		time.Sleep(10 * time.Second)
		setRate(nil)
		time.Sleep(10 * time.Second)
		before = cl.executed("a")
		time.Sleep(10 * time.Second)
		if n := cl.executed("a") - before; n < 5 {
			cl.Errorf("%d items in 10 s after the end of the limit, while the settings are rejected, want %d", n, busy)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}
