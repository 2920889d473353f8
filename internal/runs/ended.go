package runs

import (
	"context"
	"maps"
	"sync"
)

// RunEnd is a task type and the state in which runs of it ended: SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED.
type RunEnd struct{ TaskType, State string }

// endCounts counts the runs that an Engine has ended.
type endCounts struct {
	mu   sync.Mutex
	runs map[RunEnd]int64
}

func (n *endCounts) read() map[RunEnd]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.runs)
}

// count counts a run whose end is committed. It does not count a run that a rerun has reopened meanwhile.
func (n *endCounts) count(ctx context.Context, c core, runID string) {
	r, err := c.readRun(ctx, runID)
	if err != nil || !r.Ended() {
		return // a lost count is no reason to fail the caller
	}
	n.add(RunEnd{r.TaskType, r.State}, 1)
}

func (n *endCounts) add(end RunEnd, ended int64) {
	if ended == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[end] += ended
}
