package roster

import (
	"context"
	"errors"
	"fmt"
)

// Pause pauses or resumes a task type. While it is paused, each server drains its queues and keeps them.
func (o Operator) Pause(ctx context.Context, taskType string, paused bool) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		_, err := l.Exec(ctx, `UPDATE schedule_task_running SET paused = ? WHERE task_type = ? AND own_sign = ?`, paused, l.TaskType, l.OwnSign)
		if err == nil && paused {
			err = voidReservations(ctx, l)
		}
		if err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: pauseKind(paused), Actor: o.actor, Reason: "the task type was " + PauseVerb(paused) + "d"})
	})
	if err != nil {
		return fmt.Errorf("%s %w", PauseVerb(paused), err)
	}
	return nil
}

// PauseServer pauses or resumes one server. A paused server drains its queues, and other servers take them over.
// While there are no eligible servers, it keeps its queues and does not work them. Resuming also ends a DrainServer.
// It returns ErrGone if there is no such server.
func (o Operator) PauseServer(ctx context.Context, uuid string, paused bool) error {
	state := StateStandby // its next heartbeat writes SERVING if it owns queues
	if paused {
		state = StatePaused
	}
	err := o.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, now string) error {
		if paused && now == StateDraining {
			return errors.New("it is draining")
		}
		if err := l.Record(ctx, Event{Kind: pauseKind(paused), to: uuid, Actor: o.actor, Reason: "the server was " + PauseVerb(paused) + "d"}); err != nil {
			return err
		}
		_, err := setState(ctx, l, newState{uuid, state}, rebalancing{actor: o.actor})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", PauseVerb(paused), uuid, err)
	}
	return nil
}

// pauseKind returns the kind of the event for a pause or a resume.
func pauseKind(paused bool) string {
	if paused {
		return EventPaused
	}
	return EventResumed
}

// PauseVerb returns what an operator does: "pause" or "resume". With a "d" it is what was done.
func PauseVerb(paused bool) string {
	if paused {
		return "pause"
	}
	return "resume"
}
