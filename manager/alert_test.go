package manager_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/processor"
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

// A dealer that hangs raises one alert, also when all executors hang: it has one cause.
func TestStalledDealerRaisesOneAlert(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		cl.serveAlerted(alerts, &work{cl: cl, takes: time.Hour, stub: true}, manager.Settings{Queues: 1, StallAfter: time.Minute, DrainTimeout: time.Second})
		time.Sleep(50 * time.Second)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts before stall_after: %v, want none", kinds)
		}
		time.Sleep(20 * time.Minute)
		if kinds := alerts.kinds(); !slices.Equal(kinds, []string{condition.Stalled.Name}) {
			cl.Fatalf("alerts: %v, want %s", kinds, condition.Stalled.Name)
		}
		if a := alerts.all[0]; !strings.HasPrefix(a.Text, "execute of 1 item of queue 0 has been running for 1m") || a.QueueID != "0" || a.Server != cl.uuid() {
			cl.Fatalf("the alert is %+v, want one of this server about queue 0, execute of 1 item, for 1m", a)
		}
	})
}

// A server that calls its dealer for nothing, without a call in flight, says so.
func TestServerWithoutCallsRaisesNoFetch(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := manager.Settings{Queues: 1, RatePerSecond: 0.001, StallAfter: time.Minute}
		cl.serveAlerted(alerts, &work{cl: cl, takes: time.Second}, s)
		time.Sleep(10 * time.Minute)
		if got := alerts.kinds(); !slices.Equal(got, []string{condition.NoFetch.Name}) {
			cl.Errorf("alerts %v, want %s", got, condition.NoFetch.Name)
		}
	})
}

// S14, S16: an owner sees that its queue has crashed too often, as the doctor does, until a page of the queue has been
// executed. A run allows one crash less.
func TestCrashesAreSeenAndEnd(t *testing.T) {
	for mode, most := range map[string]int{center.ModeContinuous: 3, center.ModeRun: 2} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				s := manager.Settings{Queues: 1, Mode: mode, MaxRecoveries: 3, DrainTimeout: time.Second}
				if err := cl.leave(cl.afterCrashes(new(alertLog), most, s)); err != nil { // makes the tables
					cl.Fatal(err)
				}
				if mode == center.ModeRun {
					cl.submit("1")
				}
				for crashes, want := range map[int]int{most: 0, most + 1: 1} {
					alerts := new(alertLog)
					w := cl.afterCrashes(alerts, crashes, s)
					cl.wantCrashes(w, want)
					time.Sleep(time.Minute)
					cl.wantCrashes(w, 0)
					if texts := alerts.ofKind(condition.Crashes); len(texts) != want {
						cl.Errorf("alerts %q after %d crashes, want %d", texts, crashes, want)
					}
					w.stop()
					<-w.done
				}
			})
		})
	}
}

// afterCrashes starts a worker that takes a minute for each page of queues with crashes.
func (cl *cluster) afterCrashes(alerts *alertLog, crashes int, s manager.Settings) *worker {
	cl.Helper()
	cl.exec("UPDATE schedule_queue SET crash_count = ?", crashes)
	w := cl.serveAlerted(alerts, &work{cl: cl, takes: time.Minute}, s)
	time.Sleep(30 * time.Second)
	return w
}

// wantCrashes checks how many conditions CRASHES the doctor and the worker see.
func (cl *cluster) wantCrashes(w *worker, n int) {
	cl.Helper()
	found, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
	if err != nil {
		cl.Fatal(err)
	}
	other := func(c condition.Condition) bool { return c.Kind != condition.Crashes.Name }
	found, seen := slices.DeleteFunc(found, other), slices.DeleteFunc(w.Conditions(), other)
	if len(found) != n || len(seen) != n {
		cl.Errorf("the doctor finds %v, the worker sees %v, want %d", found, seen, n)
	}
}

// A server that has nothing to do, or must not work, raises no alert.
func TestIdleServerRaisesNoAlert(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := manager.Settings{Queues: 2, StallAfter: time.Minute, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: time.Minute}
		cl.serveAlerted(alerts, idle{}, s)
		time.Sleep(10 * time.Minute)
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", true); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Hour)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts: %v, want none", kinds)
		}
	})
}

// greedy is a dealer that ignores Selection.Limit.
type greedy struct{ idle }

func (greedy) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return make([]int, s.Limit+1), nil
}

// S16: a server tells only once that a select ignores its limit. The doctor knows it an hour later, and a process that
// has started meanwhile raises no other alert.
func TestConditionThatIsToldOnceLasts(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := manager.Settings{Queues: 1, SleepTimeInterval: time.Minute, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: time.Minute}
		for range 2 {
			w := cl.serveAlerted(alerts, greedy{}, s)
			time.Sleep(time.Hour)
			if list := alerts.ofKind(condition.Limit); len(list) != 1 {
				cl.Fatalf("alerts %q, want one %s", list, condition.Limit.Name)
			}
			findings, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
			if err != nil {
				cl.Fatal(err)
			}
			if !slices.ContainsFunc(findings, func(c condition.Condition) bool { return c.Kind == condition.Limit.Name && !c.Since.IsZero() }) {
				cl.Errorf("findings %+v, want one %s", findings, condition.Limit.Name)
			}
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// S16: a condition that a server is told of only once raises its alert although the roster could not be told at first.
func TestConditionThatIsToldOnceIsNotLost(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		cl.exec("CREATE TRIGGER full BEFORE INSERT ON schedule_event WHEN NEW.alert <> '' BEGIN SELECT RAISE(ABORT, 'full'); END")
		cl.serveAlerted(alerts, greedy{}, manager.Settings{Queues: 1, SleepTimeInterval: time.Minute})
		time.Sleep(time.Minute)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts that no event has: %v", kinds)
		}
		cl.exec("DROP TRIGGER full")
		time.Sleep(10 * time.Second)
		if kinds := alerts.kinds(); !slices.Equal(kinds, []string{condition.Limit.Name}) {
			cl.Errorf("alerts: %v, want %s", kinds, condition.Limit.Name)
		}
	})
}

// S9: one of the servers without a queue raises an alert, once. Its text says how many have none, and what settings are
// why.
func TestStandbyIsRaisedOnce(t *testing.T) {
	for want, s := range map[string]manager.Settings{
		"2 of 3 workers stand by (queues: 1)":                                        {Queues: 1},
		"2 of 3 workers stand by (queues: 8, max_servers: 1)":                        {Queues: 8, MaxServers: 1},
		"1 of 3 workers stand by (queues: 8, max_in_flight: 2)":                      {Queues: 8, MaxInFlight: 2},
		"3 of 3 workers stand by (queues: 8, max_servers_per_host: 2, require: a=b)": {Queues: 8, MaxServersPerHost: 2, Require: "a=b"},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(cl *cluster) { checkStandbyAlert(cl, s, want) })
		})
	}
}

func checkStandbyAlert(cl *cluster, s manager.Settings, want string) {
	alerts := new(alertLog)
	s.ExecuteNumber = fast.ExecuteNumber
	s.HeartbeatInterval, s.JudgeDeadInterval, s.SleepTimeInterval = 20*time.Second, 100*time.Second, time.Minute
	for range 3 {
		m, err := manager.New(cl.c, manager.Config{Alerter: alerts, Logger: cl.logger()},
			manager.Serve("settle", &work{cl: cl, takes: 100 * time.Millisecond}, s))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		time.Sleep(100 * time.Second)
	}
	time.Sleep(30 * time.Minute)
	if kinds := alerts.kinds(); len(kinds) != 1 || kinds[0] != condition.Standby.Name {
		cl.Fatalf("alerts in half an hour: %v, want one of %s", kinds, condition.Standby.Name)
	}
	a := alerts.all[0]
	if a.Text != want || a.TaskType != "settle" || a.OwnSign != center.DefaultOwnSign {
		cl.Fatalf("the alert is %+v, want Text %q, TaskType \"settle\", OwnSign %v", a, want, center.DefaultOwnSign)
	}
	if n := cl.events("ALERT"); n != 1 {
		cl.Fatalf("%d events, want 1", n)
	}
	time.Sleep(time.Hour)
	if n := len(alerts.kinds()); n != 1 {
		cl.Fatalf("%d alerts in an hour and a half, want 1", n)
	}
}

// X9: a worker that hears hints polls its empty queues once in 30 s. That is no reason for NO_FETCH, however soon calls
// count as stalled.
func TestHintedQueuesAreNoReasonForAnAlert(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := manager.Settings{Queues: 2, Hinted: true, StallAfter: 10 * time.Second}
		cl.serveAlerted(alerts, &store{items: map[int]bool{}}, s)
		time.Sleep(10 * time.Minute)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Fatalf("alerts: %v, want none", kinds)
		}
	})
}
