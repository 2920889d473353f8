package center

import "testing"

func TestBlockers(t *testing.T) {
	t.Parallel()
	other := "other"
	live := TaskRecord{Servers: 1}
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
		{ready, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{BlockedByRun, other}},
		{Run{State: RunRunning}, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{}},
	} {
		if got := blockerOf(test.run, test.task); got != test.want {
			t.Errorf("%s, %+v: %+v, want %+v", test.run.State, test.task, got, test.want)
		}
	}
}
