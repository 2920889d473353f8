package center

import (
	"testing"
	"time"
)

func TestBlockers(t *testing.T) {
	t.Parallel()
	other := "other"
	live := TaskRecord{Servers: 1}
	now := time.Unix(1_800_000_000, 0)
	waiting, ready := Run{State: RunWaiting}, Run{State: RunReady}
	for _, test := range []struct {
		run  Run
		task TaskRecord
		want RunBlocker
	}{
		{ready, live, RunBlocker{}},
		{waiting, TaskRecord{}, RunBlocker{Reason: BlockedByUpstreams}},
		{ready, TaskRecord{Servers: 1, DeadServers: 1, Paused: true}, RunBlocker{Reason: BlockedByNoServer}},
		{ready, TaskRecord{Servers: 1, Paused: true}, RunBlocker{Reason: BlockedByPausedTask}},
		{Run{State: RunReady, NotBefore: now.Add(1)}, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{Reason: BlockedByTime, Until: now.Add(1)}},
		{Run{State: RunReady, NotBefore: now}, live, RunBlocker{}},
		{ready, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{Reason: BlockedByRun, RunID: other}},
		{Run{State: RunRunning}, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{}},
	} {
		if got := blockerOf(test.run, test.task, now); got != test.want {
			t.Errorf("%s, %+v: %+v, want %+v", test.run.State, test.task, got, test.want)
		}
	}
}
