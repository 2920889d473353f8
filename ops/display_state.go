package ops

import (
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// The states that no column holds. DisplayState derives them from several columns.
const (
	StateUnserved = "UNSERVED" // no live server serves the task type
	StateIdle     = "IDLE"     // the task type has mode RUN and no run is RUNNING
	StateFailing  = "FAILING"  // the calls of the server do nothing but fail
	StateOverdue  = "OVERDUE"  // the server has sent no heartbeat for judge_dead_interval
	StateRemoving = "REMOVING" // the queue is removed as soon as its owner has drained it
	StateResizing = "RESIZING" // the queue is split or merged as soon as its owner has drained it
)

// DisplayState returns what the task type does in its environment: PAUSED, UNSERVED, DRAINING (every server drains,
// since the number of queues changes), RUNNING, IDLE or SERVING. The first that applies wins. Package doctor says what
// is wrong with it.
func (t TaskRecord) DisplayState() string {
	switch {
	case t.Paused:
		return StatePaused
	case !t.Served():
		return StateUnserved
	case t.RequestedTotal != nil:
		return StateDraining
	case t.RunID != nil:
		return runs.Running
	case t.Mode == center.ModeRun:
		return StateIdle
	}
	return StateServing
}

// Served reports whether a live server serves the task type.
func (t TaskRecord) Served() bool { return t.Servers > t.DeadServers }

// DisplayState returns the state of the server, or OVERDUE: the state that an overdue server has written is stale. A
// server that has got its first queue is SERVING, although it writes that only with its next heartbeat. A server that
// is SERVING is FAILING if its calls do nothing but fail.
func (s ServerRecord) DisplayState() string {
	state := s.State
	if state == StateStandby && s.Queues > 0 {
		state = StateServing
	}
	switch {
	case s.Overdue:
		return StateOverdue
	case state == StateServing && s.FailingSince != nil:
		return StateFailing
	}
	return state
}

// DisplayState returns the status of the queue, REMOVING or RESIZING.
func (q QueueRecord) DisplayState() string {
	switch {
	case q.Removing:
		return StateRemoving
	case q.Resizing != nil:
		return StateResizing
	}
	return q.Status
}
