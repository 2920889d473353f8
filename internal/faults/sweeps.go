package faults

import (
	"time"

	"github.com/dutyrota/rota/center"
)

// Sweeps is everything that is known of runs once they are over.
type Sweeps struct {
	Runs     []center.Run
	Queues   map[string][]center.RunQueue // by run
	Deps     []center.RunDep
	Triggers []center.Trigger
	Effects  []SweepEffect
	Calls    []SweepCall
	Rerun    map[string]bool // by run: it has ended before

	// There tells of items an instant at which all could see them.
	There map[int64]time.Time
}

// Sweep is the queue of a run under one grant, and what the run's row of the queue said when a transaction of it had
// its fence.
type Sweep struct {
	Run, Queue string
	Epoch      int64
	Found      string // the state and the epoch of the row
}

// SweepEffect is what one committed transaction of a sweep says about one item.
type SweepEffect struct {
	Sweep
	Item int64
}

// SweepCall is a committed call for a whole queue.
type SweepCall struct {
	Sweep
	Waiting int // upstreams of the run that had not ended
}
