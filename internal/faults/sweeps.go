package faults

import (
	"time"

	"github.com/dutyrota/rota/runs"
)

// Sweeps is the record of the runs of a scenario.
type Sweeps struct {
	Runs     []runs.Run
	Queues   map[string][]runs.Queue // by run
	Deps     []runs.Dep
	Triggers []runs.Trigger
	Effects  []SweepEffect
	Calls    []SweepCall
	Rerun    map[string]bool // by run: whether the run had ended before

	// There is, by item, an instant at which every process could see the item.
	There map[int64]time.Time
}

// Sweep is a queue of a run under one epoch, and the row of the queue in the run when a transaction of the sweep had
// its fence.
type Sweep struct {
	Run, Queue string
	Epoch      int64
	Found      string // the state and the epoch of the row
}

// SweepEffect is the record of one committed transaction of a sweep about one item.
type SweepEffect struct {
	Sweep
	Item int64
}

// SweepCall is a committed call for a whole queue.
type SweepCall struct {
	Sweep
	Waiting int // upstreams of the run that had not ended
}
