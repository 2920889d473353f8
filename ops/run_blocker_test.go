package ops

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/runs"
)

func TestBlockers(t *testing.T) {
	t.Parallel()
	other := "other"
	live := TaskRecord{Servers: 1}
	now := time.Unix(1_800_000_000, 0)
	waiting, ready := runs.Run{State: runs.Waiting}, runs.Run{State: runs.Ready}
	for _, test := range []struct {
		run  runs.Run
		task TaskRecord
		want RunBlocker
	}{
		{ready, live, RunBlocker{}},
		{waiting, TaskRecord{}, RunBlocker{Reason: BlockedByUpstreams}},
		{ready, TaskRecord{Servers: 1, DeadServers: 1, Paused: true}, RunBlocker{Reason: BlockedByNoServer}},
		{ready, TaskRecord{Servers: 1, Paused: true}, RunBlocker{Reason: BlockedByPausedTask}},
		{runs.Run{State: runs.Ready, NotBefore: now.Add(1)}, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{Reason: BlockedByTime, Until: now.Add(1)}},
		{runs.Run{State: runs.Ready, NotBefore: now}, live, RunBlocker{}},
		{ready, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{Reason: BlockedByRun, RunID: other}},
		{runs.Run{State: runs.Running}, TaskRecord{Servers: 1, RunID: &other}, RunBlocker{}},
	} {
		if got := blockerOf(test.run, test.task, now); got != test.want {
			t.Errorf("%s, %+v: %+v, want %+v", test.run.State, test.task, got, test.want)
		}
	}
}
