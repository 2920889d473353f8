package ops

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

func TestBlockers(t *testing.T) {
	t.Parallel()
	other := "other"
	live := TaskRecord{Servers: 1}
	total, split := int64(8), sqldb.Map[int]{"3": 16}
	now := time.Unix(1_800_000_000, 0)
	waiting, ready := runs.Run{State: runs.Waiting}, runs.Run{State: runs.Ready}
	for _, test := range []struct {
		run  runs.Run
		task TaskRecord
		want string
	}{
		{ready, live, ""},
		{waiting, TaskRecord{}, "it waits for its upstreams"},
		{ready, TaskRecord{Servers: 1, DeadServers: 1, Paused: true}, "no live worker serves sweep"},
		{ready, TaskRecord{Servers: 1, Paused: true}, "sweep is paused"},
		{runs.Run{State: runs.Ready, NotBefore: now.Add(1)}, TaskRecord{Servers: 1, RunID: &other}, "it does not begin before " + now.UTC().Format(time.RFC3339)},
		{runs.Run{State: runs.Ready, NotBefore: now}, live, ""},
		{ready, TaskRecord{Servers: 1, RunID: &other}, "it waits for the end of run other"},
		{runs.Run{State: runs.Running}, TaskRecord{Servers: 1, RunID: &other}, ""},
		{ready, TaskRecord{Servers: 1, RequestedTotal: &total}, "all workers of sweep drain, until it has 8 queues"},
		{runs.Run{State: runs.Running}, TaskRecord{Servers: 1, RequestedTotal: &total, RunID: &other}, "all workers of sweep drain, until it has 8 queues"},
		{ready, TaskRecord{Servers: 1, Resizing: split}, "it waits until 1 queue is split or merged"},
		{ready, TaskRecord{Servers: 1, Resizing: split, RunID: &other}, "it waits for the end of run other"},
		{runs.Run{State: runs.Running}, TaskRecord{Servers: 1, Resizing: split, RunID: &other}, ""},
	} {
		test.run.TaskType = "sweep"
		if got := blockerOf(test.run, test.task, now); got != test.want {
			t.Errorf("%s, %+v: %q, want %q", test.run.State, test.task, got, test.want)
		}
	}
}
