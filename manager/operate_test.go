package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// H5: an operator takes the queues from a live server. Other servers work them at once, and the old owner cancels what is in
// flight when it learns of it.
func TestForcedDrain(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.ThreadNumber = 6
		a := cl.start("a", &work{takes: time.Hour}, s)
		time.Sleep(time.Second)
		first := cl.uuid()
		cl.start("b", nil, s)
		time.Sleep(10 * time.Second)
		cl.wantOwners(6) // a executes an item of each, and hands none over
		if _, err := cl.c.Roster().Operator("test").DrainServer(cl.Context(), first, true); err != nil {
			cl.Fatal(err)
		}
		if n := cl.events("FORCED"); n != 6 {
			cl.Fatalf("%d queues were recorded as FORCED, want 6", n)
		}
		cl.mu.Lock()
		cl.inFlight = map[int]string{} // force makes them overlap for a heartbeat
		cl.mu.Unlock()
		time.Sleep(5 * time.Second)
		if cl.executed("b") == 0 || cl.inFlightOf("a") > 0 {
			cl.Fatalf("b has executed %d times, a still executes %d, want more than 0, and 0", cl.executed("b"), cl.inFlightOf("a"))
		}
		if err := a.Ready(); err != nil {
			cl.Fatalf("not ready: %v", err)
		}
		if err := cl.c.Roster().Operator("test").PauseServer(cl.Context(), first, false); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cl.wantOwners(3, 3)
	})
}

// An environment that was deleted while its only process was away exists again when the process is back.
func TestDeletedEnvironmentComesBack(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.ExpireOwnSignInterval = time.Minute
		cl.start("a", nil, s)
		time.Sleep(time.Second)
		cl.exec("INSERT INTO schedule_task_running (task_type, own_sign, queue_total) VALUES ('settle', 'OLD', 1)")
		cl.exec("INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, gmt_modified) VALUES ('settle', 'OLD', '0', 0, rota_now())")
		time.Sleep(50 * time.Second)
		if n := cl.events("FORGOTTEN"); n != 0 {
			cl.Fatal("expired before its time")
		}
		time.Sleep(50 * time.Second)
		if n := cl.events("FORGOTTEN"); n != 1 {
			cl.Fatalf("%d environments expired, want 1", n)
		}
		// As if this process's own environment had been deleted: its roster and the server's row are gone.
		cl.exec("DELETE FROM schedule_queue")
		cl.exec("UPDATE schedule_task_running SET queue_total = 0, epoch_high = 50")
		cl.exec("DELETE FROM schedule_server")
		before := cl.executed("a")
		time.Sleep(20 * time.Second)
		cl.wantOwners(6)
		if cl.executed("a") == before {
			cl.Fatal("work does not go on")
		}
	})
}

// A pause, of a task type or of a server, drains and keeps the queues. Work goes on when it ends.
func TestPause(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		pauses := map[string]func(paused bool) error{
			"task": func(paused bool) error { return cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", paused) },
			"server": func(paused bool) error {
				return cl.c.Roster().Operator("test").PauseServer(cl.Context(), cl.uuid(), paused)
			},
		}
		for name, pause := range pauses {
			if err := pause(true); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			before := cl.executed("a")
			time.Sleep(time.Minute)
			if cl.executed("a") != before {
				cl.Fatalf("%s: work goes on", name)
			}
			cl.wantOwners(6)
			if err := pause(false); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if cl.executed("a") == before {
				cl.Fatalf("%s: work does not go on", name)
			}
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: a worker that leaves keeps no queue that others could work, although an operator has resumed it: it says so again.
func TestResumedWhileLeaving(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.ThreadNumber, s.DrainTimeout = 1, time.Hour
		a := cl.start("a", &work{takes: time.Hour}, s)
		time.Sleep(time.Second)
		first := cl.uuid()
		a.stop()
		time.Sleep(10 * time.Second)
		if err := cl.c.Roster().Operator("test").PauseServer(cl.Context(), first, false); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cl.start("b", nil, s)
		time.Sleep(30 * time.Second)
		cl.wantOwners(5, 1) // a executes an item of one
	})
}

// P7, N1: the only worker is drained and goes on. Another number of queues takes all of them from it: the doctor says so,
// and the worker has them again when it is resumed.
func TestOtherNumberOfQueuesOfADrainedWorker(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.start("a", &work{takes: 100 * time.Millisecond}, fast)
		time.Sleep(10 * time.Second)
		uuid := cl.uuid()
		operator := cl.c.Roster().Operator("test")
		if _, err := operator.DrainServer(cl.Context(), uuid, false); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		before := cl.executed("a")
		time.Sleep(10 * time.Second)
		if cl.executed("a") == before {
			cl.Error("the last worker does not go on while it is drained")
		}
		if err := operator.Repartition(cl.Context(), "settle", 8, 0); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		found, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
		tells := func(c condition.Condition) bool {
			return c.Kind == condition.NoEligible.Name && c.Status == condition.Problem
		}
		if _, ownerless := cl.owners(); err != nil || ownerless != 8 || !slices.ContainsFunc(found, tells) {
			cl.Errorf("%d queues have no owner, want 8, and the findings are %+v: %v", ownerless, found, err)
		}
		if err := operator.PauseServer(cl.Context(), uuid, false); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cl.wantOwners(8)
	})
}
