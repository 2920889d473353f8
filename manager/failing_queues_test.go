package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// tenants is a Keyed dealer of the queues A, B and C. A and C have a new item for each select. B has four items, which
// stay until they succeed.
type tenants struct {
	mu    sync.Mutex
	up    bool          // of B
	takes time.Duration // each call for B
	fresh int
	done  map[int]bool
}

// ofB is how many items queue B has, from 0 on. The other queues have negative items.
const ofB = 4

func (d *tenants) Key(item int) string { return fmt.Sprint(item) }

func (d *tenants) Select(_ context.Context, s processor.Selection) (page []int, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Queue.ID != "B" {
		d.fresh--
		return []int{d.fresh}, nil
	}
	for item := range ofB {
		if !d.done[item] {
			page = append(page, item)
		}
	}
	return page, nil
}

func (d *tenants) Execute(ctx context.Context, items []int) error {
	d.mu.Lock()
	up, takes := d.up, d.takes
	d.mu.Unlock()
	if items[0] < 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(takes + time.Millisecond):
	}
	if !up {
		return errors.New("tenant B: connection refused")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range items {
		d.done[item] = true
	}
	return nil
}

func (d *tenants) set(up bool, takes time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up, d.takes = up, takes
	if !up {
		d.done = map[int]bool{}
	}
}

func newTenants() *tenants { return &tenants{done: map[int]bool{}} }

// tenantSettings are settings under which the items of B are not dead for hours.
func tenantSettings() manager.Settings {
	return manager.Settings{
		QueueNames: []string{"A", "B", "C"}, SleepTimeInterval: 10 * time.Second, ItemRetryMax: time.Minute, ItemMaxAttempts: 10_000, DrainTimeout: time.Second,
		HeartbeatInterval: 20 * time.Second, JudgeDeadInterval: 100 * time.Second,
	}
}

// failing returns the queues that fail by their rows.
func (cl *cluster) failing() (queues []string) {
	cl.Helper()
	list, err := ops.New(cl.c).Queues().List(cl.Context(), ops.QueueFilter{TaskType: "settle"})
	if err != nil {
		cl.Fatal(err)
	}
	for _, q := range list {
		if q.FailingFor != nil {
			queues = append(queues, q.QueueID)
		}
	}
	return queues
}

// wantFailing expects that queue B fails, or that no queue does, by the roster and by the status of a worker.
func (cl *cluster) wantFailing(w *worker, want bool, when string) {
	cl.Helper()
	var queues []string
	if want {
		queues = []string{"B"}
	}
	if got, st := cl.failing(), w.Status()[0]; !slices.Equal(got, queues) || st.FailingQueues != len(queues) {
		cl.Errorf("%s: failing queues %v, %d by the status, want %v", when, got, st.FailingQueues, queues)
	}
	if e := w.Status()[0].Failing; e != nil {
		cl.Errorf("%s: failing: %v, want nil: the other queues succeed", when, e)
	}
}

// X7: one queue fails entirely while the others succeed. After ten minutes it is a problem by its name, with one alert,
// until an item of it succeeds.
func TestQueueThatFailsWhileOthersSucceedIsTold(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts, d := new(alertLog), newTenants()
		w := cl.serveAlerted(alerts, d, tenantSettings())
		time.Sleep(9 * time.Minute)
		cl.wantFailing(w, false, "after nine minutes")
		time.Sleep(2 * time.Minute)
		cl.wantFailing(w, true, "after eleven minutes")
		list := alerts.ofKind(condition.QueueFailing)
		if len(list) != 1 || !strings.Contains(list[0], "no item of queue B has succeeded for ") || !strings.Contains(list[0], "tenant B: connection refused") || alerts.all[0].QueueID != "B" {
			cl.Fatalf("alerts %+v, want one about queue B with its error", list)
		}
		time.Sleep(2 * time.Hour)
		if n := len(alerts.ofKind(condition.QueueFailing)); n != 1 {
			cl.Errorf("%d alerts in two hours, want 1", n)
		}
		d.set(true, 0)
		time.Sleep(3 * time.Minute)
		cl.wantFailing(w, false, "after a success")
		if kinds := alerts.kinds(); len(kinds) != 1 {
			cl.Errorf("alerts %v, want the one about queue B only", kinds)
		}
	})
}

// X7: a queue of a paused task type does not fail, and neither does one with a call whose outcome is not known.
func TestQueueThatIsNotWorkedIsNotFailing(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d := newTenants()
		w := cl.serveAlerted(new(alertLog), d, tenantSettings())
		time.Sleep(20 * time.Minute)
		cl.wantFailing(w, true, "after twenty minutes")
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", true); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		cl.wantFailing(w, false, "in a pause")
		time.Sleep(time.Hour)
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", false); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		cl.wantFailing(w, true, "after the pause")
		d.set(true, 0)
		time.Sleep(3 * time.Minute)
		d.set(false, 0)
		time.Sleep(5 * time.Minute)
		d.set(false, 3*time.Hour)
		time.Sleep(time.Hour)
		cl.wantFailing(w, false, "while a call runs that began five minutes after the first failure")
	})
}

// X7: the next owner of a queue knows that it fails, although it would take hours
// until enough items have failed once more.
func TestFailingQueueSurvivesItsOwner(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d, s, alerts := newTenants(), tenantSettings(), new(alertLog)
		s.ItemRetryMax = 6 * time.Hour
		first := cl.serveAlerted(alerts, d, s)
		time.Sleep(time.Hour)
		cl.wantFailing(first, true, "at the first owner")
		told := len(alerts.ofKind(condition.QueueFailing))
		second := cl.serveAlerted(alerts, d, s)
		time.Sleep(time.Minute)
		if err := cl.leave(first); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Minute)
		cl.wantFailing(second, true, "at the next owner")
		if n := len(alerts.ofKind(condition.QueueFailing)); n != told {
			cl.Errorf("%d alerts after the hand-over, %d before", n, told)
		}
		d.set(true, 0)
		time.Sleep(3 * time.Hour)
		cl.wantFailing(second, false, "after a success at the next owner")
	})
}

// X7: a queue does not fail while its permit window is closed.
func TestQueueOutOfItsWindowIsNotFailing(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		s := tenantSettings()
		s.PermitRunStartTime, s.PermitRunEndTime, s.TimeZone = "0 0 * * * ?", "0 30 * * * ?", "UTC"
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		w := cl.serveAlerted(new(alertLog), newTenants(), s)
		time.Sleep(20 * time.Minute)
		cl.wantFailing(w, true, "in the window")
		time.Sleep(15 * time.Minute)
		cl.wantFailing(w, false, "after the window")
		time.Sleep(40 * time.Minute)
		cl.wantFailing(w, true, "in the next window")
	})
}
