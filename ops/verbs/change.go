package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Change is what a call of a verb would do. Nothing has been done yet.
type Change struct {
	Title     string   // such as "Drain web1:4711"
	TaskTypes []string // the right is needed for each; at least one
	Says      []string // sentences about what happens then
	Warnings  []string // sentences about why to think twice
	Loses     string   // what no verb brings back, after "would": "delete trigger nightly$BASE"; empty if there is nothing
	Version   string   // of what was read, to notice later changes; "0" if nothing exists yet; empty if they do not matter
	Objects   []Object // what it is done to, at least one

	// Reads are task types whose runs it shows besides: the right to look is needed for each. An empty name is all.
	Reads []string

	// Exact is the operation that does what is shown, also if it is prepared again later, or a second time: with ids in
	// the place of names that may soon stand for something else, and with the values of what was left out. Nil is the
	// operation that was prepared.
	Exact Operation

	// List says that the objects are a list for programs, even if there is one.
	List bool

	// Everywhere says that the change holds in all environments of the database: the right is needed in each of them.
	Everywhere bool

	// Scenarios are the changes of servers, by task type, whose moves [ops.Queues.Plan] shows before.
	Scenarios map[string]ops.Scenario

	// Step is called between two steps of a change of many things, with what was done so far, by the goroutine that
	// called Do. If it returns true, the change stops, and [Done.Rest] is what is left. Defaults to going on.
	Step func(Done) bool

	// all, if not nil, makes the changes of the objects together, and returns the ids of those that it has changed.
	all func(ctx context.Context, actor string) ([]string, error)

	args any
}

// step calls Step.
func (c *Change) step(d Done) bool { return c.Step != nil && c.Step(d) }

// Object is one of the things that are changed.
type Object struct {
	ID     string // names it in another call: a uuid, the id of a run; empty if the arguments do
	Name   string // as people see it: "settle$BASE", "web1:4711:8d2f01ab (settle)"
	Past   string // what is done to it: "paused", "given weight 3"
	Effect string // what happens to it then, such as "its 4 queues go to 2 other servers"; may be empty
	Record any    // its columns for programs; nil if they are the name and the arguments

	Differences []runs.Difference  // of its settings; the object is written if there are any
	Says        []string           // sentences about what the differences cause
	Slots       *Slots             // of a trigger, after the change
	Planned     []runs.PlannedSlot // of a backfill

	// do makes the change; nil if there is nothing to do. Its result need not have what the object says.
	do func(ctx context.Context, actor string) (Done, error)
}

// Would says what would be done to an object.
func (o Object) Would() string { return o.Name + ": " + o.would() }

func (o Object) would() string {
	if o.do == nil {
		return o.text("nothing to do")
	}
	return "would be " + o.text(o.Past)
}

func (o Object) text(past string) string {
	if o.Effect == "" {
		return past
	}
	return past + "; " + o.Effect
}

// Nothing reports whether there is nothing to do.
func (c *Change) Nothing() bool {
	return !slices.ContainsFunc(c.Objects, func(o Object) bool { return o.do != nil })
}

// Done is what was done to an object.
type Done struct {
	Object string // its name
	Text   string // what was done: "paused; every server finishes what it has in flight"
	ID     string // of what was made, such as a run; empty if nothing was
	Note   string // what people should know besides; may be empty
	Record records.Object

	// Rest is what is left to do after [Change.Step] has stopped the change, or after an error; nil if nothing is.
	Rest Operation

	// Step and Steps say in [Change.Step] how much of the change is done, and about how much there is; 0 is not known.
	Step, Steps int64

	some bool // a part of it was done before an error
}

// String is a line that says what was done.
func (d Done) String() string {
	line := d.Object + ": " + d.Text
	if d.Note != "" {
		line += "; " + d.Note
	}
	return line
}

// Do makes the change for each object, even if it fails for another one, such as a server that has left meanwhile. It
// returns what was done, also in part, and the errors joined. The events name the actor.
func (c *Change) Do(ctx context.Context, actor string) (done []Done, err error) {
	if c.all != nil && !c.Nothing() {
		return c.doAll(ctx, actor)
	}
	var errs []error
	for _, o := range c.Objects {
		d, err := o.change(ctx, actor)
		if err == nil || d.some {
			done = append(done, c.complete(o, d))
		}
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}

// doAll makes the changes of all objects together. An object can have changed since the change was prepared, and there
// can be more of them.
func (c *Change) doAll(ctx context.Context, actor string) (done []Done, err error) {
	changed, err := c.all(ctx, actor)
	if len(changed) == 0 {
		return nil, err
	}
	for _, o := range c.Objects {
		at := slices.Index(changed, o.ID)
		d := Done{}
		if at < 0 {
			o.do = nil
			d.Text = o.would()
		} else {
			changed = slices.Delete(changed, at, at+1)
			d.Text = o.text(o.Past)
		}
		done = append(done, c.complete(o, d))
	}
	for _, id := range changed {
		done = append(done, c.complete(Object{Name: id, Past: c.Objects[0].Past}, Done{}))
	}
	return done, err
}

func (o Object) change(ctx context.Context, actor string) (Done, error) {
	if o.do == nil {
		return Done{Text: o.would()}, nil
	}
	return o.do(ctx, actor)
}

// complete fills in what an object says by itself.
func (c *Change) complete(o Object, d Done) Done {
	if d.Object == "" {
		d.Object = o.Name
	}
	if d.Text == "" {
		d.Text = o.text(o.Past)
	}
	d.Record = append(c.record(o, d), d.Record...)
	return d
}

// record returns the columns of an object, with what was done to it.
func (c *Change) record(o Object, d Done) records.Object {
	record := records.Object{records.M("object", d.Object)}
	if o.Record != nil {
		record = records.Of(o.Record)
	}
	record = append(record, records.M("result", d.Text))
	if o.Slots != nil {
		next := make([]string, len(o.Slots.Next))
		for i, at := range o.Slots.Next {
			next[i] = at.UTC().Format(time.RFC3339Nano)
		}
		record = append(record, records.M("next", next))
	}
	if o.Planned != nil && d.ID == "" { // it is not started yet
		record = append(record, records.M("slots", o.Planned))
	}
	if o.Differences != nil {
		record = append(record, records.M("changes", o.Differences))
	}
	if o.Record == nil && c.args != nil {
		record = append(record, records.Of(c.args)...)
	}
	return record
}

// Text returns the differences of each object, as Diff does, with what they cause, and then what was done to each
// object. If done is nil, it says what would be done, and what nobody could undo. It has no line end at its end.
func (c *Change) Text(done []Done) string {
	var lines []string
	for _, o := range c.Objects {
		if len(o.Differences) > 0 {
			lines = append(append(lines, escape.Text(o.Name)+":", o.Diff()), o.Says...)
		}
	}
	for _, d := range done {
		lines = append(lines, escape.Text(d.String()))
	}
	if done != nil {
		return strings.Join(lines, "\n")
	}
	for _, o := range c.Objects {
		lines = append(lines, escape.Text(o.Would()))
	}
	if c.Loses != "" {
		lines = append(lines, escape.Text("This would "+c.Loses+"."))
	}
	return strings.Join(lines, "\n")
}

// Diff returns a table of the differences, with a line for each setting: its value now, and then.
func (o Object) Diff() string {
	cell := func(text string) string { return cmp.Or(escape.Text(strings.Join(strings.Fields(text), " ")), "-") }
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, " SETTING\tNOW\tTHEN") //nolint:errcheck // a strings.Builder takes everything
	for _, d := range o.Differences {
		fmt.Fprintf(w, "\n %s\t%s\t%s", d.Name, cell(d.Row), cell(d.Given)) //nolint:errcheck // likewise
	}
	w.Flush() //nolint:errcheck // likewise
	return b.String()
}

// Records returns what would be done, for programs.
func (c *Change) Records() (list []records.Object) {
	for _, o := range c.Objects {
		list = append(list, c.record(o, Done{Object: o.Name, Text: o.would()}))
	}
	return list
}

// done is the do of an object whose change returns only an error.
func done(do func(ctx context.Context, actor string) error) func(context.Context, string) (Done, error) {
	return func(ctx context.Context, actor string) (Done, error) { return Done{}, do(ctx, actor) }
}

// inEnvironment returns how people see an object of an environment.
func inEnvironment(c *ops.Client, name string) string {
	return fmt.Sprintf("%s$%s", name, c.OwnSign())
}
