package manager_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestOneWorkerServesAndLeaves(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(300 * time.Millisecond) // before the first heartbeat: the first plan is made at once
		cl.wantOwners(6)
		if err := a.Ready(); err != nil {
			cl.Fatal(err)
		}
		if cl.executed("a") == 0 {
			cl.Fatal("nothing was executed")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.wantOwners()
	})
}

// Two calls of Run would have one processor: each would take the queues of the other from it.
func TestRunIsCalledOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		first := cl.start("a", nil, fast)
		time.Sleep(10 * time.Second)
		beside := cl.run(first.Manager)
		time.Sleep(time.Minute)
		cl.wantOwners(6)
		if n := strings.Count(cl.logged.String(), "queue lost"); n > 0 {
			t.Errorf("%d queues were lost, want none", n)
		}
		if err := cl.leave(first); err != nil {
			t.Error(err)
		}
		after := cl.run(first.Manager)
		time.Sleep(time.Minute)
		for _, again := range []*worker{beside, after} {
			if err := cl.leave(again); err == nil || !strings.Contains(err.Error(), "may be called once") {
				t.Errorf("another call of Run: error %v, want one that says so", err)
			}
		}
	})
}
