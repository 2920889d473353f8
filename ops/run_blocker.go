package ops

import (
	"context"
	"errors"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// BlockReason is why an open run makes no progress. Its text is for operators and programs.
type BlockReason string

// The reasons, in the order in which FindBlocker checks them.
const (
	NotBlocked           BlockReason = ""
	BlockedByPause       BlockReason = "PAUSE"        // an operator has paused the run
	BlockedByMissingTask BlockReason = "MISSING_TASK" // the task type was deleted
	BlockedByUpstreams   BlockReason = "UPSTREAMS"    // the run is WAITING
	BlockedByNoServer    BlockReason = "NO_SERVER"    // no live server serves the task type
	BlockedByPausedTask  BlockReason = "PAUSED_TASK"  // an operator has paused the task type
	BlockedByTime        BlockReason = "NOT_BEFORE"   // the time has not come before which the run is not opened
	BlockedByRun         BlockReason = "RUN"          // another run of the task type is RUNNING
)

// RunBlocker is what keeps an open run from making progress. The zero value means that nothing does.
type RunBlocker struct {
	Reason BlockReason
	RunID  string    // the other run, if the reason is BlockedByRun
	Until  time.Time // when the run may be opened, if the reason is BlockedByTime
}

// Sentence says for people what keeps a run of the task type from making progress. It is empty if nothing does.
func (b RunBlocker) Sentence(taskType string) string {
	switch b.Reason {
	case BlockedByPause:
		return "an operator has paused it"
	case BlockedByMissingTask:
		return "its task type was deleted"
	case BlockedByUpstreams:
		return "it waits for its upstreams"
	case BlockedByNoServer:
		return "no live server serves " + taskType
	case BlockedByPausedTask:
		return taskType + " is paused"
	case BlockedByTime:
		return "it does not begin before " + b.Until.UTC().Format(time.RFC3339)
	case BlockedByRun:
		return "it waits for the end of run " + b.RunID
	}
	return ""
}

// FindBlocker returns what keeps an open run from making progress.
func FindBlocker(ctx context.Context, c *Client, r runs.Run) (RunBlocker, error) {
	if r.Paused {
		return RunBlocker{Reason: BlockedByPause}, nil
	}
	tasks, err := c.Tasks().List(ctx, r.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return RunBlocker{Reason: BlockedByMissingTask}, nil
	}
	if err != nil {
		return RunBlocker{}, err
	}
	now, err := c.db.Clock(ctx)
	return blockerOf(r, tasks[0], now), err
}

func blockerOf(r runs.Run, t TaskRecord, now time.Time) RunBlocker {
	switch {
	case r.State == runs.RunWaiting:
		return RunBlocker{Reason: BlockedByUpstreams}
	case !t.Served():
		return RunBlocker{Reason: BlockedByNoServer}
	case t.Paused:
		return RunBlocker{Reason: BlockedByPausedTask}
	case r.State == runs.RunReady && r.NotBefore.After(now):
		return RunBlocker{Reason: BlockedByTime, Until: r.NotBefore}
	case r.State == runs.RunReady && t.RunID != nil:
		return RunBlocker{Reason: BlockedByRun, RunID: *t.RunID}
	}
	return RunBlocker{}
}
