package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// requireTask returns center.ErrUnknownTask if the roster has no task type of
// that name. The empty name stands for all task types and is accepted.
func requireTask(ctx context.Context, c *ops.Client, taskType string) error {
	if taskType == "" {
		return nil
	}
	names, err := c.Tasks().Names(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, taskType) {
		return fmt.Errorf("find %s: %w", taskType, center.ErrUnknownTask)
	}
	return nil
}

// requireEvents is requireTask, and also accepts a deleted task type that still
// has events.
func requireEvents(ctx context.Context, c *ops.Client, taskType string) error {
	unknown := requireTask(ctx, c, taskType)
	if !errors.Is(unknown, center.ErrUnknownTask) {
		return unknown
	}
	events, err := c.Events().List(ctx, ops.EventFilter{TaskType: taskType}, 1)
	if err != nil || len(events) > 0 {
		return err
	}
	return unknown
}

// runTaskNames returns the names of the task types of mode RUN.
func runTaskNames(ctx context.Context, c *ops.Client) (names []string, err error) {
	tasks, err := c.Tasks().List(ctx, "")
	for _, t := range tasks {
		if t.Mode == center.ModeRun {
			names = append(names, t.TaskType)
		}
	}
	return names, err
}
