package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// Bad settings are rejected while a worker runs, and the server's row says why until they are corrected.
func TestRejectedSettingsAreReported(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.serveAlerted(new(alertLog), idle{}, manager.Settings{Queues: 1})
		time.Sleep(5 * time.Second)
		for set, want := range map[string]string{
			"processor_type = 'NOTSLEEP'":            "settings rejected: processor_type (NOTSLEEP) needs a dealer that is Keyed",
			"permit_run_start_time = '0 0 0 30 2 ?'": "settings rejected: permit_run_start_time",
			"mode = 'RUN'":                           "settings rejected: mode (RUN) takes effect when the worker starts again",
			"thread_number = 20000":                  "settings rejected: thread_number (20000) must be between 1 and 10000",

			"permit_run_start_time = '0 0 2 * * ?', time_zone = 'Nowhere'": "settings rejected: time_zone",
		} {
			cl.exec("UPDATE schedule_task_type SET " + set + ", version = version + 1")
			time.Sleep(15 * time.Second) // the statistics are written once in ten seconds
			if age := cl.lastError().LastErrorAge; age == nil || *age < 11 || *age > 15 {
				cl.Errorf("%s: the error is %v s old, want 11 s to 15 s", set, age)
			}
			var got string
			cl.scan("SELECT last_error FROM schedule_server", &got)
			if !strings.HasPrefix(got, want) {
				cl.Errorf("%s:\n got %s\nwant %s", set, got, want)
			}
			cl.exec("UPDATE schedule_task_type SET processor_type = 'SLEEP', mode = 'CONTINUOUS', permit_run_start_time = '', thread_number = 5, time_zone = 'UTC', version = version + 1")
			time.Sleep(15 * time.Second)
			if s := cl.lastError(); s.LastError != "" || s.LastErrorAt != nil {
				cl.Errorf("%s: the error is %q, at %v, want none", set, s.LastError, s.LastErrorAt)
			}
		}
	})
}

// S5: the two intervals change while workers run. No lease expires, and no server is expired.
func TestIntervalsChangeUnderWay(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		a, b := cl.start("a", nil, fast), cl.start("b", nil, fast)
		time.Sleep(20 * time.Second)
		for _, change := range []struct {
			heartbeat, judgeDead time.Duration
			took                 time.Duration // at most, until the rows say so
		}{
			{10 * time.Second, time.Minute, 10 * time.Second},
			{100 * time.Millisecond, time.Second, 30 * time.Second},
			{2 * time.Second, 10 * time.Second, 5 * time.Second},
		} {
			cl.exec(fmt.Sprintf("UPDATE schedule_task_type SET heartbeat_interval_ms = %d, judge_dead_interval_ms = %d, version = version + 1", change.heartbeat.Milliseconds(), change.judgeDead.Milliseconds()))
			time.Sleep(change.took)
			servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
			if err != nil {
				cl.Fatal(err)
			}
			beats := cl.beats()
			for _, s := range servers {
				if s.JudgeDead != change.judgeDead.Milliseconds() {
					cl.Errorf("after %s, the row of a server says %d ms, want %s", change.took, s.JudgeDead, change.judgeDead)
				}
			}
			time.Sleep(100 * time.Second)
			if n, want := cl.beats()-beats, int64(2*100*time.Second/change.heartbeat); n < want*9/10 || n > want*11/10 {
				cl.Errorf("%d heartbeats in 100 s, want %d", n, want)
			}
		}
		if log := cl.logged.String(); strings.Contains(log, "lease expired") || cl.events("EXPIRED") != 0 {
			cl.Errorf("a change has cost a lease:\n%s", log)
		}
		for _, w := range []*worker{a, b} {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// beats returns how many heartbeats the servers have sent.
func (cl *cluster) beats() (n int64) {
	cl.Helper()
	cl.scan("SELECT SUM(beat_count) FROM schedule_server", &n)
	return n
}

// A shorter judge_dead_interval is in force at once: a server that ends is expired by it.
func TestShorterIntervalsAreInForce(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		slow := fast
		slow.HeartbeatInterval, slow.JudgeDeadInterval = time.Minute, time.Hour
		a := cl.start("a", nil, slow)
		time.Sleep(2 * time.Hour)
		cl.exec("UPDATE schedule_task_type SET heartbeat_interval_ms = 2000, judge_dead_interval_ms = 10000, version = version + 1")
		time.Sleep(2 * time.Minute)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('dead', 'settle', 'SERVING', rota_now(), rota_now())`)
		cl.noteEdits()
		time.Sleep(16 * time.Second)
		if n := cl.events("EXPIRED"); n != 1 {
			cl.Errorf("%d servers were recorded as expired, want 1", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// lastError returns the row of the only server.
func (cl *cluster) lastError() ops.ServerRecord {
	cl.Helper()
	servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
	if err != nil || len(servers) != 1 {
		cl.Fatalf("servers are %+v (error %v), want one", servers, err)
	}
	return servers[0]
}

// A server's row has the settings that its program gave, and when its dealer failed.
func TestAServerReportsItself(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		given := manager.Settings{Queues: 1, ExecuteNumber: 3, ItemRetry: time.Hour, ItemRetryMax: time.Hour}
		cl.serveAlerted(new(alertLog), broken{}, given)
		time.Sleep(20 * time.Second)
		s := cl.lastError()
		want := map[string]string{"queues": "1", "execute_number": "3", "item_retry": "1h0m0s", "item_retry_max": "1h0m0s"}
		if diff := cmp.Diff(want, s.GivenSettings); diff != "" {
			cl.Errorf("(-want +got):\n%s", diff)
		}
		// The first select failed at once, and the queue is idle for half a minute at least.
		switch {
		case s.LastError == "" || s.LastErrorAge == nil:
			cl.Error("the server reports no error")
		case *s.LastErrorAge < 15 || *s.LastErrorAge > 21:
			cl.Errorf("the last error is %.0f s old, want 15 s to 21 s", *s.LastErrorAge)
		}
	})
}

// broken cannot select.
type broken struct{ idle }

func (broken) Select(context.Context, processor.Selection) ([]int, error) {
	return nil, errors.New("no such table")
}

// Settings that are changed in the row take effect at once. Bad ones are rejected.
func TestSettingsTakeEffectWhileRunning(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: time.Millisecond}, manager.Settings{Queues: 1, SleepTimeInterval: time.Hour})
		time.Sleep(5 * time.Second)
		if n := cl.executed("a"); n != 1 {
			cl.Fatalf("%d executions, want 1", n)
		}
		cl.exec("UPDATE schedule_task_type SET sleep_time_interval_ms = 1000, item_retry_max_ms = 1, version = version + 1")
		time.Sleep(5 * time.Second)
		if n := cl.executed("a"); n != 1 {
			cl.Fatal("bad settings were applied")
		}
		cl.exec("UPDATE schedule_task_type SET item_retry_max_ms = 300000, version = version + 1")
		time.Sleep(10 * time.Second)
		if n := cl.executed("a"); n < 5 {
			cl.Fatalf("%d executions: the new settings are not in force, want at least 5", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// A zero in the row is the default, as it is in code. A task type whose row was deleted goes on.
func TestSpoiledRows(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "settle", fast); err != nil {
			cl.Fatal(err)
		}
		cl.exec("UPDATE schedule_task_type SET heartbeat_interval_ms = 0, judge_dead_interval_ms = 0, drain_timeout_ms = 0")
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.wantOwners(6)
		cl.exec("DELETE FROM schedule_task_type")
		uuid := cl.uuid()
		time.Sleep(5 * time.Minute)
		if cl.uuid() != uuid {
			cl.Fatal("joined again")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

func TestBadInput(t *testing.T) {
	dealer := &work{}
	runsAfter := func(upstream string) manager.Settings {
		return manager.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: upstream}}}
	}
	cases := map[string]struct {
		tasks []manager.Task
		want  string
	}{
		"none": {nil, "no task: a manager needs at least one"},
		"a cycle": {
			[]manager.Task{manager.Serve("x", dealer, runsAfter("y")), manager.Serve("y", dealer, runsAfter("x"))},
			"task x: after makes a cycle: x after y after x",
		},
		"after what has no runs": {
			[]manager.Task{manager.Serve("x", dealer, runsAfter("y")), manager.Serve("y", dealer, fast)},
			"task x: after y: mode is CONTINUOUS, and only task types of mode RUN have runs",
		},
		"twice": {[]manager.Task{manager.Serve("x", dealer, fast), manager.Serve("x", dealer, fast)}, "task x was given twice: a process serves a task type once"},
		"dead":  {[]manager.Task{manager.Serve("x", dealer, manager.Settings{Queues: 1, JudgeDeadInterval: 8 * time.Second})}, "task x: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)"},
		"zero":  {[]manager.Task{manager.Serve("x", dealer, manager.Settings{})}, "task x: queues (0) must be between 1 and 100000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := manager.New(nil, manager.Config{}, c.tasks...); err == nil || err.Error() != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
		})
	}
}
