package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// verbCommand is one run of the command of a verb.
type verbCommand struct {
	call   *ops.Call
	out    output
	dryRun bool

	// before completes the call with what is not in the command line; nil if it is all there.
	before func() error
	// after looks at what was done; nil if nothing is left to do.
	after func(ctx context.Context, c *ops.Client, done []ops.Done) error
}

// addVerbs adds the commands of verbs, which differ in the last word: "server pause" is the command pause of server.
func addVerbs(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.AddCommand((&verbCommand{call: ops.Find(name).Call()}).command())
	}
}

// newTriggerFireCommand makes the command whose exit code is 1 if the run that the trigger has made is SKIPPED.
func newTriggerFireCommand() *cobra.Command {
	v := &verbCommand{call: ops.Find("trigger fire").Call()}
	v.after = func(ctx context.Context, c *ops.Client, done []ops.Done) error {
		r, err := c.Runs().Get(ctx, done[0].ID)
		if err == nil && r.State == runs.Skipped {
			err = endError(r.Run)
		}
		return err
	}
	return v.command()
}

func (v *verbCommand) command() *cobra.Command {
	verb := v.call.Verb
	cmd := &cobra.Command{Use: verb.Word(), Short: verb.Short, Long: verb.Long, Example: verb.Example}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &v.out)
	cmd.Flags().BoolVar(&v.dryRun, "dry-run", false, "show what would happen and change nothing")
	if verb.Asks {
		addYes(cmd)
	}
	var places []string
	var listers []lister
	for _, a := range verb.Args {
		switch {
		case a.FormOnly, slices.Contains(places, a.Place):
			continue
		case a.Place != "":
			places, listers = append(places, a.Place), append(listers, listed(a))
			continue
		}
		cmd.Flags().Var(argFlag{v.call, a}, a.Name, helpOf(a))
		completeFlag(cmd, a.Name, listed(a))
		if a.Type.Kind() == reflect.Bool {
			cmd.Flags().Lookup(a.Name).NoOptDefVal = "true"
		}
	}
	cmd.Use += " " + strings.Join(places, " ")
	cmd.Args = arguments(places...)
	cmd.ValidArgsFunction = complete(listers...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := v.setPlaces(args)
		if err == nil && v.before != nil {
			err = v.before()
		}
		if err != nil {
			return usageError{err}
		}
		return withRoster(cmd, func(ctx context.Context, c *ops.Client) error { return v.run(ctx, cmd, c) })
	}
	return cmd
}

func (v *verbCommand) setPlaces(args []string) error {
	for _, a := range v.call.Verb.Args {
		if a.Place == "" {
			continue
		}
		if a.Key != "" {
			return v.assign(args)
		}
		n := 1
		if a.Rest() {
			n = len(args)
		}
		if err := v.call.Set(a, args[:n]...); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// assign sets values by words such as fetch_number=100.
func (v *verbCommand) assign(words []string) error {
	assigned := map[string]bool{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		i := slices.IndexFunc(v.call.Verb.Args, func(a ops.Arg) bool { return a.Key == key })
		switch {
		case !found:
			return fmt.Errorf("%s: must be setting=value", word)
		case i < 0:
			return new(center.Settings).Set(key, value) // its error names all settings
		case assigned[key]:
			return fmt.Errorf("%s is assigned twice", key)
		}
		assigned[key] = true
		if err := v.call.Set(v.call.Verb.Args[i], value); err != nil {
			return err
		}
	}
	return nil
}

func (v *verbCommand) run(ctx context.Context, cmd *cobra.Command, c *ops.Client) error {
	change, err := v.call.Prepare(ctx, c)
	if err != nil && change != nil && !c.IsTransient(err) {
		return usageError{err} // the objects exist, and a value is wrong
	}
	if err != nil {
		return err
	}
	if v.dryRun {
		return v.show(cmd, change)
	}
	if v.out.isTable() {
		for _, o := range change.Objects { // also for the person who is asked
			if len(o.Differences) > 0 {
				sc := screenOf(cmd.OutOrStdout())
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(differencesText(sc, o), "\n")) //nolint:errcheck // the report tells
			}
		}
	}
	if change.Loses != "" {
		if err := confirm(cmd, change.Loses); err != nil {
			return err
		}
	}
	change.Step = func(d ops.Done) bool {
		sayError(cmd, d.String())
		return false
	}
	done, err := change.Do(ctx, actor())
	if err := v.report(cmd, change, done); err != nil {
		return err
	}
	if err == nil && v.after != nil {
		err = v.after(ctx, c, done)
	}
	return err
}

// show writes what would be done.
func (v *verbCommand) show(cmd *cobra.Command, change *ops.Change) error {
	return v.write(cmd, change.Records(), func(s screen) string {
		var lines []string
		written := ""
		for _, o := range change.Objects {
			if len(o.Differences) > 0 {
				lines, written = append(lines, differencesText(s, o)...), "Nothing was written."
				if o.Effect != "" {
					lines = append(lines, s.wrap(o.Effect))
				}
				continue
			}
			if len(o.Planned) > 0 {
				lines = append(lines, render(s, o.Planned, plannedColumns))
			}
			lines = append(lines, s.wrap(o.Would()))
		}
		if len(change.Scenarios) == 0 { // the effects of a change of servers say the same of each of them
			lines = append(lines, s.wrap(strings.Join(change.Says, " ")))
		}
		for _, warning := range change.Warnings {
			lines = append(lines, s.wrap(warning))
		}
		lines = append(lines, slotLines(change)...)
		return strings.Join(slices.DeleteFunc(append(lines, written), func(line string) bool { return line == "" }), "\n")
	})
}

var differenceColumns = []column[runs.Difference]{
	{title: "SETTING", text: func(d runs.Difference) string { return d.Name }},
	{title: "NOW", text: func(d runs.Difference) string { return orDash(oneLine(d.Row)) }, truncate: true},
	{title: "THEN", text: func(d runs.Difference) string { return orDash(oneLine(d.Given)) }, truncate: true},
}

// differencesText shows how an object changes, and what that causes.
func differencesText(s screen, o ops.Object) []string {
	lines := []string{escape.Text(o.Name) + ":", render(s, o.Differences, differenceColumns)}
	for _, says := range o.Says {
		lines = append(lines, s.wrap(says))
	}
	return lines
}

// report writes what was done.
func (v *verbCommand) report(cmd *cobra.Command, change *ops.Change, done []ops.Done) error {
	if len(done) == 0 {
		return nil
	}
	var list []records.Object
	for _, d := range done {
		list = append(list, d.Record)
		if d.Note != "" {
			sayError(cmd, "rota: "+d.Note)
		}
	}
	return v.write(cmd, list, func(s screen) string {
		var lines []string
		for _, d := range done {
			line := d.Object + ": " + d.Text
			if d.ID != "" {
				line = d.ID // for the next command
			}
			lines = append(lines, s.wrap(line))
		}
		return strings.Join(append(lines, slotLines(change)...), "\n")
	})
}

// slotLines shows the next slots of a trigger in its time zone.
func slotLines(change *ops.Change) (lines []string) {
	slots := change.Objects[0].Slots
	switch {
	case slots == nil:
		return nil
	case len(slots.Next) == 0:
		return []string{"It is not due any more."}
	}
	lines = append(lines, "It is due, in "+slots.Zone.String()+":")
	for _, at := range slots.Next {
		lines = append(lines, fmt.Sprintf(" %s  %s", at.In(slots.Zone).Format("Mon "+time.RFC3339),
			relativeTime(slots.Now, at)))
	}
	return lines
}

// write writes one record as an object, and a list if the verb takes a name that stands for several objects.
func (v *verbCommand) write(cmd *cobra.Command, list []records.Object, text func(screen) string) error {
	r := result{records: list, text: text}
	if v.call.Verb.Args[0].Type.Kind() != reflect.Slice {
		r.records = list[0]
	}
	return v.out.write(cmd.OutOrStdout(), r)
}

// argFlag is a flag that sets an argument of a call.
type argFlag struct {
	call *ops.Call
	arg  ops.Arg
}

// Set implements pflag.Value.
func (f argFlag) Set(text string) error { return f.call.Add(f.arg, text) }

// String implements pflag.Value.
func (f argFlag) String() string {
	if f.call == nil {
		return ""
	}
	return strings.Join(f.call.Values(f.arg), ",")
}

// Type implements pflag.Value.
func (f argFlag) Type() string {
	switch f.arg.Type.Kind() {
	case reflect.Int64:
		return "duration"
	case reflect.Slice:
		return "strings"
	}
	return f.arg.Type.Kind().String()
}

// helpOf returns the help of a flag, with the values that it can have.
func helpOf(a ops.Arg) string {
	if len(a.Choices) == 0 {
		return a.Help
	}
	return a.Help + ": " + alternatives(a.Choices)
}

// listed returns the lister of the values that an argument can have; it lists none if they are not known.
func listed(a ops.Arg) lister {
	if a.Key != "" {
		return listSettings
	}
	switch a.Names {
	case "task":
		return listTasks
	case "run task":
		return listRunTasks
	case "run":
		return listRuns(anyRun)
	case "queue":
		return listQueues
	case "item":
		return listItems
	case "server":
		return listServers
	case "trigger":
		return listTriggers
	case "open run":
		return listRuns(openRun)
	case "paused run":
		return listRuns(func(r runs.Run) bool { return openRun(r) && r.Paused })
	case "ended run":
		return listRuns(func(r runs.Run) bool { return r.Ended() && r.State != runs.Success })
	case "failed run":
		return listRuns(func(r runs.Run) bool {
			return r.Unresolved() || r.State == runs.Cancelled && r.AckedAt.IsZero()
		})
	case "open backfill":
		return listBackfills(openBackfill)
	case "paused backfill":
		return listBackfills(pausedBackfill)
	}
	return func(context.Context, *ops.Client, []string) ([]string, error) { return a.Choices, nil }
}

func openRun(r runs.Run) bool { return !r.Ended() }
