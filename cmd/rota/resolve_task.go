package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/center"
)

// requireTask returns center.ErrUnknownTask if the roster has no task type of
// that name. The empty name stands for all task types and is accepted.
func requireTask(ctx context.Context, c *center.Center, taskType string) error {
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

// runTaskNames returns the names of the task types of mode RUN.
func runTaskNames(ctx context.Context, c *center.Center) (names []string, err error) {
	tasks, err := c.Tasks().List(ctx, "")
	for _, t := range tasks {
		if t.Mode == center.ModeRun {
			names = append(names, t.TaskType)
		}
	}
	return names, err
}
