package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
)

// errOtherTask is returned for a server that does not serve the task type in
// question.
var errOtherTask = errors.New("the server serves another task type")

// planScenario returns the scenario in which so many servers join the task
// type and the named servers stop.
func planScenario(ctx context.Context, c *center.Center, taskType string, add int, remove []string) (center.Scenario, error) {
	s := center.Scenario{Add: add}
	for _, name := range remove {
		server, err := c.Servers().Find(ctx, name)
		if err != nil {
			return s, err
		}
		if server.TaskType != taskType {
			return s, fmt.Errorf("plan %s without server %s: %w: %s", taskType, server.UUID, errOtherTask, server.TaskType)
		}
		s.Remove = append(s.Remove, server.UUID)
	}
	return s, nil
}
