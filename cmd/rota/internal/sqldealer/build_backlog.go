package sqldealer

import (
	"errors"
	"fmt"
)

func (b builder) buildBacklog() error {
	if b.file.Backlog == "" {
		return nil
	}
	if b.inRun() {
		return errors.New(".backlog has no effect in mode RUN: a run shows its progress by itself; remove it")
	}
	s, err := b.parse(b.file.Backlog, total, index, queue, queueParameter, parameter, ownSign)
	if err != nil {
		return fmt.Errorf(".backlog %w", err)
	}
	many := b.settings.Queues > 1 || len(b.settings.QueueNames) > 1
	if many && !s.uses(index, queue, queueParameter) {
		return errors.New(".backlog counts the same rows for every queue: with more than one queue it must use {{index}} " +
			"(with {{total}}), {{queue}} or {{queue_parameter}}")
	}
	b.backlog = s
	return nil
}
