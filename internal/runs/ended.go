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

// Ended returns how many runs this Engine has ended, by task type and state.
func (e *Engine) Ended() map[RunEnd]int64 {
	e.ends.mu.Lock()
	defer e.ends.mu.Unlock()
	return maps.Clone(e.ends.runs)
}

// countEnd counts a run whose end is committed. It does not count a run that a rerun has reopened meanwhile.
func (e *Engine) countEnd(ctx context.Context, runID string) {
	r, err := e.Run(ctx, runID)
	if err != nil || !r.Ended() {
		return // a lost count is no reason to fail the caller
	}
	e.ends.mu.Lock()
	defer e.ends.mu.Unlock()
	e.ends.runs[RunEnd{r.TaskType, r.State}]++
}
