package main

import (
	"testing"

	"github.com/dutyrota/rota/center"
)

func TestStates(t *testing.T) {
	t.Parallel()
	six, run := int64(6), "id"
	live := center.TaskRecord{Servers: 2, DeadServers: 1}
	task := func(change func(*center.TaskRecord)) string {
		r := live
		change(&r)
		return taskState(r)
	}
	for want, got := range map[string]string{
		stateServing:      taskState(live),
		statePaused:       task(func(r *center.TaskRecord) { r.Paused, r.RequestedTotal = true, &six }),
		stateDraining:     task(func(r *center.TaskRecord) { r.RequestedTotal, r.DeadServers = &six, 2 }),
		stateUnserved:     task(func(r *center.TaskRecord) { r.DeadServers = 2 }),
		center.RunRunning: task(func(r *center.TaskRecord) { r.RunID, r.Mode = &run, center.ModeRun }),
		stateIdle:         task(func(r *center.TaskRecord) { r.Mode = center.ModeRun }),
		stateOverdue:      serverState(center.ServerRecord{State: "SERVING", Overdue: true}),
		"STANDBY":         serverState(center.ServerRecord{State: "STANDBY"}),
		stateRemoving:     queueState(center.QueueRecord{Status: "HELD", Removing: true}),
		"HELD":            queueState(center.QueueRecord{Status: "HELD"}),
		"FAILED":          runState(center.Run{State: center.RunFailed, Paused: true}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := runState(center.Run{State: center.RunReady, Paused: true}); got != statePaused {
		t.Errorf("a paused run is %s", got)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	other := "other"
	live := center.TaskRecord{Servers: 1}
	waiting, ready := center.Run{State: center.RunWaiting}, center.Run{State: center.RunReady}
	for _, test := range []struct {
		run  center.Run
		task center.TaskRecord
		want runBlocker
	}{
		{ready, live, runBlocker{}},
		{waiting, center.TaskRecord{}, runBlocker{reason: blockedByUpstreams}},
		{ready, center.TaskRecord{Servers: 1, DeadServers: 1, Paused: true}, runBlocker{reason: blockedByNoServer}},
		{ready, center.TaskRecord{Servers: 1, Paused: true}, runBlocker{reason: blockedByPausedTask}},
		{ready, center.TaskRecord{Servers: 1, RunID: &other}, runBlocker{blockedByRun, other}},
		{center.Run{State: center.RunRunning}, center.TaskRecord{Servers: 1, RunID: &other}, runBlocker{}},
	} {
		if got := blockerOf(test.run, test.task); got != test.want {
			t.Errorf("%s, %+v: %+v, want %+v", test.run.State, test.task, got, test.want)
		}
	}
}
