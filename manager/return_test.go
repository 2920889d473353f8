package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
)

// startNamed starts a worker that keeps its queues for its return.
func (cl *cluster) startNamed(name string, within time.Duration) *worker {
	cl.Helper()
	d := &work{cl: cl, name: name, takes: 100 * time.Millisecond}
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Name: name, ReturnWithin: within}, manager.Serve("settle", d, manager.Settings{Queues: 9, SleepTimeInterval: 10 * time.Millisecond}))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// epochs returns the sum of all epochs: it rises with each change of an owner.
func (cl *cluster) epochs() (sum int) {
	cl.Helper()
	cl.scan("SELECT SUM(epoch) FROM schedule_queue", &sum)
	return sum
}

// P13: workers with names are restarted one after the other. No queue moves, and those of the others go on.
func TestNamedWorkersReturn(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		names := []string{"web-0", "web-1", "web-2"}
		workers := map[string]*worker{}
		for _, name := range names {
			workers[name] = cl.startNamed(name, time.Minute)
			time.Sleep(10 * time.Second)
		}
		cl.wantOwned("three workers", 3, 3, 3)
		requests, epochs := cl.events("REQUESTED"), cl.epochs()
		for _, name := range names {
			if err := cl.leave(workers[name]); err != nil {
				cl.Fatal(err)
			}
			cl.wantOwned(name+" is away", 3, 3)
			workers[name] = cl.startNamed(name, time.Minute)
			cl.wantOwned(name+" is back", 3, 3, 3)
		}
		if got := cl.epochs() - epochs; got != 18 || cl.events("REQUESTED") != requests || cl.events("RESERVED") != 9 {
			cl.Errorf("epochs rose by %d, want 18; %d new requests, want none; %d queues reserved, want 9", got, cl.events("REQUESTED")-requests, cl.events("RESERVED"))
		}
	})
}

// P13: the others get the queues of a worker that does not return in time, with a heartbeat after that.
func TestNamedWorkerDoesNotReturn(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		first := cl.startNamed("web-0", time.Minute)
		time.Sleep(time.Second)
		cl.startNamed("web-1", time.Minute)
		cl.wantOwned("two workers", 5, 4)
		if err := cl.leave(first); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(45 * time.Second)
		cl.wantOwned("web-0 is away", 4)
		var reserved int
		if cl.scan("SELECT COUNT(*) FROM schedule_queue WHERE reserved_for = 'web-0'", &reserved); reserved != 5 {
			cl.Errorf("%d queues are reserved, want 5", reserved)
		}
		time.Sleep(time.Minute - 55*time.Second + 3*time.Second)
		cl.wantOwned("the time is over", 9)
	})
}

// P13: a worker that has nothing in hand when it leaves keeps its queues, too.
func TestIdleNamedWorkerReserves(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.startIdle("web-1")
		first := cl.startIdle("web-0")
		cl.wantOwned("two workers", 5, 4)
		if err := cl.leave(first); err != nil {
			cl.Fatal(err)
		}
		if n := cl.events("RESERVED"); n != 4 {
			cl.Errorf("%d queues are reserved, want 4", n)
		}
	})
}

// startIdle starts a worker that keeps its queues for its return, and has no items.
func (cl *cluster) startIdle(name string) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Name: name, ReturnWithin: time.Minute}, manager.Serve("settle", idle{}, manager.Settings{Queues: 9}))
	if err != nil {
		cl.Fatal(err)
	}
	w := cl.run(m)
	time.Sleep(10 * time.Second)
	return w
}

func TestReturnIsChecked(t *testing.T) {
	for _, test := range []struct {
		config manager.Config
		want   string
	}{
		{manager.Config{ReturnWithin: time.Second}, "return_within (1s) needs a name, by which the process is known when it returns"},
		{manager.Config{Name: "a", ReturnWithin: 2 * time.Hour}, "return_within (2h0m0s) must be between 0s and 1h0m0s"},
		{manager.Config{Name: "a\nb"}, `name ("a\nb") must be UTF-8 with at most 100 bytes, and no control characters`},
	} {
		if _, err := manager.New(nil, test.config, manager.Serve("settle", &work{}, manager.Settings{})); err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.config, err, test.want)
		}
	}
}
