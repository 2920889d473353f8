package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Pause stops a task type, or lets it go on: every server drains its queues and keeps them.
func (r *Roster) Pause(ctx context.Context, taskType string, paused bool, actor string) error {
	err := r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		_, err := l.Exec(ctx, `UPDATE schedule_task_running SET paused = ? WHERE task_type = ? AND own_sign = ?`, paused, l.TaskType, l.OwnSign)
		if err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: PauseKind(paused), Actor: actor, Reason: "the task type"})
	})
	if err != nil {
		return fmt.Errorf("%s %w", pauseVerb(paused), err)
	}
	return nil
}

// PauseServer stops one server, or lets it go on, also after DrainServer. It drains its queues, which others
// then take over; while there are no others, they wait with it. ErrGone if there is no such server.
func (r *Roster) PauseServer(ctx context.Context, uuid string, paused bool, actor string) error {
	state := StateStandby // with its next heartbeat it says whether it owns anything
	if paused {
		state = StatePaused
	}
	err := r.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, now string) error {
		if paused && now == StateDraining {
			return errors.New("it is draining")
		}
		if err := l.setState(ctx, uuid, state, actor); err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: PauseKind(paused), to: uuid, Actor: actor, Reason: "the server"})
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", pauseVerb(paused), uuid, err)
	}
	return nil
}

// DrainServer takes everything from a server for good: the others ask for its queues, and it hands over each
// as soon as nothing of it is in hand. While there are no others, it works on. It lives on, and owns nothing
// any more until PauseServer resumes it. ErrGone if there is no such server.
//
// With force nothing is waited for: its queues are others' at once, or nobody's, recorded FORCED, although it
// may have them in hand. When it learns of that, with its next heartbeat, it cancels what it has in hand; what
// it still writes the fence makes void, and nothing else does. DrainServer returns the queues that could not be
// had because a transaction of the server holds their rows: its session in the database must be ended, or the
// process.
func (r *Roster) DrainServer(ctx context.Context, uuid string, force bool, actor string) (held []string, err error) {
	err = r.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, now string) error {
		held = nil
		if now != StateDraining {
			if err := l.Record(ctx, Event{Kind: EventDraining, to: uuid, Actor: actor}); err != nil {
				return err
			}
		}
		if !force {
			return l.setState(ctx, uuid, StateDraining, actor)
		}
		if err := l.writeState(ctx, uuid, StateDraining); err != nil {
			return err
		}
		skipped, err := l.forceDrain(ctx, uuid, actor)
		for _, c := range skipped {
			if c.OldOwner == uuid {
				held = append(held, c.QueueID)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("drain %s: %w", uuid, err)
	}
	return held, nil
}

// forceDrain plans without a server, as if it were dead (H5).
func (l *LockTx) forceDrain(ctx context.Context, uuid, actor string) (skipped []plan.Change, err error) {
	var queues []string
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		queues = append(queues, id)
		return err
	}, `SELECT queue_id FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND cur_server = ? ORDER BY queue_id`, l.TaskType, l.OwnSign, uuid)
	if err != nil {
		return nil, err
	}
	return l.rebalance(ctx, rebalancing{RebalanceOptions: RebalanceOptions{Actor: actor}, leaving: uuid, forced: queues, reason: "by an operator"})
}

// setState changes what a server may be dealt, and plans, so that nobody waits for the next heartbeat.
func (l *LockTx) setState(ctx context.Context, uuid, state, actor string) error {
	if err := l.writeState(ctx, uuid, state); err != nil {
		return err
	}
	_, err := l.rebalance(ctx, rebalancing{RebalanceOptions: RebalanceOptions{Actor: actor}})
	return err
}

func (l *LockTx) writeState(ctx context.Context, uuid, state string) error {
	if _, err := l.Exec(ctx, `UPDATE schedule_server SET state = ? WHERE uuid = ?`, state, uuid); err != nil {
		return err
	}
	return l.membershipChanged(ctx)
}

// underServerLock runs f under the lock of the server's roster, and tells it the server's state.
func (r *Roster) underServerLock(ctx context.Context, uuid string, f func(ctx context.Context, l *LockTx, state string) error) error {
	var taskType string
	err := r.DB.QueryRow(ctx, `SELECT task_type FROM schedule_server WHERE uuid = ? AND own_sign = ?`, uuid, r.OwnSign).Scan(&taskType)
	if sqldb.NoRows(err) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	return r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		var state string
		err := l.QueryRow(ctx, `SELECT state FROM schedule_server WHERE uuid = ?`, uuid).Scan(&state)
		if sqldb.NoRows(err) {
			return ErrGone
		}
		if err != nil {
			return err
		}
		return f(ctx, l, state)
	})
}

func PauseKind(paused bool) string {
	if paused {
		return EventPaused
	}
	return EventResumed
}

func pauseVerb(paused bool) string {
	if paused {
		return "pause"
	}
	return "resume"
}
