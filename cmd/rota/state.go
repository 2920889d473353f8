package main

import "github.com/dutyrota/rota/center"

// The states that no row has: they follow from several columns.
const (
	statePaused   = "PAUSED"
	stateDraining = "DRAINING" // every server drains, as the number of queues changes
	stateUnserved = "UNSERVED" // no live server serves the task type
	stateIdle     = "IDLE"     // mode RUN, and no run is open
	stateServing  = "SERVING"
	stateOverdue  = "OVERDUE"  // no heartbeat for judge_dead_interval
	stateRemoving = "REMOVING" // the queue goes as soon as it is drained
)

// taskState returns the state of a task type in its environment.
func taskState(t center.TaskRecord) string {
	switch {
	case t.Paused:
		return statePaused
	case t.RequestedTotal != nil:
		return stateDraining
	case !served(t):
		return stateUnserved
	case t.RunID != nil:
		return center.RunRunning
	case t.Mode == center.ModeRun:
		return stateIdle
	}
	return stateServing
}

// served reports whether a live server serves the task type.
func served(t center.TaskRecord) bool { return t.Servers > t.DeadServers }

// serverState returns the state of a server. That of an overdue server is
// stale, and OVERDUE replaces it.
func serverState(s center.ServerRecord) string {
	if s.Overdue {
		return stateOverdue
	}
	return s.State
}

// queueState returns the status of a queue, or REMOVING.
func queueState(q center.QueueRecord) string {
	if q.Removing {
		return stateRemoving
	}
	return q.Status
}

// runState returns the state of a run, or PAUSED for an open run that an
// operator has paused.
func runState(r center.Run) string {
	if r.Paused && !r.Ended() {
		return statePaused
	}
	return r.State
}

// finishedQueues returns how many queues of a run are not to be swept any more.
func finishedQueues(r center.RunRecord) int64 {
	return r.QueuesDone + r.QueuesFailed + r.QueuesCancelled
}
