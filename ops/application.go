package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// SettingsDiff is the difference between a task type's row and the wanted settings.
type SettingsDiff struct {
	TaskType string
	Settings center.Settings // the wanted settings

	Exists  bool              // the task type has a row
	Changes []runs.Difference // Row is the value in force, Given the wanted value, defaults included
	Left    []runs.Difference // of CompareGiven: what stays because it is not given. Given is the default

	// Total and Wanted are the present and the wanted number of queues of this own_sign. Named reports that the queues
	// have names. Then Add and Remove list the missing and the surplus queues.
	Total, Wanted int
	Named         bool
	Add, Remove   []string
	// Waiting is the number of queues that was requested before and for which every server drains; 0 if none.
	Waiting int
	// Version is the version of the row that was compared; 0 if there is none. QueuesVersion is that of the number of
	// queues, the partition_version.
	Version, QueuesVersion int64
}

// errKind means that the row has named queues and the settings have numbered ones, or the other way round.
var errKind = errors.New("the database and the settings must both number the queues or both name them: delete the task type first, or give the new one another name")

// Compare returns the difference between the row of a task type and s. A zero in s means the default. A worker
// that starts does not compare zeros.
func (t *Tasks) Compare(ctx context.Context, taskType string, s center.Settings) (a SettingsDiff, err error) {
	if err := errors.Join(roster.ValidName("task type", taskType, 100), s.Validate()); err != nil {
		return SettingsDiff{}, fmt.Errorf("task %s: %w", taskType, err)
	}
	row, err := t.Settings(ctx, taskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return SettingsDiff{TaskType: taskType, Settings: s, Named: len(s.QueueNames) > 0, Wanted: s.Queues, Add: s.QueueNames}, nil
	}
	if err != nil {
		return SettingsDiff{}, err
	}
	a = SettingsDiff{TaskType: taskType, Settings: s, Exists: true, Changes: settingChanges(row, s), Wanted: s.Queues, Named: len(s.QueueNames) > 0}
	tasks, err := t.List(ctx, taskType)
	if err != nil {
		return SettingsDiff{}, err
	}
	a.Version, a.QueuesVersion, a.Total = tasks[0].Version, tasks[0].Partition, int(tasks[0].QueueTotal)
	if n := tasks[0].RequestedTotal; n != nil {
		a.Waiting = int(*n)
	}
	return a, a.compareQueues(taskType, row, s)
}

func (a *SettingsDiff) compareQueues(taskType string, row, s center.Settings) error {
	if a.Total == 0 {
		return nil // no server has served it here yet: the first one clones BASE's queues
	}
	if a.Named != (len(row.QueueNames) > 0) {
		return fmt.Errorf("task %s: %w", taskType, errKind)
	}
	for _, name := range s.QueueNames {
		if !slices.Contains(row.QueueNames, name) {
			a.Add = append(a.Add, name)
		}
	}
	for _, name := range row.QueueNames {
		if !slices.Contains(s.QueueNames, name) {
			a.Remove = append(a.Remove, name)
		}
	}
	return nil
}

// ErrChanged means that another operator or worker has changed what was compared: settings, the number of queues, or a
// trigger.
var ErrChanged = roster.ErrChanged

// Apply writes the difference. It writes the settings first, in one transaction that raises their version. Then it
// changes the queues: their number behind a barrier (N1), names one by one (N2). It returns ErrChanged if Compare
// has read another version of the settings, or of the number of queues, than the transaction that writes them. Workers use the settings from their next heartbeats on. Apply creates a missing task type with
// its queues.
func (t *Tasks) Apply(ctx context.Context, d SettingsDiff, actor string) error {
	if d.Same() {
		return nil
	}
	if !d.Exists || d.Total == 0 {
		if _, err := t.Define(ctx, d.TaskType, d.Settings); err != nil {
			return err
		}
	}
	if err := t.applySettings(ctx, d, actor); err != nil {
		return err
	}
	switch {
	case !d.Exists, d.Total == 0: // Define has created the queues
		return nil
	case d.Repartitions():
		return t.c.roster.Operator(actor).Repartition(ctx, d.TaskType, d.Wanted, d.QueuesVersion)
	}
	return t.applyQueueNames(ctx, d, actor)
}

func (t *Tasks) applySettings(ctx context.Context, d SettingsDiff, actor string) error {
	if len(d.Changes) == 0 {
		return nil
	}
	if err := d.Settings.Validate(); err != nil {
		return fmt.Errorf("task %s: %w", d.TaskType, err)
	}
	err := t.c.roster.UnderLock(ctx, d.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		if err := writeSettings(ctx, l, d.Settings.WithDefaults(), d.Version); err != nil {
			return err
		}
		if err := applySchedule(ctx, l, d.Settings, actor); err != nil {
			return err
		}
		if err := checkModeChange(ctx, l, d); err != nil {
			return err
		}
		return recordEverywhere(ctx, l, roster.Event{Kind: EventSettings, Actor: actor, Reason: changesText(d.Changes)})
	})
	if err != nil {
		return fmt.Errorf("apply %w", err)
	}
	return nil
}

// recordEverywhere records an event in all environments that have the task type, because they share its settings.
func recordEverywhere(ctx context.Context, l *roster.LockTx, e roster.Event) error {
	signs, err := sqldb.Records[string](ctx, l, `SELECT own_sign FROM schedule_task_running WHERE task_type = ? ORDER BY own_sign`, l.TaskType)
	if err != nil {
		return err
	}
	for _, sign := range signs {
		if err := roster.RecordEvents(ctx, l.Tx, l.TaskType, sign, e); err != nil {
			return err
		}
	}
	return nil
}

// applyQueueNames adds before it removes, as the roster refuses to remove the last queue.
func (t *Tasks) applyQueueNames(ctx context.Context, d SettingsDiff, actor string) error {
	var errs []error
	for _, name := range d.Add {
		errs = append(errs, t.c.roster.Operator(actor).AddQueue(ctx, d.TaskType, name, ""))
	}
	for _, name := range d.Remove {
		errs = append(errs, t.c.roster.Operator(actor).RemoveQueue(ctx, d.TaskType, name))
	}
	return errors.Join(errs...)
}

// writeSettings writes the settings, which all own_signs share. The planner's input may change with them: the raised
// membership_version makes every roster of the task type rebalance (S3).
func writeSettings(ctx context.Context, l *roster.LockTx, s center.Settings, version int64) error {
	var set []string
	var args []any
	for _, row := range columns() {
		set, args = append(set, row.Column+" = ?"), append(args, row.Value(s))
	}
	n, err := l.Exec(ctx, `UPDATE schedule_task_type SET `+strings.Join(set, ", ")+`, version = version + 1, gmt_modified = {now}
		WHERE task_type = ? AND version = ?`, append(args, l.TaskType, version)...)
	if err == nil && n == 0 {
		err = ErrChanged
	}
	if err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1 WHERE task_type = ?`, l.TaskType)
	return err
}

func changesText(changes []runs.Difference) string {
	list := make([]string, len(changes))
	for i, d := range changes {
		list[i] = fmt.Sprintf("%s %s -> %s", d.Name, d.Row, d.Given)
	}
	return strings.Join(list, ", ")
}
