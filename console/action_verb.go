package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops/verbs"
)

// errNothing is the error of a form that changes nothing.
var errNothing = errors.New("this changes nothing")

// prepareVerb returns the change of a verb whose arguments are in a form. It asks for the values that are missing or
// wrong.
func prepareVerb(ctx context.Context, v *viewer, form url.Values, verb *verbs.Verb) (*change, error) {
	call := verb.Call()
	var errs []error
	for _, a := range verb.Args {
		given := form[a.Name]
		if a.Type.Kind() != reflect.String { // an empty field is no number
			given = slices.DeleteFunc(slices.Clone(given), func(text string) bool { return strings.TrimSpace(text) == "" })
		}
		if len(given) > 0 && !a.CommandOnly {
			errs = append(errs, call.Set(a, given...))
		}
	}
	begun := form.Get("step") != ""
	if !begun {
		var err error
		if call, err = call.Current(ctx, v.client); err != nil {
			return nil, err
		}
	}
	planned, err := call.Prepare(ctx, v.client)
	if planned == nil {
		return nil, err
	}
	c := &change{Change: planned, Button: verb.Button(), Back: backTo(planned, verb)}
	for _, o := range planned.Objects {
		c.Diffs, c.Says = append(c.Diffs, o.Differences...), append(c.Says, o.Says...)
		if o.Slots != nil {
			c.Slots = o.Slots.Next
		}
	}
	version := cmp.Or(form.Get("version"), planned.Version) // a form that was overtaken stays so
	if version != "" {
		c.hide("version", version)
	}
	asked := begun && form.Get("edit") == ""
	if asked && err == nil && planned.Nothing() {
		err = errNothing
	}
	if err = errors.Join(append(errs, err)...); err != nil || !asked && (form.Get("edit") != "" || verb.Offers()) {
		c.Fields, c.Diffs, c.Slots, c.Everywhere = c.askFor(ctx, v, call, version), nil, nil, false // there is no change yet
		if errors.Is(err, verbs.ErrMissing) && !begun {
			err = nil // nobody has been asked yet
		}
		c.hide("step", "show")
		return c, err
	}
	if planned.Exact != nil {
		call = verb.CallOf(planned.Exact)
	}
	c.hideCall(call)
	if version != planned.Version {
		return c, fmt.Errorf("%s: %w", planned.Objects[0].Name, errChanged)
	}
	c.do = func(ctx context.Context, actor string) (string, error) {
		planned.Step = stopLater()
		done, err := planned.Do(ctx, actor)
		var lines []string
		for _, d := range done {
			lines = append(lines, d.String())
			if d.ID != "" && verb.Word() != "backfill" {
				c.Back = address("run", "run", d.ID)
			}
			if d.Rest != nil { // the next request goes on from there
				c.Hidden, c.Again = nil, err == nil
				c.hideCall(verb.CallOf(d.Rest))
			}
		}
		return strings.Join(lines, "; "), err
	}
	return c, c.preview(ctx, v)
}

// A request takes at most stepsPerRequest steps of a change of many things, and begins no other after stepsLimit: it
// must end before changeLimit. The page then asks for the rest. So a person who closes the page ends the change.
const (
	stepsPerRequest = 10
	stepsLimit      = changeLimit / 4
)

func stopLater() func(verbs.Done) bool {
	begin, steps := time.Now(), 0
	return func(verbs.Done) bool {
		steps++
		return steps == stepsPerRequest || time.Since(begin) > stepsLimit
	}
}

// askFor returns a field for each argument that is a value. It hides the arguments that name what is changed.
func (c *change) askFor(ctx context.Context, v *viewer, call *verbs.Call, version string) (fields []formField) {
	for _, a := range call.Verb.Args {
		switch values := call.Values(a); {
		case a.CommandOnly:
		case a.Names != "" && !a.Ask:
			c.hide(a.Name, values...)
		default:
			f := formField{
				Name: a.Name, Label: labelOf(a), Value: strings.Join(values, ", "), Help: a.Help, Choices: a.Choices,
				Long: a.Long || strings.Contains(strings.Join(values, ""), "\n"), Required: a.Required(),
				Fixed: a.Ask && a.Required() && version != "" && version != "0",
			}
			if a.Key != "" {
				f.Placeholder = a.Default
			}
			if a.Names == "run task" {
				f.Choices = v.runTasks(ctx)
			}
			f.Tick = a.Type.Kind() == reflect.Bool
			fields = append(fields, f)
		}
	}
	return fields
}

// labelOf returns how people see the name of an argument.
func labelOf(a verbs.Arg) string {
	if a.Key != "" {
		return a.Key
	}
	return strings.ReplaceAll(strings.ToUpper(a.Name[:1])+a.Name[1:], "-", " ")
}

// hideCall hands on the arguments of a call. Names that stand for several objects become the ids of these: what is
// done is done to what was shown.
func (c *change) hideCall(call *verbs.Call) {
	values := false
	for _, a := range call.Verb.Args {
		switch {
		case a.CommandOnly:
		case a.Names != "" && !a.Ask && c.Objects[0].ID != "":
			objects := c.Objects
			if a.Type.Kind() != reflect.Slice {
				objects = objects[:1] // one run of a graph stands for it
			}
			for _, o := range objects {
				c.hide(a.Name, o.ID)
			}
		default:
			c.hide(a.Name, call.Values(a)...)
			values = values || a.Names == "" || a.Ask
		}
	}
	if values {
		c.hide("step", "show") // there is something to edit
	}
}

// preview fills in what a change of servers would move.
func (c *change) preview(ctx context.Context, v *viewer) error {
	if len(c.Scenarios) == 0 && !c.List {
		return nil
	}
	for _, o := range c.Objects {
		c.Says = append(c.Says, o.Would()+".")
	}
	if c.List {
		return nil
	}
	for _, taskType := range c.TaskTypes {
		preview, err := v.client.Queues().Plan(ctx, taskType, c.Scenarios[taskType])
		if err != nil {
			return err
		}
		c.Plans = append(c.Plans, plannedOf(taskType, preview))
		if waiting := waitingQueues(preview); waiting > 0 {
			c.Warnings = append(c.Warnings,
				fmt.Sprintf("Not a good moment: %s of %s without a live owner. Once they have owners, fewer move twice.",
					human.Count(waiting, "queue is", "queues are"), taskType))
		}
	}
	return nil
}

// backTo returns the page that shows what a verb has changed.
func backTo(planned *verbs.Change, verb *verbs.Verb) string {
	object, _, _ := strings.Cut(verb.Name, " ")
	switch {
	case object == "worker":
		return "workers"
	case object == "item":
		return address("items", "task", planned.TaskTypes[0])
	case object == "trigger":
		return "triggers"
	case object == "run" && len(planned.Objects) > 0 && planned.Objects[0].ID != "" &&
		!strings.HasPrefix(verb.Name, "run backfill"):
		return address("run", "run", planned.Objects[0].ID)
	case object == "run":
		return address("runs", "task", planned.TaskTypes[0])
	}
	return address("task", "task", planned.TaskTypes[0])
}

// runTasks returns the task types that can have triggers.
func (v *viewer) runTasks(ctx context.Context) (names []string) {
	for _, t := range v.tasks(ctx) { // without them the page has a field instead of a list
		if t.Mode == center.ModeRun && v.Actor.may(Look, t.TaskType) {
			names = append(names, t.TaskType)
		}
	}
	return names
}
