package runs

import (
	"context"
	"maps"
	"sync"
)

// RunEnd is how runs of a task type ended: State is SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED.
type RunEnd struct{ TaskType, State string }

// endCounts counts the runs whose end an Engine has written.
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

// countEnd counts a run whose end is committed. One that is run again meanwhile is none.
func (e *Engine) countEnd(ctx context.Context, runID string) {
	r, err := e.Run(ctx, runID)
	if err != nil || !r.Ended() {
		return // it is only a count
	}
	e.ends.mu.Lock()
	defer e.ends.mu.Unlock()
	e.ends.runs[RunEnd{r.TaskType, r.State}]++
}
