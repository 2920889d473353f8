package manager

import "time"

// Observer is told what happens, for metrics: package manager/metrics has one. Its methods are called from goroutines of
// the manager, several at once. They must be quick and must not block.
type Observer interface {
	// Heartbeat is called after each heartbeat with its duration and its error.
	Heartbeat(took time.Duration, err error)
	// Moved is called when this process gets or loses a queue. kind is one of the Move constants. took is the time from
	// the beginning of the drain for MoveReleased, and 0 for all others.
	Moved(taskType, kind string, took time.Duration)
	// Expired is called when this process has expired a dead server, with the time for which that server was silent.
	Expired(taskType string, silent time.Duration)
	// Swept is called when a sweep of a queue of a run has ended here, with the time since it began here. result is one
	// of the Sweep constants.
	Swept(taskType, result string, took time.Duration)
}

// How sweeps end (mode RUN).
const (
	SweepDone      = "done"      // the queue is drained
	SweepRetry     = "retry"     // it has failed, and will be tried again
	SweepFailed    = "failed"    // it has failed for good, and with it the run
	SweepSuspended = "suspended" // the queue moves, or the run is paused: another sweep continues it
	SweepLost      = "lost"      // the run is over, or another server owns the queue
)

// How queues come and go.
const (
	MoveGranted  = "granted"  // the server started to work the queue
	MoveReleased = "released" // it handed the queue over
	MoveRetaken  = "retaken"  // it kept the queue, although a release had been sent
	MoveRemoved  = "removed"  // the queue does not exist any more
	MoveLost     = "lost"     // the queue was taken away: the server was expired, or forced
)
