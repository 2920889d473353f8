package center

import (
	"context"
	"errors"
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
	BlockedByRun         BlockReason = "RUN"          // another run of the task type is RUNNING
)

// RunBlocker is what keeps an open run from making progress. The zero value means that nothing does.
type RunBlocker struct {
	Reason BlockReason
	RunID  string // the other run, if the reason is BlockedByRun
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
	case BlockedByRun:
		return "it waits for the end of run " + b.RunID
	}
	return ""
}

// FindBlocker returns what keeps an open run from making progress.
func FindBlocker(ctx context.Context, c *Center, r Run) (RunBlocker, error) {
	if r.Paused {
		return RunBlocker{Reason: BlockedByPause}, nil
	}
	tasks, err := c.Tasks().List(ctx, r.TaskType)
	if errors.Is(err, ErrUnknownTask) {
		return RunBlocker{Reason: BlockedByMissingTask}, nil
	}
	if err != nil {
		return RunBlocker{}, err
	}
	return blockerOf(r, tasks[0]), nil
}

func blockerOf(r Run, t TaskRecord) RunBlocker {
	switch {
	case r.State == RunWaiting:
		return RunBlocker{Reason: BlockedByUpstreams}
	case !t.Served():
		return RunBlocker{Reason: BlockedByNoServer}
	case t.Paused:
		return RunBlocker{Reason: BlockedByPausedTask}
	case r.State == RunReady && t.RunID != nil:
		return RunBlocker{BlockedByRun, *t.RunID}
	}
	return RunBlocker{}
}
