package center

import (
	"context"
	"errors"
	"fmt"
)

// ErrOtherTask means that the server serves another task type than the one in question.
var ErrOtherTask = errors.New("the server serves another task type")

// Scenario returns the scenario in which add servers join the task type and the named servers stop. A name is as
// Servers.Find takes it. Scenario returns ErrOtherTask if a server serves another task type.
func (q *Queues) Scenario(ctx context.Context, taskType string, add int, names ...string) (Scenario, error) {
	s := Scenario{Add: add}
	for _, name := range names {
		server, err := q.c.Servers().Find(ctx, name)
		if err != nil {
			return s, err
		}
		if server.TaskType != taskType {
			return s, fmt.Errorf("plan %s without server %s: %w: %s", taskType, server.UUID, ErrOtherTask, server.TaskType)
		}
		s.Remove = append(s.Remove, server.UUID)
	}
	return s, nil
}
