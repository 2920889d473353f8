package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// FireTrigger makes a run of a trigger now.
type FireTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var fireTrigger = verb[FireTrigger](Verb{
	Name: "trigger fire", Right: RightOperate,
	Short: "Make a run of a trigger now and print its id",
	Effect: "Its status does not matter, and its slots do not change. If it skips slots while a run of it is open, and " +
		"one is open, the new run ends at once as SKIPPED.",
	Help: `The exit code is 1 if the run is SKIPPED.`,
	Example: `  rota trigger fire nightly
  rota run wait $(rota trigger fire nightly)`,
})

// Prepare implements Operation.
func (a FireTrigger) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return triggerChange(ctx, c, a.Trigger, fireTrigger, "fired", "", func(
		ctx context.Context, triggers *runs.Triggers, actor string,
	) (Done, error) {
		id, err := triggers.Fire(ctx, a.Trigger, actor)
		return Done{ID: id, Text: "it has made run " + id}, err
	})
}

// PauseTrigger stops a trigger.
type PauseTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var pauseTrigger = verb[PauseTrigger](Verb{
	Name: "trigger pause", Right: RightOperate,
	Short:   "Pause a trigger",
	Effect:  "It misses its slots. When somebody resumes it, its misfire says which of them fire. Open runs continue.",
	Example: "  rota trigger pause nightly",
})

// Prepare implements Operation.
func (a PauseTrigger) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return pauseTriggerChange(ctx, c, a.Trigger, pauseTrigger, "paused", "it misses its slots", true)
}

// pauseTriggerChange returns the change that begins or ends the pause of a trigger. A trigger that is DONE stays so.
func pauseTriggerChange(ctx context.Context, c *ops.Client, name string, v *Verb, past, effect string, paused bool,
) (*Change, error) {
	change, err := triggerChange(ctx, c, name, v, past, effect, func(
		ctx context.Context, triggers *runs.Triggers, actor string,
	) (Done, error) {
		return Done{}, triggers.SetPaused(ctx, name, paused, actor)
	})
	if err != nil {
		return nil, err
	}
	t, err := findTrigger(ctx, c, name)
	switch {
	case err != nil:
		return nil, err
	case t.Status == runs.TriggerDone:
		change.Objects[0].do, change.Objects[0].Effect = nil, "it is DONE: it has no further slot"
	case t.Status == runs.TriggerError && !paused:
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("resume %w", err)
		}
	}
	return change, nil
}

// ResumeTrigger ends the pause of a trigger.
type ResumeTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var resumeTrigger = verb[ResumeTrigger](Verb{
	Name: "trigger resume", Right: RightOperate,
	Short:   "Resume a paused trigger, or one in ERROR",
	Effect:  "It fires its slots again. Its misfire says which of the missed slots fire.",
	Example: "  rota trigger resume nightly",
})

// Prepare implements Operation.
func (a ResumeTrigger) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return pauseTriggerChange(ctx, c, a.Trigger, resumeTrigger, "resumed", "", false)
}

// DeleteTrigger deletes a trigger.
type DeleteTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var deleteTrigger = verb[DeleteTrigger](Verb{
	Name: "trigger delete", Right: RightChange,
	Short: "Delete a trigger",
	Effect: "It makes no more runs, and its runs stay. Its open backfills end, and make no more runs either. A later " +
		"trigger of the same name fires none of its slots again.",
	Example: "  rota trigger delete nightly\n  rota trigger delete nightly --yes",
})

// Prepare implements Operation.
func (a DeleteTrigger) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	change, err := triggerChange(ctx, c, a.Trigger, deleteTrigger, "deleted", "", func(
		ctx context.Context, triggers *runs.Triggers, actor string,
	) (Done, error) {
		return Done{}, triggers.Delete(ctx, a.Trigger, actor)
	})
	if err == nil {
		change.Loses = fmt.Sprintf("delete trigger %s, which starts runs of %s", inEnvironment(c, a.Trigger),
			change.TaskTypes[0])
	}
	return change, err
}

// triggerChange completes a change of a trigger, which must exist. do gets a bundle of triggers that refuses the change
// if an operator has changed the trigger meanwhile.
func triggerChange(ctx context.Context, c *ops.Client, name string, v *Verb, past, effect string,
	do func(context.Context, *runs.Triggers, string) (Done, error),
) (*Change, error) {
	if name == "" {
		return nil, missing("the trigger")
	}
	t, err := findTrigger(ctx, c, name)
	if err == nil && t.Name == "" {
		err = fmt.Errorf("find trigger %s in own_sign %s: %w", name, c.OwnSign(), runs.ErrUnknownTrigger)
	}
	if err != nil {
		return nil, err
	}
	return &Change{
		Title:     v.Button() + " trigger " + t.Name,
		TaskTypes: []string{t.Target}, Version: t.Revision(), Says: []string{v.Effect},
		Objects: []Object{{
			Name: inEnvironment(c, t.Name), Past: past, Effect: effect,
			do: func(ctx context.Context, actor string) (Done, error) {
				return do(ctx, c.Triggers().IfStill(t.Trigger), actor)
			},
		}},
	}, nil
}

// findTrigger returns the trigger with a name, or a record without a name if there is none.
func findTrigger(ctx context.Context, c *ops.Client, name string) (runs.TriggerRecord, error) {
	if name == "" {
		return runs.TriggerRecord{}, nil
	}
	list, err := c.Triggers().List(ctx, runs.TriggerFilter{Name: name})
	if err != nil || len(list) == 0 {
		return runs.TriggerRecord{}, err
	}
	return list[0], nil
}

// ApplyTrigger creates a trigger, or changes it to what the arguments say.
type ApplyTrigger struct {
	Trigger      string        `arg:"NAME" of:"trigger" form:"trigger" ask:"yes" json:"-"`
	TaskType     string        `flag:"task" of:"run task" ask:"yes" json:"-" help:"task type whose runs the trigger makes"`
	Cron         string        `flag:"cron" json:"-" help:"when it is due: \"0 0 2 * * ?\" is at 2:00 every day"`
	TimeZone     string        `flag:"time-zone" default:"UTC" json:"-" help:"time zone of cron, such as Europe/Berlin"`
	Every        string        `flag:"every" json:"-" help:"instead of cron: how often it is due, such as 90s, 10m, 24h"`
	At           string        `flag:"at" json:"-" help:"instead of cron: when it is due, once: 2026-12-01T02:00:00+01:00"`
	Start        string        `flag:"start" json:"-" help:"it is not due before this time, or duration from now"`
	End          string        `flag:"end" json:"-" help:"it is not due after this time, or duration from now"`
	MaxFires     int           `flag:"max-fires" json:"-" help:"after this many runs it is DONE; 0: no limit"`
	Misfire      string        `flag:"misfire" choices:"ONE SKIP ALL" default:"ONE" json:"-" help:"which missed slots fire"`
	MisfireAfter time.Duration `flag:"misfire-after" default:"1m" json:"-" help:"age limit of misfire SKIP"`
	CatchupMax   int           `flag:"catchup-max" default:"100" json:"-" help:"limit of misfire ALL, from 1 to 1000"`
	Overlap      string        `flag:"overlap" choices:"SKIP WAIT" default:"SKIP" json:"-" help:"what a slot does while a run of the trigger is open"`
	Jitter       time.Duration `flag:"jitter" json:"-" help:"fires later than the slot by a constant time below this"`
	ExcludedDays string        `flag:"exclude" json:"-" help:"days without slots of cron: 2026-04-03,12-25"`
	Priority     int           `flag:"priority" json:"-" help:"priority of the runs: the highest starts first"`
	Params       string        `flag:"params" long:"yes" json:"-" help:"parameters of the runs: any text, such as JSON"`
}

var applyTrigger = verb[ApplyTrigger](Verb{
	Name: "trigger apply", Right: RightChange,
	Short: "Create a trigger, or change it to what the flags say",
	Help: `Create a trigger, or change it to what the flags say. A flag that is left out
has its default. The command shows each difference before it writes, and the
next slots. Any worker fires a trigger; each slot makes at most one run.

Cron expressions have seconds, as in Quartz: second minute hour day month
weekday [year]; or five fields as in a crontab, after "cron5:". A wall time that
occurs twice in autumn fires once. One that does not exist in spring fires at
the first instant after the gap. The duration of --every is counted from
--start, or from the creation of the trigger. A time is in RFC 3339. --jitter
delays all slots of the trigger by one time, so that not all triggers fire at
once.

--misfire applies to slots that no worker fired in time: ONE fires the newest,
SKIP the newest if it is younger than --misfire-after, ALL fires each, at most
--catchup-max. --overlap applies to slots while a run of the same trigger is
open: SKIP leaves a SKIPPED run, WAIT lets one run wait. Runs of other triggers
skip nothing: the slot's run waits for its turn, by priority and slot. The run
of --at always waits. A paused run that has not started skips nothing.`,
	Example: `  rota trigger apply nightly --task reindex --cron "0 0 2 * * ?" \
      --time-zone Europe/Berlin --dry-run
  rota trigger apply poll --task import --every 10m --overlap WAIT
  rota trigger apply move --task migrate --at 2026-12-01T02:00:00+01:00`,
})

// Slots are instants at which a trigger is due.
type Slots struct {
	Next []time.Time
	Zone *time.Location // of the trigger
	Now  time.Time      // by the database's clock
}

// shownSlots is how many of the next slots a change of a trigger shows.
const shownSlots = 5

// Current returns the trigger of that name as it is.
func (a ApplyTrigger) Current(ctx context.Context, c *ops.Client) (Operation, error) {
	was, err := findTrigger(ctx, c, a.Trigger)
	if err != nil || was.Name == "" {
		return a, err
	}
	return ApplyOf(was.Trigger), nil
}

// ApplyOf returns the arguments with which ApplyTrigger makes a trigger such as t.
func ApplyOf(t runs.Trigger) ApplyTrigger {
	a := ApplyTrigger{
		Trigger: t.Name, TaskType: t.Target, TimeZone: t.TimeZone, Start: timeText(t.StartAt), End: timeText(t.EndAt),
		MaxFires: int(t.MaxFires), Misfire: t.Misfire, MisfireAfter: t.MisfireAfter,
		CatchupMax: t.CatchupMax, Overlap: t.Overlap,
		Jitter: t.Jitter, ExcludedDays: t.ExcludedDays, Priority: t.Priority, Params: t.Params,
	}
	for _, e := range a.expressions() {
		if e.kind == t.Kind {
			*e.text = t.Expression
		}
	}
	return a
}

// expression is the argument that makes a trigger of a kind.
type expression struct {
	kind, name string
	text       *string
}

// expressions are the arguments that say when a trigger is due. Each kind of trigger has one, and a user gives exactly
// one.
func (a *ApplyTrigger) expressions() []expression {
	return []expression{
		{runs.TriggerCron, "cron", &a.Cron}, {runs.TriggerEvery, "every", &a.Every}, {runs.TriggerOnce, "at", &a.At},
	}
}

// ScheduleText says when a trigger is due, such as "every 10m".
func ScheduleText(t runs.Trigger) string {
	for _, e := range new(ApplyTrigger).expressions() {
		if e.kind == t.Kind && e.kind != runs.TriggerCron {
			return e.name + " " + t.Expression
		}
	}
	return t.Expression + " " + t.TimeZone
}

// Prepare implements Operation.
func (a ApplyTrigger) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	was, err := findTrigger(ctx, c, a.Trigger)
	if err != nil {
		return nil, err
	}
	change := &Change{Title: "Make a trigger", TaskTypes: []string{a.TaskType}, Version: "0"}
	if was.Name != "" {
		change.Title, change.Version = "Change trigger "+was.Name, was.Revision()
		if was.Target != a.TaskType {
			change.TaskTypes = append(change.TaskTypes, was.Target)
		}
	}
	t, err := a.trigger()
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return change, err
	}
	d, err := c.Triggers().Compare(ctx, t, shownSlots)
	if err != nil {
		return change, err
	}
	o := Object{
		Name: inEnvironment(c, t.Name), Past: "changed", Differences: append([]runs.Difference{}, d.Changes...),
		Slots: slotsOf(d),
		Record: runs.TriggerRecord{
			Trigger: d.Trigger, OwnSign: c.OwnSign(), MisfireAfterMS: d.Trigger.MisfireAfter.Milliseconds(),
		},
		do: func(ctx context.Context, actor string) (Done, error) {
			_, err := c.Triggers().Apply(ctx, d, actor)
			return Done{}, err
		},
	}
	switch {
	case d.Same():
		o.do = nil
	case !d.Exists:
		o.Past = "created for " + t.Target
	}
	if d.Trigger.Status == runs.TriggerPaused {
		o.Says = []string{"It is PAUSED, and fires after it is resumed."}
	}
	if len(d.Next) == 0 {
		change.Warnings = []string{"It has no slot: it never fires."}
	}
	change.Objects = []Object{o}
	return change, nil
}

// trigger reads the arguments.
func (a ApplyTrigger) trigger() (runs.Trigger, error) {
	t := runs.Trigger{
		Name: a.Trigger, Target: a.TaskType, TimeZone: a.TimeZone, MaxFires: int64(a.MaxFires),
		Misfire: a.Misfire, MisfireAfter: a.MisfireAfter, CatchupMax: a.CatchupMax, Overlap: a.Overlap,
		Jitter: a.Jitter, ExcludedDays: a.ExcludedDays, Priority: a.Priority, Params: a.Params,
	}
	errs := []error{given("the name", a.Trigger), given("the task type", a.TaskType), a.schedule(&t)}
	var start, end error
	t.StartAt, start = timeFrom("start", a.Start)
	t.EndAt, end = timeFrom("end", a.End)
	if a.MisfireAfter < time.Millisecond { // center takes zero for the default
		errs = append(errs, fmt.Errorf("misfire-after (%s) must be at least 1ms", a.MisfireAfter))
	}
	if a.CatchupMax < 1 {
		errs = append(errs, fmt.Errorf("catchup-max (%d) must be at least 1", a.CatchupMax))
	}
	return t, errors.Join(append(errs, start, end)...)
}

// schedule reads the one expression.
func (a ApplyTrigger) schedule(t *runs.Trigger) error {
	given := 0
	var names []string
	for _, e := range a.expressions() {
		if *e.text != "" {
			given++
			t.Kind, t.Expression = e.kind, *e.text
		}
		names = append(names, e.name)
	}
	if given == 0 {
		return missing(human.Alternatives(names))
	}
	if given > 1 {
		return errors.New("give only one: " + human.Alternatives(names))
	}
	if every, err := time.ParseDuration(a.Every); err == nil {
		t.Expression = every.String() // the form that rota.yaml's every has
	}
	if zone := cmp.Or(a.TimeZone, "UTC"); t.Kind != runs.TriggerCron && zone != "UTC" {
		return fmt.Errorf("time-zone (%s) is only for cron", zone)
	}
	return nil
}

func slotsOf(d runs.TriggerDiff) *Slots {
	zone, err := time.LoadLocation(d.Trigger.TimeZone)
	if err != nil {
		zone = time.UTC // this host may have fewer zones than the one that wrote the row
	}
	return &Slots{Next: d.Next, Zone: zone, Now: d.Now}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
