package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Define inserts the rows of a task type and of its roster in this own_sign unless they exist. It returns the settings
// in force, which the row has. For an own_sign without queues of the task type, Define clones the queues of BASE.
// Several processes may call it at once.
func (t *Tasks) Define(ctx context.Context, taskType string, s center.Settings) (center.Settings, error) {
	if err := roster.ValidTaskType(taskType); err != nil {
		return center.Settings{}, err
	}
	if err := s.Validate(); err != nil {
		return center.Settings{}, fmt.Errorf("task %s: %w", taskType, err)
	}
	if err := t.c.roster.InsertLockRow(ctx, taskType); err != nil {
		return center.Settings{}, fmt.Errorf("define %s$%s: %w", taskType, t.c.ownSign, err)
	}
	err := t.c.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		if err := insertTaskType(ctx, l, s.WithDefaults()); err != nil {
			return err
		}
		return insertRoster(ctx, l, s)
	})
	if errors.Is(err, center.ErrUnknownCommit) {
		err = nil // the read below shows the outcome
	}
	if err != nil {
		return center.Settings{}, fmt.Errorf("define %w", err)
	}
	return t.Settings(ctx, taskType)
}

// insertTaskType inserts the settings unless there is a row. It reads first, so that it needs no right to UPDATE. A
// server of another own_sign, which has another lock row, may insert between the two statements.
func insertTaskType(ctx context.Context, l *roster.LockTx, s center.Settings) error {
	n, err := sqldb.Value[int](ctx, l, `SELECT COUNT(*) FROM schedule_task_type WHERE task_type = ?`, l.TaskType)
	if err != nil || n > 0 {
		return err
	}
	names, args := []string{"task_type"}, []any{l.TaskType}
	for _, row := range columns() {
		names, args = append(names, row.Column), append(args, row.Value(s))
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_task_type (`+strings.Join(names, ", ")+`, gmt_created, gmt_modified)
		VALUES (`+sqldb.Marks(len(args))+`, {now}, {now})`, args...)
	if l.Dialect.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced
	}
	if err != nil {
		return fmt.Errorf("insert the task type: %w", err)
	}
	if len(s.After) == 0 {
		return nil
	}
	return runs.WriteAfter(ctx, l.Tx, l.TaskType, s.After)
}

// insertRoster inserts the queues and the trigger of a roster that has no queues yet.
func insertRoster(ctx context.Context, l *roster.LockTx, s center.Settings) error {
	if l.QueueTotal > 0 {
		return nil
	}
	if rebuilt, err := roster.RebuildLockRow(ctx, l); err != nil || rebuilt {
		return err
	}
	if err := roster.InsertQueues(ctx, l, queueRows(s)); err != nil {
		return err
	}
	return defineTrigger(ctx, l, s)
}

// Settings returns the settings in force. A zero in the row means the default, as in code.
// It returns ErrUnknownTask if the task type has no row.
func (t *Tasks) Settings(ctx context.Context, taskType string) (center.Settings, error) {
	var s center.Settings
	var names []string
	var into []any
	for _, row := range columns() {
		names, into = append(names, row.Column), append(into, sqldb.Target(row.Field(&s)))
	}
	err := t.c.db.QueryRow(ctx, `SELECT `+strings.Join(names, ", ")+` FROM schedule_task_type WHERE task_type = ?`,
		taskType).Scan(into...)
	if sqldb.NoRows(err) {
		return center.Settings{}, fmt.Errorf("%s: %w", taskType, center.ErrUnknownTask)
	}
	if err != nil {
		return center.Settings{}, fmt.Errorf("read the settings of %s: %w", taskType, err)
	}
	if err := t.readQueueSettings(ctx, taskType, &s); err != nil {
		return center.Settings{}, fmt.Errorf("read the queues of %s: %w", taskType, err)
	}
	if err := t.readSchedule(ctx, taskType, &s); err != nil {
		return center.Settings{}, fmt.Errorf("read the schedule of %s: %w", taskType, err)
	}
	return s.WithDefaults(), nil
}

// readQueueSettings sets Queues if the queues have numbers, otherwise QueueNames.
func (t *Tasks) readQueueSettings(ctx context.Context, taskType string, s *center.Settings) error {
	removing, err := t.c.roster.Reader(taskType).Removing(ctx)
	if err != nil {
		return err
	}
	totals, err := t.queueTotals(ctx, taskType)
	if err != nil {
		return err
	}
	if s.Queues = totals.least(); s.Queues > 0 {
		return nil
	}
	for _, q := range totals {
		if !slices.Contains(removing, q.ID) {
			s.QueueNames = append(s.QueueNames, q.ID)
		}
	}
	return nil
}

// queueTotals are the queues of a task type in the order of their index, with their totals.
type queueTotals []queueTotal

// queueTotal is a queue, with the number by which its items are divided: 0 for a name.
type queueTotal struct {
	ID    string
	Total int
}

func (t *Tasks) queueTotals(ctx context.Context, taskType string) (queueTotals, error) {
	return sqldb.Records[queueTotal](ctx, t.c.db, `SELECT queue_id, COALESCE(queue_total, 0) FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, taskType, t.c.ownSign)
}

// least returns the number of queues as the setting has it: queues that were split do not count. It is 0 if there are
// none, or if they have names.
func (totals queueTotals) least() int {
	if len(totals) == 0 {
		return 0
	}
	return slices.MinFunc(totals, func(a, b queueTotal) int { return a.Total - b.Total }).Total
}

// split returns how many queues have a larger total than the least: they were split.
func (totals queueTotals) split() (n int) {
	least := totals.least()
	for _, q := range totals {
		if q.Total > least {
			n++
		}
	}
	return n
}

// divide reports whether each queue can be split or merged so that its total is the given one.
func (totals queueTotals) divide(total int) bool {
	return total > 0 && !slices.ContainsFunc(totals, func(q queueTotal) bool {
		return q.Total == 0 || total%q.Total != 0 && q.Total%total != 0
	})
}

// after returns the totals when the requests are done.
func (totals queueTotals) after(requests map[string]int) queueTotals {
	done := slices.Clone(totals)
	for i, q := range done {
		if total := requests[q.ID]; total > 0 {
			done[i].Total = total
		}
	}
	return done
}

// queueRows returns the queues of the settings in the order of their index.
func queueRows(s center.Settings) []roster.QueueRow {
	if len(s.QueueNames) == 0 {
		return roster.NumberedQueues(s.Queues)
	}
	queues := make([]roster.QueueRow, len(s.QueueNames))
	for i, name := range s.QueueNames {
		queues[i] = roster.QueueRow{ID: name, Index: i}
	}
	return queues
}

// columns returns the settings that schedule_task_type holds.
func columns() (rows []center.Setting) {
	for _, row := range center.SettingTable() {
		if row.Column != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// Three settings are kept in tables of their own: cron and every are the trigger with the task type's name, after is
// schedule_task_after.

// ofTrigger reports whether the named setting says when that trigger is due. A trigger has one of the two settings.
func ofTrigger(name string) bool { return name == "cron" || name == "every" }

// triggerOf returns the trigger that cron and every define; false if neither is set.
func triggerOf(s center.Settings, taskType string) (runs.Trigger, bool) {
	t := runs.Trigger{Name: taskType, Target: taskType, Kind: runs.TriggerCron, Expression: s.Cron, TimeZone: s.TimeZone}
	if s.Every != 0 {
		t.Kind, t.Expression = runs.TriggerEvery, s.Every.String()
	}
	return t.WithDefaults(), t.Expression != ""
}

// setTrigger sets cron or every to what a trigger says, the inverse of triggerOf. It reports whether one of them can
// say it: the settings own no other trigger.
func setTrigger(s *center.Settings, t runs.Trigger) bool {
	switch t.Kind {
	case runs.TriggerCron:
		s.Cron, s.TimeZone = t.Expression, t.TimeZone
	case runs.TriggerEvery:
		s.Every, _ = time.ParseDuration(t.Expression) // an invalid value is reported in the trigger's message
	default:
		return false
	}
	return true
}

// readSchedule reads cron, every, time_zone and after. The time zone of the trigger is in force, not that of the row.
func (t *Tasks) readSchedule(ctx context.Context, taskType string, s *center.Settings) (err error) {
	if s.Mode != center.ModeRun {
		return nil
	}
	list, err := t.c.runs.Triggers.List(ctx, runs.TriggerFilter{Name: taskType, Target: taskType})
	if err != nil {
		return err
	}
	for _, trigger := range list {
		setTrigger(s, trigger.Trigger)
	}
	s.After, err = t.c.runs.Dependencies.After(ctx, taskType)
	return err
}

// defineTrigger inserts the trigger of the settings unless a trigger of that name exists, even one with another target.
func defineTrigger(ctx context.Context, l *roster.LockTx, s center.Settings) error {
	t, ok := triggerOf(s, l.TaskType)
	if !ok {
		return nil
	}
	mode, err := sqldb.Value[string](ctx, l, `SELECT mode FROM schedule_task_type WHERE task_type = ?`, l.TaskType)
	if err != nil || mode != center.ModeRun {
		return err
	}
	_, err = runs.PutTrigger(ctx, l, t, false, "")
	return err
}

// applySchedule writes the dependencies and the trigger of the settings.
func applySchedule(ctx context.Context, l *roster.LockTx, s center.Settings, actor string) error {
	if err := applyAfter(ctx, l, s.After); err != nil {
		return err
	}
	return applyOwnTrigger(ctx, l, s, actor)
}

// applyOwnTrigger changes the schedule of the settings' trigger and nothing else of it. Without cron and every it
// deletes the trigger.
func applyOwnTrigger(ctx context.Context, l *roster.LockTx, s center.Settings, actor string) error {
	t, wanted := triggerOf(s, l.TaskType)
	old, err := runs.ReadTrigger(ctx, l, l.TaskType)
	there := err == nil
	if err != nil && !errors.Is(err, runs.ErrUnknownTrigger) {
		return err
	}
	switch {
	case there && old.Target != l.TaskType && !wanted:
		return nil // it is another's, and none of this one is to be made or deleted
	case there && old.Target != l.TaskType:
		return fmt.Errorf("trigger %s has the name of this task type, and fires %s: give it another name", old.Name,
			old.Target)
	case there && !wanted && setTrigger(&center.Settings{}, old):
		return runs.DeleteTrigger(ctx, l, old.Name, actor)
	case !wanted:
		return nil
	case there && old.Kind == t.Kind && old.Expression == t.Expression && old.TimeZone == t.TimeZone:
		return nil
	case there:
		old.Kind, old.Expression, old.TimeZone = t.Kind, t.Expression, t.TimeZone
		t = old
	}
	_, err = runs.PutTrigger(ctx, l, t, true, actor)
	return err
}

// applyAfter writes the dependencies if they have changed.
func applyAfter(ctx context.Context, l *roster.LockTx, after []runs.After) error {
	edges, err := runs.ReadEdges(ctx, l.Tx)
	if err != nil {
		return err
	}
	var there []runs.After
	for _, e := range edges {
		if e.TaskType == l.TaskType {
			there = append(there, e.After)
		}
	}
	if (center.Settings{After: there}).Given()["after"] == (center.Settings{After: after}).Given()["after"] {
		return nil
	}
	return runs.WriteAfter(ctx, l.Tx, l.TaskType, after)
}
