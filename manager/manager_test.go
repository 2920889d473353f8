package manager_test

import (
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
