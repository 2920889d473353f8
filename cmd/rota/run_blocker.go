package main

import (
	"context"
	"errors"

	"github.com/dutyrota/rota/center"
)

// blockReason says why an open run makes no progress.
type blockReason int

// The reasons, in the order in which they are checked.
const (
	notBlocked blockReason = iota
	blockedByPause
	blockedByMissingTask // the task type was deleted
	blockedByUpstreams   // WAITING
	blockedByNoServer    // no live server serves the task type
	blockedByPausedTask  // the task type is paused
	blockedByRun         // another run of the task type is RUNNING
)

// runBlocker is what keeps an open run from making progress.
type runBlocker struct {
	reason blockReason
	runID  string // of the other run if the reason is blockedByRun
}

// findBlocker returns what keeps an open run from making progress, if anything.
func findBlocker(ctx context.Context, c *center.Center, r center.Run) (runBlocker, error) {
	if r.Paused {
		return runBlocker{reason: blockedByPause}, nil
	}
	tasks, err := c.Tasks().List(ctx, r.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return runBlocker{reason: blockedByMissingTask}, nil
	}
	if err != nil {
		return runBlocker{}, err
	}
	return blockerOf(r, tasks[0]), nil
}

func blockerOf(r center.Run, t center.TaskRecord) runBlocker {
	switch {
	case r.State == center.RunWaiting:
		return runBlocker{reason: blockedByUpstreams}
	case !served(t):
		return runBlocker{reason: blockedByNoServer}
	case t.Paused:
		return runBlocker{reason: blockedByPausedTask}
	case r.State == center.RunReady && t.RunID != nil:
		return runBlocker{blockedByRun, *t.RunID}
	}
	return runBlocker{}
}
