package ops

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Delete deletes a task type in all own_signs: its settings, queues, failed items, triggers and the rows of expired
// servers. It cancels open runs and backfills. Events, histories and runs stay until the end of their retention. Delete
// returns an error while a live server serves the task type, or another task type runs after it. The lock rows stay, so
// that a task type that is defined again uses no epoch twice (H6).
//
// Delete first deletes the failed items and cancels the open runs, some thousand in each transaction, and then deletes
// all other rows in one. If it fails before that, the task type is still there without these items and with these runs
// cancelled, and Delete can be called again.
func (t *Tasks) Delete(ctx context.Context, taskType, actor string) error {
	signs, err := t.signsOf(ctx, taskType)
	if err != nil {
		return fmt.Errorf("delete %s: %w", taskType, err)
	}
	if len(signs) == 0 {
		return fmt.Errorf("delete %s: %w", taskType, center.ErrUnknownTask)
	}
	items := 0
	for step := (deleteStep{}); !step.done; {
		if items > 0 {
			t.progress(items)
		}
		from := step.position
		err = t.c.roster.In(signs[0]).UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			step, err = deleteSome(ctx, l, signs, from, actor)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete %w", err)
		}
		items += step.items
	}
	return nil
}

// CheckDelete returns the error with which Delete would refuse the task type now; nil if it would not. It only reads.
func (t *Tasks) CheckDelete(ctx context.Context, taskType string) error {
	err := refuseDependants(ctx, t.c.db, taskType)
	if err == nil {
		var signs []string
		signs, err = t.signsOf(ctx, taskType)
		for i := 0; i < len(signs) && err == nil; i++ {
			err = refuseLiveServers(ctx, t.c.db, taskType, signs[i])
		}
	}
	return sqldb.Wrap(err, "delete %s$%s", taskType, t.c.OwnSign())
}

// deleteStep is what one transaction of Delete has done.
type deleteStep struct {
	items    int          // failed items that it has deleted
	position itemPosition // of the last item that it has deleted
	done     bool         // the task type is deleted
}

// itemPosition is a failed item: the own_sign by its index, and the hash of the key.
type itemPosition struct {
	sign int
	hash string
}

// deleteSome deletes the failed items behind a position that one transaction may delete. If there are no more, it
// cancels as many open runs, or else deletes the task type.
func deleteSome(ctx context.Context, l *roster.LockTx, signs []string, from itemPosition,
	actor string,
) (step deleteStep, err error) {
	if err := refuseDependants(ctx, l, l.TaskType); err != nil {
		return step, err
	}
	rosters := make([]*roster.LockTx, len(signs))
	for i, sign := range signs {
		if rosters[i], err = l.InOwnSign(ctx, sign); err != nil {
			return step, err
		}
		if err := refuseLiveServers(ctx, l, l.TaskType, sign); err != nil {
			return step, err
		}
	}
	for ; from.sign < len(signs); from = (itemPosition{sign: from.sign + 1}) {
		n, last, err := deleteSomeItems(ctx, rosters[from.sign], from.hash)
		step.items += n
		if err != nil || last != "" {
			step.position = itemPosition{from.sign, last}
			return step, err
		}
	}
	for _, in := range rosters {
		if more, err := runs.CancelSome(ctx, in); err != nil || more {
			step.position = itemPosition{sign: len(signs)}
			return step, err
		}
	}
	for _, in := range rosters {
		if err := deleteRoster(ctx, in, actor); err != nil {
			return step, err
		}
	}
	step.done = true
	return step, deleteTaskType(ctx, l)
}

// signsOf returns the own_signs in which the task type has a roster. While it has settings, that includes own_signs
// whose roster was deleted.
func (t *Tasks) signsOf(ctx context.Context, taskType string) ([]string, error) {
	return sqldb.Records[string](ctx, t.c.db, `SELECT own_sign FROM schedule_task_running WHERE task_type = ?
		AND (queue_total > 0 OR EXISTS (SELECT 1 FROM schedule_task_type t WHERE t.task_type = ?)) ORDER BY own_sign`,
		taskType, taskType)
}

// refuseLiveServers returns an error while live servers serve the roster of one own_sign.
func refuseLiveServers(ctx context.Context, q sqldb.Eacher, taskType, ownSign string) error {
	live, err := sqldb.Value[int](ctx, q, `SELECT COUNT(*) FROM schedule_server d WHERE task_type = ? AND own_sign = ?
		AND NOT `+roster.IsDead, taskType, ownSign)
	if err == nil && live > 0 {
		err = fmt.Errorf("%s it in %s: stop all workers first",
			human.Count(live, "live worker still serves", "live workers still serve"), ownSign)
	}
	return err
}

// refuseDependants returns an error if another task type runs after this one: the runs of the other would never begin.
func refuseDependants(ctx context.Context, q sqldb.Eacher, taskType string) error {
	edges, err := runs.ReadEdges(ctx, q)
	if err != nil {
		return err
	}
	for _, e := range edges {
		if e.Upstream == taskType && e.TaskType != taskType {
			return fmt.Errorf("%s runs after it: change %[1]s first", e.TaskType)
		}
	}
	return nil
}

// deleteRoster deletes the roster of one own_sign and ends its pause.
func deleteRoster(ctx context.Context, l *roster.LockTx, actor string) error {
	if err := deleteRosterRows(ctx, l, actor, "the task type was deleted"); err != nil {
		return err
	}
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET paused = ? WHERE task_type = ? AND own_sign = ?`, false,
		l.TaskType, l.OwnSign)
	return err
}

// deleteTaskType deletes the settings.
func deleteTaskType(ctx context.Context, l *roster.LockTx) error {
	for _, table := range []string{"schedule_task_after", "schedule_task_type"} {
		if _, err := l.Exec(ctx, `DELETE FROM `+table+` WHERE task_type = ?`, l.TaskType); err != nil {
			return fmt.Errorf("delete from %s: %w", table, err)
		}
	}
	return nil
}

// deleteRosterRows deletes the rows of a roster that has few failed items and no open runs. The lock row stays, because
// it holds the highest epoch (H6). Events, histories and runs stay until the end of their retention; open backfills are
// cancelled.
func deleteRosterRows(ctx context.Context, l *roster.LockTx, actor, reason string) error {
	servers, err := l.Reader().Servers(ctx)
	if err != nil {
		return err
	}
	if _, err := roster.MoveToHistory(ctx, l, roster.ReasonExpired, servers); err != nil {
		return err
	}
	if err := runs.CancelBackfills(ctx, l, "", reason); err != nil {
		return err
	}
	if err := roster.RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	for _, table := range []struct{ name, key string }{
		{"schedule_failed_item", "task_type"},
		{"schedule_backlog", "task_type"},
		{"schedule_queue_setting", "task_type"},
		{"schedule_queue", "task_type"},
		{"schedule_trigger", "target"},
	} {
		if _, err := l.Exec(ctx, `DELETE FROM `+table.name+` WHERE `+table.key+` = ? AND own_sign = ?`, l.TaskType,
			l.OwnSign); err != nil {
			return fmt.Errorf("delete from %s: %w", table.name, err)
		}
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = 0, queue_changes = NULL,
		skipped = NULL, epoch_high = ?, partition_version = partition_version + 1,
		membership_version = membership_version + 1, plan_version = plan_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.EpochHigh, l.TaskType, l.OwnSign)
	if err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: EventForgotten, Actor: actor, Reason: reason})
}
