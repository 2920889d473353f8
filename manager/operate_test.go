package manager_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
)

// alertLog records the alerts of a worker.
type alertLog struct {
	mu  sync.Mutex
	all []manager.Alert
}

// Alert implements manager.Alerter.
func (a *alertLog) Alert(one manager.Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, one)
}

func (a *alertLog) kinds() (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		list = append(list, one.Kind)
	}
	return list
}

// S9: one of the servers without a queue raises an alert, once.
func TestStandbyIsRaisedOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		log := logrus.New()
		log.SetOutput(cl.logged)
		s := fast
		s.Queues, s.HeartbeatInterval, s.JudgeDeadInterval, s.SleepTimeInterval = 1, 20*time.Second, 100*time.Second, time.Minute
		for range 3 {
			m, err := manager.New(cl.c, manager.Config{Alerter: alerts, Logger: log},
				manager.Serve("settle", &work{cl: cl, takes: 100 * time.Millisecond}, s))
			if err != nil {
				cl.Fatal(err)
			}
			cl.run(m)
			time.Sleep(100 * time.Second)
		}
		time.Sleep(30 * time.Minute)
		if kinds := alerts.kinds(); len(kinds) != 1 || kinds[0] != center.AlertStandby {
			cl.Fatalf("alerts in half an hour: %v, want one of %s", kinds, center.AlertStandby)
		}
		a := alerts.all[0]
		if a.Text != "2 of 3 servers stand by (queues: 1)" || a.TaskType != "settle" || a.OwnSign != center.DefaultOwnSign {
			cl.Fatalf("the alert is %+v, want Text \"2 of 3 servers stand by (queues: 1)\", TaskType \"settle\", OwnSign %v", a, center.DefaultOwnSign)
		}
		if n := cl.events("ALERT"); n != 1 {
			cl.Fatalf("%d events, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := len(alerts.kinds()); n != 2 {
			cl.Fatalf("%d alerts in an hour and a half, want 2", n)
		}
	})
}

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
		if _, err := cl.c.Servers().Drain(cl.Context(), first, true, "test"); err != nil {
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
		if err := cl.c.Servers().Resume(cl.Context(), first, "test"); err != nil {
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
