package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
)

// shownSlots is how many of the next slots of a trigger a page shows before it is written.
const shownSlots = 5

// triggerNamed returns a trigger, read now.
func (v *viewer) triggerNamed(ctx context.Context, name string) (t center.TriggerRecord, found bool, err error) {
	list, err := v.center.Triggers().List(ctx, center.TriggerFilter{Name: name})
	if err != nil || len(list) == 0 {
		return t, false, err
	}
	return list[0], true, nil
}

// prepareTriggerEdit makes a trigger, or changes one. Its page shows the next slots before anything is written.
func prepareTriggerEdit(ctx context.Context, v *viewer, form url.Values) (*change, error) {
	name := strings.TrimSpace(form.Get("trigger"))
	was, exists := center.TriggerRecord{}, false
	var err error
	if name != "" {
		if was, exists, err = v.triggerNamed(ctx, name); err != nil {
			return nil, err
		}
	}
	begun := form.Get("step") != ""
	t := was.Trigger
	version := fmt.Sprint(was.Version)
	if begun {
		t, err = readTrigger(name, form)
		version = form.Get("version")
	} else if !exists {
		t = center.Trigger{Name: name, Target: form.Get("task"), Kind: center.TriggerCron}.WithDefaults()
	}
	c := &change{Title: "Make a trigger", Button: "Write the trigger", Back: "triggers", TaskTypes: []string{t.Target}}
	if exists {
		c.Title = "Change trigger " + name
		if was.Target != t.Target {
			c.TaskTypes = append(c.TaskTypes, was.Target)
		}
	}
	c.hide("version", version)
	c.hide("step", "show")
	if begun && form.Get("edit") == "" && err == nil {
		err = c.compareTrigger(ctx, v, t, was.Version, version)
	}
	if !begun || err != nil || form.Get("edit") != "" {
		c.Fields = triggerFields(t, form, begun, exists, v.runTasks(ctx))
		return c, err
	}
	for _, f := range triggerFields(t, form, true, exists, nil) {
		c.hide(f.Name, f.Value)
	}
	return c, nil
}

// runTasks returns the task types that can have triggers.
func (v *viewer) runTasks(ctx context.Context) (names []string) {
	tasks, err := v.tasks(ctx)
	if err != nil {
		return nil // the page has a field instead of a list then
	}
	for _, t := range tasks {
		if t.Mode == center.ModeRun && v.Actor.may(Look, t.TaskType) {
			names = append(names, t.TaskType)
		}
	}
	return names
}

// compareTrigger fills what the trigger would change, unless somebody has changed it since the form was made.
func (c *change) compareTrigger(ctx context.Context, v *viewer, t center.Trigger, now int64, version string) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if fmt.Sprint(now) != version {
		return fmt.Errorf("trigger %s: %w", t.Name, errChanged)
	}
	d, err := v.center.Triggers().Compare(ctx, t, shownSlots)
	if err != nil {
		return err
	}
	if d.Same() {
		return errNothing
	}
	c.Diffs, c.Slots = d.Changes, d.Next
	if len(d.Next) == 0 {
		c.Warnings = []string{"It has no slot: it would never fire."}
	}
	c.do = func(ctx context.Context, actor string) (string, error) {
		_, err := v.center.Triggers().Apply(ctx, d, actor)
		return doneIf("trigger "+t.Name+" is written", err)
	}
	return nil
}

// readTrigger reads the fields of triggerFields.
func readTrigger(name string, form url.Values) (center.Trigger, error) {
	f := formReader{form: form}
	t := center.Trigger{
		Name: name, Target: f.text("target"), Kind: f.text("kind"), Expression: f.text("expression"), TimeZone: f.text("time_zone"),
		StartAt: f.time("start_at"), EndAt: f.time("end_at"), MaxFires: f.number("max_fires"),
		Misfire: f.text("misfire"), MisfireAfter: f.duration("misfire_after"), CatchupMax: int(f.number("catchup_max")),
		Jitter: f.duration("jitter"), ExcludedDays: f.text("excluded_days"), Overlap: f.text("overlap"),
		Priority: int(f.number("priority")), Params: form.Get("params"),
	}
	if every, err := time.ParseDuration(t.Expression); err == nil && t.Kind == center.TriggerEvery {
		t.Expression = every.String() // the form that rota.yaml's every has
	}
	return t, errors.Join(f.errs...)
}

// triggerFields returns the fields of a trigger, with the values of the form if it has been filled in.
func triggerFields(t center.Trigger, form url.Values, begun, exists bool, targets []string) []formField {
	fields := []formField{
		{Name: "trigger", Label: "Name", Value: t.Name, Required: true, Fixed: exists},
		{Name: "target", Label: "Task type", Value: t.Target, Required: true, Choices: targets, Help: "of mode RUN"},
		{Name: "kind", Label: "Kind", Value: t.Kind, Choices: []string{center.TriggerCron, center.TriggerEvery, center.TriggerOnce}},
		{Name: "expression", Label: "When", Value: t.Expression, Required: true, Help: "CRON: 0 0 2 * * ? is at 2:00 every day (seconds first). EVERY: 10m. ONCE: 2026-12-01T02:00:00+01:00"},
		{Name: "time_zone", Label: "Time zone", Value: t.TimeZone, Help: "of CRON, such as Europe/Berlin"},
		{Name: "start_at", Label: "Not before", Value: timeValue(t.StartAt), Help: "2026-12-01T00:00:00Z"},
		{Name: "end_at", Label: "Not after", Value: timeValue(t.EndAt)},
		{Name: "max_fires", Label: "Most runs", Value: numberValue(t.MaxFires), Help: "after as many it is done"},
		{Name: "misfire", Label: "Missed slots", Value: t.Misfire, Choices: []string{center.MisfireOne, center.MisfireSkip, center.MisfireAll}, Help: "ONE fires the newest, SKIP only a young one, ALL each"},
		{Name: "misfire_after", Label: "Age limit of SKIP", Value: durationValue(t.MisfireAfter)},
		{Name: "catchup_max", Label: "Most slots of ALL", Value: numberValue(int64(t.CatchupMax))},
		{Name: "jitter", Label: "Jitter", Value: durationValue(t.Jitter), Help: "it fires later than its slots by a constant time below this"},
		{Name: "excluded_days", Label: "Days without slots", Value: t.ExcludedDays, Help: "2026-04-03,12-25"},
		{Name: "overlap", Label: "While a run is open", Value: t.Overlap, Choices: []string{center.OverlapSkip, center.OverlapWait}, Help: "SKIP leaves a slot out, WAIT lets one run wait"},
		{Name: "priority", Label: "Priority", Value: numberValue(int64(t.Priority)), Help: "of its runs: the highest begins first"},
		{Name: "params", Label: "Parameters", Value: t.Params, Long: true, Help: "of its runs: any text, such as JSON"},
	}
	for i := range fields {
		if begun {
			fields[i].Value = form.Get(fields[i].Name)
		}
	}
	return fields
}

func timeValue(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func numberValue(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func durationValue(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
