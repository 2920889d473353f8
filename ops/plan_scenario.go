package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrOtherTask means that none of the servers with a name serves the task type in question.
var ErrOtherTask = errors.New("the server serves another task type")

// Scenario returns the scenario in which add servers join the task type and its named servers stop. A name is as
// Servers.Matching takes it. Scenario returns ErrOtherTask if no server with a name serves the task type.
func (q *Queues) Scenario(ctx context.Context, taskType string, add int, names ...string) (Scenario, error) {
	s := Scenario{Add: add}
	for _, name := range names {
		servers, err := q.c.Servers().Matching(ctx, name)
		if err != nil {
			return s, err
		}
		serve := slices.DeleteFunc(slices.Clone(servers), func(server ServerRecord) bool { return server.TaskType != taskType })
		if len(serve) == 0 {
			return s, fmt.Errorf("plan %s without server %s: %w: %s", taskType, servers[0].UUID, ErrOtherTask, servers[0].TaskType)
		}
		for _, server := range serve {
			if !slices.Contains(s.Remove, server.UUID) { // two names can mean one server
				s.Remove = append(s.Remove, server.UUID)
			}
		}
	}
	return s, nil
}
