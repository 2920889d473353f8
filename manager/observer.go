package manager

import "time"

// Observer receives what happens, for metrics: package manager/metrics has one. Goroutines of the manager call its methods
// concurrently. They must be quick and must not block.
type Observer interface {
	// Heartbeat is called after each heartbeat with its duration and its error.
	Heartbeat(took time.Duration, err error)
	// Moved is called when this process gets or loses a queue. kind is one of the Move constants. took is the time since
	// the drain began for MoveReleased, and 0 for all other kinds.
	Moved(taskType, kind string, took time.Duration)
	// Expired is called when this process has expired a dead server. silent is the time since that server's last heartbeat.
	Expired(taskType string, silent time.Duration)
	// Swept is called when this process has ended its sweep of a queue. result is one of the Sweep constants. took is the
	// time since this process began the sweep.
	Swept(taskType, result string, took time.Duration)
}

// The results of sweeps (mode RUN).
const (
	SweepDone      = "done"      // the queue is drained
	SweepRetry     = "retry"     // it has failed, and will be tried again
	SweepFailed    = "failed"    // it has failed for the last time, and the run fails with it
	SweepSuspended = "suspended" // the queue moves, or the run is paused: another sweep continues it
	SweepLost      = "lost"      // the run is over, or another server owns the queue
)

// The kinds of moves.
const (
	MoveGranted  = "granted"  // the server started to work the queue
	MoveReleased = "released" // it handed the queue over
	MoveRetaken  = "retaken"  // it took the queue back after a release that had no effect
	MoveRemoved  = "removed"  // it gave up a queue that an operator removed
	MoveLost     = "lost"     // it lost the queue: it was expired, or an operator forced the hand-over
)
