package center

import (
	"context"
	"fmt"
)

// Pause stops a task type, or lets it go on: every server drains its queues and keeps them.
func (c *Center) Pause(ctx context.Context, taskType string, paused bool, actor string) error {
	err := c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		_, err := l.exec(ctx, `UPDATE schedule_task_running SET paused = ? WHERE task_type = ? AND own_sign = ?`, paused, l.taskType, l.ownSign)
		if err != nil {
			return err
		}
		return l.record(ctx, event{kind: pauseKind(paused), actor: actor, reason: "the task type"})
	})
	if err != nil {
		return fmt.Errorf("pause %w", err)
	}
	return nil
}

// PauseServer stops one server, or lets it go on. It drains its queues, which others then take over;
// while there are no others, they wait with it. ErrGone if there is no such server.
func (c *Center) PauseServer(ctx context.Context, uuid string, paused bool, actor string) error {
	taskType, err := c.taskOf(ctx, uuid)
	if err != nil {
		return fmt.Errorf("pause %s: %w", uuid, err)
	}
	state := StateStandby
	if paused {
		state = StatePaused
	}
	err = c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		n, err := l.exec(ctx, `UPDATE schedule_server SET state = ? WHERE uuid = ? AND state <> ?`, state, uuid, StateDraining)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrGone
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		return l.record(ctx, event{kind: pauseKind(paused), to: uuid, actor: actor, reason: "the server"})
	})
	if err != nil {
		return fmt.Errorf("pause %s of %w", uuid, err)
	}
	return nil
}

func pauseKind(paused bool) string {
	if paused {
		return EventPaused
	}
	return EventResumed
}

func (c *Center) taskOf(ctx context.Context, uuid string) (taskType string, err error) {
	err = c.store.QueryRowContext(ctx, c.dialect.sql(`SELECT task_type FROM schedule_server WHERE uuid = ? AND own_sign = ?`), uuid, c.ownSign).Scan(&taskType)
	if noRows(err) {
		err = ErrGone
	}
	return taskType, err
}
