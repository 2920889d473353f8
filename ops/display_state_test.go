package ops

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

func TestDisplayStates(t *testing.T) {
	t.Parallel()
	six, run := int64(6), "id"
	live := TaskRecord{Servers: 2, DeadServers: 1}
	task := func(change func(*TaskRecord)) string {
		r := live
		change(&r)
		return r.DisplayState()
	}
	for want, got := range map[string]string{
		StateServing:  live.DisplayState(),
		StatePaused:   task(func(r *TaskRecord) { r.Paused, r.RequestedTotal = true, &six }),
		StateDraining: task(func(r *TaskRecord) { r.RequestedTotal = &six }),
		runs.Running:  task(func(r *TaskRecord) { r.RunID, r.Mode = &run, center.ModeRun }),
		StateIdle:     task(func(r *TaskRecord) { r.Mode = center.ModeRun }),
		StateOverdue:  ServerRecord{State: StateServing, Overdue: true}.DisplayState(),
		StateStandby:  ServerRecord{State: StateStandby}.DisplayState(),
		StateRemoving: QueueRecord{Status: "HELD", Removing: true}.DisplayState(),
		"HELD":        QueueRecord{Status: "HELD"}.DisplayState(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, mode := range []string{center.ModeContinuous, center.ModeRun} {
		unserved := func(r *TaskRecord) { r.DeadServers, r.Mode, r.RunID, r.RequestedTotal = 2, mode, &run, &six }
		if got := task(unserved); got != StateUnserved {
			t.Errorf("a task type of mode %s without a live server is %s, want UNSERVED", mode, got)
		}
	}
	if got := (ServerRecord{State: StateStandby, Queues: 1}).DisplayState(); got != StateServing {
		t.Errorf("a worker that has just got its first queue is %s, want SERVING", got)
	}
	now := time.Now()
	for state, want := range map[string]string{StateServing: StateFailing, StateDraining: StateDraining} {
		if got := (ServerRecord{State: state, FailingSince: &now}).DisplayState(); got != want {
			t.Errorf("a failing worker that is %s is %s, want %s", state, got, want)
		}
	}
	if got := (runs.Run{State: runs.Failed, Paused: true}).DisplayState(); got != runs.Failed {
		t.Errorf("a failed run that was paused is %s", got)
	}
	if got := (runs.Run{State: runs.Ready, Paused: true}).DisplayState(); got != StatePaused {
		t.Errorf("a paused run is %s", got)
	}
}
