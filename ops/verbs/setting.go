package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/fit"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// SetTask changes some settings of a task type. Their values are texts, as rota task show prints them; an empty one is
// the default.
type SetTask struct {
	TaskType string            `arg:"TASK" of:"task" json:"-"`
	Settings map[string]string `arg:"SETTING=VALUE..." json:"-"`
}

var setTask = verb[SetTask](Verb{
	Name: "task set", Right: RightChange,
	Short: "Change single settings of a task type",
	Help: `Change single settings of a task type. Values are written as rota task show
prints them; an empty value is the default. The command shows each difference
before it writes, and does what rota task apply does with it.`,
	Example: `  rota task set settle fetch_number=100 rate_per_second=50
  rota task set settle max_in_flight= --dry-run
  rota task set regions 'queues=[north, south, west]'
  rota task set report 'cron=0 0 2 * * ?'`,
})

// Current returns the settings in force for those that are not given.
func (a SetTask) Current(ctx context.Context, c *ops.Client) (Operation, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err != nil {
		return nil, err
	}
	s, err := c.Tasks().Settings(ctx, t.TaskType)
	if err != nil {
		return nil, err
	}
	if t.RequestedTotal != nil {
		s.Queues = int(*t.RequestedTotal)
	}
	texts := map[string]string{"queues": s.QueuesText()}
	for _, r := range s.Records() {
		texts[r.Name] = r.Text
	}
	maps.Copy(texts, a.Settings)
	a.Settings = texts
	return a, nil
}

// Prepare implements Operation.
func (a SetTask) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err != nil {
		return nil, err
	}
	change := &Change{Title: "Change the settings of " + t.TaskType, TaskTypes: []string{t.TaskType}}
	var s center.Settings
	var errs []error
	names := slices.Sorted(maps.Keys(a.Settings))
	for _, name := range names {
		errs = append(errs, s.Set(name, a.Settings[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return change, err
	}
	d, err := c.Tasks().CompareGiven(ctx, t.TaskType, s, names)
	if err != nil {
		return change, err
	}
	d.Left = nil // the call names what changes
	change.Version = fmt.Sprint(d.Version, "/", d.QueuesVersion)
	change.addSettings(c, d)
	return change, c.Tasks().Check(ctx, d)
}

// ApplyTasks writes the settings of a file.
type ApplyTasks struct {
	Names []string `arg:"[TASK...]" of:"task" form:"tasks" json:"-"`
	Reset bool     `flag:"reset" json:"-" help:"set the defaults of what the file leaves out"`

	Tasks []ops.TaskSettings `json:"-"` // of the file
}

var applyTasks = verb[ApplyTasks](Verb{
	Name: "task apply", Right: RightChange,
	NoPage: "it reads a file",
	Short:  "Write the settings of a rota.yaml to the database",
	Help: `Write the settings of a rota.yaml to the database, for all its task types or for
the named ones. A setting that the file leaves out stays as it is; the command
names those that are not at their defaults, and --reset sets the defaults. The
command shows each difference before it writes. It creates missing task types.

Workers adopt new settings with their next heartbeats. A change of the number
of queues is a barrier: every worker finishes what it has in flight, then rows
are added or removed, then all workers continue. If the task type is splittable,
and the numbers divide, each queue is split or merged by its owner instead,
while the others go on. Named queues are added at once,
and removed when they are drained. cron and every belong to the trigger that has
the task type's name, in this environment. The command asks before it removes
queues or the trigger.`,
	Example: `  rota task apply -f rota.yaml --dry-run
  rota task apply -f rota.yaml
  rota task apply -f rota.yaml settle --yes`,
})

// Prepare implements Operation. It compares everything, and asks whether it is refused, before anything is written.
// Each task type comes after its upstreams, which must exist before it.
func (a ApplyTasks) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	if len(a.Tasks) == 0 {
		return nil, missing("the task type")
	}
	change := &Change{Title: "Apply settings"}
	for _, name := range a.Names {
		if !slices.ContainsFunc(a.Tasks, func(t ops.TaskSettings) bool { return t.Name == name }) {
			return change, fmt.Errorf("%s is not defined in the file", name)
		}
	}
	compare := c.Tasks().CompareGiven
	if a.Reset {
		compare = func(ctx context.Context, taskType string, s center.Settings, _ []string) (ops.SettingsDiff, error) {
			return c.Tasks().Compare(ctx, taskType, s)
		}
	}
	for _, t := range ops.UpstreamsFirst(a.Tasks) {
		if len(a.Names) > 0 && !slices.Contains(a.Names, t.Name) {
			continue
		}
		d, err := compare(ctx, t.Name, t.Settings, t.Given)
		if err != nil {
			return nil, err
		}
		if !d.ChangesGraph() {
			if err := c.Tasks().Check(ctx, d); err != nil {
				return nil, err
			}
		}
		change.TaskTypes = append(change.TaskTypes, t.Name)
		change.addSettings(c, d)
	}
	return change, nil
}

// addSettings adds a task type whose settings change.
func (c *Change) addSettings(in *ops.Client, d ops.SettingsDiff) {
	o := Object{
		Name: inEnvironment(in, d.TaskType), Past: "changed", Differences: differences(d),
		do: done(func(ctx context.Context, actor string) error { return in.Tasks().Apply(ctx, d, actor) }),
	}
	switch {
	case d.Same():
		o.do = nil
	case !d.Exists && d.Named:
		o.Past = "created with queues " + strings.Join(d.Settings.QueueNames, ", ")
	case !d.Exists:
		o.Past = "created with " + human.Count(d.Wanted, "queue", "queues")
	default:
		o.Says = settingsSay(d, in.OwnSign())
	}
	if d.Same() && d.Split > 0 {
		o.Effect = fmt.Sprintf("%d of its %d queues were split, and stay so: %s", d.Split, d.Rows,
			in.CommandLines(fmt.Sprintf("rota queue merge %s QUEUE --total %d", human.ShellWord(d.TaskType), d.Wanted)))
	}
	if len(d.Left) > 0 {
		left, resets := make([]string, len(d.Left)), make([]string, len(d.Left))
		for i, s := range d.Left {
			left[i], resets[i] = s.Name+" "+s.Row, s.Name+"="
		}
		o.Effect = strings.TrimPrefix(fmt.Sprintf("%s; not stated, and these stay: %s (%s sets the defaults)", o.Effect,
			strings.Join(left, ", "), in.SetCommand(d.TaskType, resets...)), "; ")
	}
	c.Objects = append(c.Objects, o)
	c.Everywhere = c.Everywhere || !d.Exists || len(d.Changes) > 0
	for _, loss := range settingsLose(d) {
		if c.Loses != "" {
			loss = c.Loses + ", and " + loss
		}
		c.Loses = loss
	}
}

// differences lists the differences of settings and of queues; none of a task type that is missing.
func differences(d ops.SettingsDiff) []runs.Difference {
	list := []runs.Difference{}
	if !d.Exists {
		return list
	}
	list = append(list, d.Changes...)
	if d.Repartitions() {
		row := fmt.Sprint(d.Total)
		if d.Waiting != 0 {
			row += fmt.Sprintf(" (%d requested)", d.Waiting)
		}
		list = append(list, runs.Difference{Name: "queues", Row: row, Given: fmt.Sprint(d.Wanted)})
	}
	for _, name := range d.Add {
		list = append(list, runs.Difference{Name: "queues", Given: name})
	}
	for _, name := range d.Remove {
		list = append(list, runs.Difference{Name: "queues", Row: name})
	}
	return list
}

// settingsSay says what each change causes.
func settingsSay(d ops.SettingsDiff, ownSign string) (list []string) {
	atStart := func(c runs.Difference) bool { return fit.AtStart(c.Name) }
	for _, c := range d.Changes {
		if atStart(c) {
			list = append(list, fmt.Sprintf("Stop all workers of all environments before: %s changes only while none serves it.",
				c.Name))
		}
	}
	if slices.ContainsFunc(d.Changes, func(c runs.Difference) bool { return !atStart(c) }) {
		list = append(list, "Workers of all environments adopt the settings with their next heartbeats.")
	}
	if d.ChangesTrigger() {
		list = append(list, fmt.Sprintf("This changes the trigger %s of this environment, %s. Open runs stay.",
			d.TaskType, ownSign))
	}
	if d.Exists && d.Total == 0 {
		list = append(list, ownSign+" has no queues of it yet: this adds them, as many as in BASE if it has some there.")
	}
	const barrier = "A change of the number of queues is a barrier: every worker finishes what it has in flight and " +
		"waits; then %s, and all workers continue under new epochs."
	n := d.QueuesAdded()
	switch {
	case !d.Repartitions():
	case d.Withdraws():
		list = append(list, fmt.Sprintf("This withdraws the change to %s, which is under way.",
			human.Count(d.Waiting, "queue", "queues")))
		if d.Resizes && d.Rows > d.Total {
			list = append(list, "Queues that were split are merged again.")
		}
	case d.Resizes:
		list = append(list, fmt.Sprintf("The owners split or merge their queues, one at a time: each finishes what it has "+
			"in flight of a queue, and works its other queues meanwhile. Then mod(id, %d) decides.", d.Wanted))
	case n < 0:
		list = append(list, fmt.Sprintf(barrier, human.Count(-n, "row is", "rows are")+" removed"),
			fmt.Sprintf("Items of the removed queues are then in others: mod(id, %d) decides.", d.Wanted))
	case n > 0:
		list = append(list, fmt.Sprintf(barrier, human.Count(n, "row is", "rows are")+" added"))
	default:
		list = append(list, fmt.Sprintf(barrier, "as many rows as before have other items"))
	}
	if d.Resizing > 0 && d.Repartitions() && !d.Resizes && !d.Withdraws() {
		list = append(list, fmt.Sprintf("This withdraws the requests to split or merge %s.",
			human.Count(d.Resizing, "queue", "queues")))
	}
	if len(d.Remove) > 0 {
		list = append(list, "The owners drain the removed queues first. Their items are no longer processed.")
	}
	return list
}

// settingsLose names what a change of settings deletes.
func settingsLose(d ops.SettingsDiff) (list []string) {
	if n := d.QueuesAdded(); n < 0 && !d.Resizes {
		list = append(list, fmt.Sprintf("remove %s of %s", human.Count(-n, "queue", "queues"), d.TaskType))
	}
	if d.DeletesTrigger() {
		list = append(list, fmt.Sprintf("delete trigger %s, which starts its runs", d.TaskType))
	}
	if len(d.Remove) > 0 {
		list = append(list, fmt.Sprintf("remove queues %s of %s, whose items are then no longer processed",
			strings.Join(d.Remove, ", "), d.TaskType))
	}
	return list
}
