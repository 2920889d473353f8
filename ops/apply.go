package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/fit"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/processor"
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
	// Rows is how many queues there are: more than Total if some were split.
	Rows int
	// Waiting is the number of queues that was requested before and is not there yet; 0 if none. Resizing is how many
	// queues wait to be split or merged.
	Waiting, Resizing int
	// Resizes reports that each queue is split or merged by its owner (N3). Otherwise another number of queues is a
	// barrier (N1).
	Resizes bool
	// Split is how many queues are parts of queues of the total Wanted, once all that is requested is done. They stay so:
	// the number of queues does not count them (N1).
	Split int
	// Version is the version of the row that was compared; 0 if there is none. QueuesVersion is that of the number of
	// queues, the partition_version.
	Version, QueuesVersion int64

	row center.Settings // the settings in force; zero if the task type has no row
}

// errKind means that the row has named queues and the settings have numbered ones, or the other way round.
var errKind = errors.New("the database and the settings must both number the queues or both name them: " +
	"delete the task type first, or give the new one another name")

// Compare returns the difference between the row of a task type and s. A zero in s means the default. A worker
// that starts does not compare zeros.
func (t *Tasks) Compare(ctx context.Context, taskType string, s center.Settings) (a SettingsDiff, err error) {
	if err := errors.Join(roster.ValidTaskType(taskType), s.Validate()); err != nil {
		return SettingsDiff{}, fmt.Errorf("task %s: %w", taskType, err)
	}
	row, err := t.Settings(ctx, taskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return SettingsDiff{
			TaskType: taskType, Settings: s, Named: len(s.QueueNames) > 0, Wanted: s.Queues,
			Add: s.QueueNames,
		}, nil
	}
	if err != nil {
		return SettingsDiff{}, err
	}
	a = SettingsDiff{
		TaskType: taskType, Settings: s, Exists: true, Changes: settingChanges(row, s), Wanted: s.Queues,
		Named: len(s.QueueNames) > 0, row: row,
	}
	tasks, err := t.List(ctx, taskType)
	if err != nil {
		return SettingsDiff{}, err
	}
	totals, err := t.queueTotals(ctx, taskType)
	if err != nil {
		return SettingsDiff{}, err
	}
	a.Version, a.QueuesVersion = tasks[0].Version, tasks[0].Partition
	a.Total, a.Rows = cmp.Or(row.Queues, len(row.QueueNames)), len(totals)
	a.Resizing = len(tasks[0].Resizing)
	if wanted := tasks[0].wantedTotal(totals); wanted != row.Queues {
		a.Waiting = wanted
	}
	if wanted := tasks[0].wantedTotal(totals); tasks[0].RequestedTotal == nil && wanted == a.Wanted {
		a.Split = totals.after(tasks[0].Resizing).split()
	}
	oneDatabase := s.Database == "" || roster.CheckDataName(s.Database) == nil
	barrier := tasks[0].RequestedTotal != nil // only another request ends it, or replaces it
	a.Resizes = s.Splittable && oneDatabase && !barrier && len(totals) <= roster.MaxResizing && totals.divide(a.Wanted)
	return a, a.compareQueues(taskType, row, s)
}

// wantedTotal returns the number of queues when all that is requested is done.
func (t TaskRecord) wantedTotal(totals queueTotals) int {
	if t.RequestedTotal != nil {
		return int(*t.RequestedTotal)
	}
	return totals.after(t.Resizing).least()
}

func (d *SettingsDiff) compareQueues(taskType string, row, s center.Settings) error {
	if d.Total == 0 {
		return nil // no server has served it here yet: the first one clones BASE's queues
	}
	if d.Named != (len(row.QueueNames) > 0) {
		return fmt.Errorf("task %s: %w", taskType, errKind)
	}
	for _, name := range s.QueueNames {
		if !slices.Contains(row.QueueNames, name) {
			d.Add = append(d.Add, name)
		}
	}
	for _, name := range row.QueueNames {
		if !slices.Contains(s.QueueNames, name) {
			d.Remove = append(d.Remove, name)
		}
	}
	return nil
}

// ErrChanged means that another operator or worker has changed what was compared: settings, the number of queues, or a
// trigger.
var ErrChanged = roster.ErrChanged

// Apply writes the difference. It writes the settings and requests the number of queues (N1, N3) in one transaction,
// and then adds and removes named queues one by one (N2). It refuses settings that a registered server of any own_sign
// would reject, and names the server. It returns ErrChanged if Compare has read another version of the settings, or of
// the number of queues, than the transaction that writes them. Workers use the settings from their next heartbeats on.
// Apply creates a missing task type with its queues.
func (t *Tasks) Apply(ctx context.Context, d SettingsDiff, actor string) error {
	if d.Same() {
		return nil
	}
	if !d.Exists {
		return t.create(ctx, d)
	}
	if d.Total == 0 {
		if _, err := t.Define(ctx, d.TaskType, d.Settings); err != nil {
			return err
		}
	}
	if err := t.applySettings(ctx, d, actor); err != nil {
		return err
	}
	err := t.applyQueueNames(ctx, d, actor)
	if err != nil && len(d.Changes) > 0 {
		err = fmt.Errorf("%w; the other settings of %s are changed already", err, d.TaskType)
	}
	return err
}

// create creates the task type. It returns ErrChanged if another operator or worker has created it with other settings
// or queues after Compare.
func (t *Tasks) create(ctx context.Context, d SettingsDiff) error {
	row, err := t.Define(ctx, d.TaskType, d.Settings)
	if err != nil {
		return err
	}
	differ := settingChanges(row, d.Settings)
	if given, queues := d.Settings.QueuesText(), row.QueuesText(); given != queues {
		differ = append(differ, runs.Difference{Name: "queues", Given: given, Row: queues})
	}
	if len(differ) > 0 {
		return fmt.Errorf("create %s: %w: there is one with other settings: %s", d.TaskType, ErrChanged,
			changesText(differ))
	}
	return nil
}

// applySettings writes the settings and requests the number of numbered queues, in one transaction: if one is refused,
// nothing is written.
func (t *Tasks) applySettings(ctx context.Context, d SettingsDiff, actor string) error {
	if len(d.Changes) == 0 && !d.Repartitions() {
		return nil
	}
	if err := d.Settings.Validate(); err != nil {
		return fmt.Errorf("task %s: %w", d.TaskType, err)
	}
	err := t.c.roster.UnderLock(ctx, d.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		if len(d.Changes) > 0 {
			if err := changeSettings(ctx, l, d, actor); err != nil {
				return err
			}
		}
		switch {
		case !d.Repartitions():
			return nil
		case d.Resizes:
			return l.ResizeAll(ctx, actor, d.Wanted, d.QueuesVersion)
		}
		return l.Repartition(ctx, actor, d.Wanted, d.QueuesVersion)
	})
	return sqldb.Prefix(err, "apply")
}

func changeSettings(ctx context.Context, l *roster.LockTx, d SettingsDiff, actor string) error {
	if err := writeSettings(ctx, l, d.Settings.WithDefaults(), d.Version); err != nil {
		return err
	}
	if err := applySchedule(ctx, l, d.Settings, actor); err != nil {
		return err
	}
	if d.endsRuns() {
		// Nobody makes a run meanwhile.
		if _, err := l.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1 WHERE task_type = ?`,
			l.TaskType); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
	}
	if err := refuseChange(ctx, l, l.OwnSign, d); err != nil {
		return err
	}
	return recordEverywhere(ctx, l, roster.Event{Kind: EventSettings, Actor: actor, Reason: changesText(d.Changes)})
}

// Check returns the error with which Apply would refuse the settings, or the number of queues, now; nil if it would
// not. Of a change of both it checks the settings alone: what they allow for the queues is known when they are written.
// It only reads. Apply checks again, in the transaction that writes.
func (t *Tasks) Check(ctx context.Context, d SettingsDiff) error {
	switch {
	case !d.Exists:
		return nil
	case len(d.Changes) > 0:
		err := refuseChange(ctx, t.c.db, t.c.OwnSign(), d)
		if err == nil && d.changes("after") {
			s := d.Settings.WithDefaults()
			err = runs.CheckAfter(ctx, t.c.db, d.TaskType, s.Mode, s.After)
		}
		return sqldb.Wrap(err, "apply %s$%s", d.TaskType, t.c.OwnSign())
	case !d.Repartitions():
		return nil
	}
	return sqldb.Prefix(t.c.roster.Ask(ctx, d.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		if d.Resizes {
			return l.MayResizeAll(ctx, d.Wanted, d.QueuesVersion)
		}
		return l.MayRepartition(ctx, d.Wanted, d.QueuesVersion)
	}), "apply")
}

// refuseChange returns an error if what there is in any own_sign does not allow the new settings: what mode RUN holds,
// or the dealer of a registered server.
func refuseChange(ctx context.Context, q sqldb.Eacher, ownSign string, d SettingsDiff) error {
	if d.endsRuns() {
		if err := refuseEndOfRuns(ctx, q, d, ownSign); err != nil {
			return err
		}
	}
	refused, err := roster.Unsuited(ctx, q, d.TaskType, "", func(offers processor.Capabilities) error {
		return fit.Check(offers, d.row, d.Settings)
	})
	return cmp.Or(err, refused)
}

// recordEverywhere records an event in all environments that have the task type, because they share its settings.
func recordEverywhere(ctx context.Context, l *roster.LockTx, e roster.Event) error {
	signs, err := sqldb.Records[string](ctx, l, `SELECT own_sign FROM schedule_task_running WHERE task_type = ?
		ORDER BY own_sign`, l.TaskType)
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
	n, err := l.Exec(ctx, `UPDATE schedule_task_type SET `+strings.Join(set, ", ")+`, version = version + 1,
		gmt_modified = {now}
		WHERE task_type = ? AND version = ?`, append(args, l.TaskType, version)...)
	if err == nil && n == 0 {
		err = ErrChanged
	}
	if err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1
		WHERE task_type = ?`, l.TaskType)
	return err
}

func changesText(changes []runs.Difference) string {
	list := make([]string, len(changes))
	for i, d := range changes {
		list[i] = fmt.Sprintf("%s %s -> %s", d.Name, d.Row, d.Given)
	}
	return strings.Join(list, ", ")
}

// CompareGiven does what Compare does for the settings that given names, as in rota.yaml. It leaves the other settings
// as they are, and lists them in Left if they differ from their defaults. cron and every replace each other. If the
// task type has no row, the settings that are left out have their defaults.
func (t *Tasks) CompareGiven(ctx context.Context, taskType string, s center.Settings,
	given []string,
) (SettingsDiff, error) {
	row, err := t.Settings(ctx, taskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return t.Compare(ctx, taskType, s)
	}
	if err != nil {
		return SettingsDiff{}, err
	}
	if !slices.Contains(given, "queues") {
		if row.Queues, err = t.requestedQueues(ctx, taskType); err != nil {
			return SettingsDiff{}, err
		}
		if row.Queues == 0 && len(row.QueueNames) == 0 {
			return SettingsDiff{}, fmt.Errorf("task %s: own_sign %s has no queues of it yet: state queues too, or change "+
				"the settings, which all environments share, in an own_sign that has some", taskType, t.c.ownSign)
		}
	}
	d, err := t.Compare(ctx, taskType, merged(row, s, given))
	if err != nil {
		return SettingsDiff{}, err
	}
	for _, c := range settingChanges(row, center.Settings{}) {
		if !takes(given, c.Name) {
			d.Left = append(d.Left, c)
		}
	}
	return d, nil
}

// requestedQueues returns the number of queues that was requested, or else the present one.
func (t *Tasks) requestedQueues(ctx context.Context, taskType string) (int, error) {
	tasks, err := t.List(ctx, taskType)
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	totals, err := t.queueTotals(ctx, taskType)
	return tasks[0].wantedTotal(totals), err
}

// merged returns s with the given settings of from.
func merged(s, from center.Settings, given []string) center.Settings {
	for _, row := range center.SettingTable() {
		if takes(given, row.Name) {
			reflect.ValueOf(row.Field(&s)).Elem().Set(reflect.ValueOf(row.Field(&from)).Elem())
		}
	}
	return s
}

// takes reports whether the given settings replace the named one.
func takes(given []string, name string) bool {
	if ofTrigger(name) {
		return slices.ContainsFunc(given, ofTrigger)
	}
	return slices.Contains(given, name)
}

// settingChanges compares all settings except the queues, with defaults for zeros.
func settingChanges(row, want center.Settings) (diffs []runs.Difference) {
	rows := row.Records()
	for i, w := range want.Records() {
		if rows[i].Value != w.Value {
			diffs = append(diffs, runs.Difference{Name: w.Name, Given: w.Text, Row: rows[i].Text})
		}
	}
	return diffs
}

// Same reports whether there is nothing to do.
func (d SettingsDiff) Same() bool {
	return d.Exists && len(d.Changes) == 0 && len(d.Add) == 0 && len(d.Remove) == 0 && !d.Repartitions()
}

// Repartitions reports whether the number of numbered queues changes, or a requested change is withdrawn.
func (d SettingsDiff) Repartitions() bool {
	if d.Named || !d.Exists || d.Total == 0 {
		return false
	}
	return d.Wanted != d.Total && d.Wanted != d.Waiting || d.Wanted == d.Total && d.Waiting != 0
}

// Withdraws reports whether the change of numbered queues only withdraws one that was requested before.
func (d SettingsDiff) Withdraws() bool { return d.Repartitions() && d.Wanted == d.Total }

// QueuesAdded returns how many numbered queues the change adds; negative if it removes some.
func (d SettingsDiff) QueuesAdded() int {
	if !d.Repartitions() || d.Withdraws() {
		return 0
	}
	return d.Wanted - d.Rows
}

// ChangesTrigger reports whether the change writes or deletes the trigger that has the task type's name.
func (d SettingsDiff) ChangesTrigger() bool {
	return slices.ContainsFunc(d.Changes, func(s runs.Difference) bool { return ofTrigger(s.Name) })
}

// DeletesTrigger reports whether the change deletes that trigger.
func (d SettingsDiff) DeletesTrigger() bool {
	return d.ChangesTrigger() && d.Settings.Cron == "" && d.Settings.Every == 0
}

// TaskSettings are the settings that a file gives for a task type.
type TaskSettings struct {
	Name     string
	Settings center.Settings
	Given    []string // the names of the settings that the file gives
}

// UpstreamsFirst sorts the task types so that each comes after its upstreams, which must exist before it. It leaves a
// cycle in its order: Tasks.Apply refuses it.
func UpstreamsFirst(tasks []TaskSettings) []TaskSettings {
	return upstreamsFirst(tasks, func(t, other TaskSettings) bool {
		return slices.ContainsFunc(t.Settings.After, func(a runs.After) bool { return a.Upstream == other.Name })
	})
}

// ChangesGraph reports whether the change is about which task types have runs and depend on each other. Whether Apply
// refuses such a change may depend on changes of other task types that are applied before it.
func (d SettingsDiff) ChangesGraph() bool { return d.changes("mode") || d.changes("after") }

func (d SettingsDiff) changes(setting string) bool {
	return slices.ContainsFunc(d.Changes, func(c runs.Difference) bool { return c.Name == setting })
}

// endsRuns reports whether the change ends mode RUN.
func (d SettingsDiff) endsRuns() bool {
	return d.changes("mode") && d.Settings.WithDefaults().Mode != center.ModeRun
}

// refuseEndOfRuns refuses to end mode RUN while the task type has open runs or backfills, dependants or triggers in any
// own_sign (R14): nothing would open, fire or end them. The trigger that the change itself deletes does not count.
func refuseEndOfRuns(ctx context.Context, q sqldb.Eacher, d SettingsDiff, ownSign string) error {
	var blockers []error
	spared := "" // no trigger has an empty name
	if d.DeletesTrigger() {
		spared = d.TaskType
	}
	for _, b := range []struct{ query, text, command string }{
		{
			`SELECT run_id, own_sign FROM schedule_run WHERE task_type = ? AND state IN ('` + runs.Waiting + `', '` +
				runs.Ready + `', '` + runs.Running + `') ORDER BY run_id LIMIT 1`,
			"run %s (own_sign %s) is open: wait for its end or cancel it", "rota run cancel",
		},
		{
			`SELECT run_id, own_sign FROM schedule_submission WHERE task_type = ? ORDER BY run_id LIMIT 1`,
			"run %s (own_sign %s) was submitted and is still to be made: wait for its end", "",
		},
		{
			`SELECT backfill_id, own_sign FROM schedule_backfill WHERE task_type = ? AND state = '` + runs.BackfillRunning +
				`' ORDER BY backfill_id LIMIT 1`,
			"backfill %s (own_sign %s) is open: wait for its end or cancel it", "rota run backfill cancel",
		},
		{
			`SELECT task_type, rule FROM schedule_task_after WHERE upstream = ? ORDER BY task_type LIMIT 1`,
			"task type %s runs after it (%s): take it out of its after first", "",
		},
		{
			`SELECT name, own_sign FROM schedule_trigger WHERE target = ? AND NOT (name = ? AND own_sign = ?)
				ORDER BY name, own_sign LIMIT 1`,
			"trigger %s (own_sign %s) fires it: delete the trigger first", "rota trigger delete",
		},
	} {
		type blocker struct{ Name, Detail string }
		args := []any{d.TaskType, spared, ownSign}
		found, err := sqldb.Records[blocker](ctx, q, b.query, args[:strings.Count(b.query, "?")]...)
		if err != nil {
			return fmt.Errorf("look for what mode RUN holds: %w", err)
		}
		for _, f := range found {
			blocker := fmt.Errorf("mode must not change from RUN to CONTINUOUS: "+b.text, f.Name, f.Detail)
			if b.command != "" {
				line := commandElsewhere(ownSign, f.Detail, b.command+" "+human.ShellWord(f.Name))
				blocker = fmt.Errorf("%w: %s", blocker, line)
			}
			blockers = append(blockers, blocker)
		}
	}
	return errors.Join(blockers...)
}

// commandElsewhere returns a command line for an environment that may be another one than here.
func commandElsewhere(here, there, line string) string {
	if here == there {
		return CommandLines(here, line)
	}
	return human.CommandsIn(there, line)
}
