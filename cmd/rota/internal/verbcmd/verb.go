// Package verbcmd makes a command of each verb of package verbs.
//
// All of them have one rule. --dry-run shows what the command would do, and changes nothing. If the change loses what
// no other command brings back ([verbs.Change.Loses]), the command shows the same on a terminal and asks; without a
// terminal it refuses. --yes answers the question, and changes nothing else: what a command does besides is a flag of
// its own, such as --force. A command that never asks has --yes too, so that a script can always give it.
package verbcmd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// Verb is one run of the command of a verb.
type Verb struct {
	Call   *verbs.Call
	out    cli.Output
	dryRun bool
	yes    bool

	// Before completes the call with what is not in the command line; nil if it is all there.
	Before func() error
	// After looks at what was done; nil if nothing is left to do.
	After func(ctx context.Context, c *ops.Client, done []verbs.Done) error
}

// New returns the verb of that name, such as "worker pause".
func New(name string) *Verb { return &Verb{Call: verbs.Find(name).Call()} }

// Group makes a command of other commands, with those of the verbs that begin with its name.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	AddVerbs(cmd, cmd.Name())
	return cli.Group(cmd)
}

// AddVerbs adds the verbs of a group that cmd does not have yet: "worker pause" of the group "worker" is the command
// pause.
func AddVerbs(cmd *cobra.Command, group string) {
	for _, v := range verbs.All() {
		word, found := strings.CutPrefix(v.Name, group+" ")
		known := slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if found && !known && !strings.Contains(word, " ") {
			cmd.AddCommand(New(v.Name).Command())
		}
	}
}

// Command returns the command, which has the last word of the verb's name.
func (v *Verb) Command() *cobra.Command {
	verb := v.Call.Verb
	cmd := &cobra.Command{Use: verb.Word(), Short: verb.Short, Long: help(verb), Example: verb.Example}
	cmd.Flags().BoolVar(&v.dryRun, "dry-run", false, "show what would happen and change nothing")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false,
		"do not ask before something is lost for good; needed for that where there is no terminal to ask on")
	var places []string
	var listers []cli.Lister
	for _, a := range verb.Args {
		switch {
		case a.FormOnly, slices.Contains(places, a.Place):
			continue
		case a.Place != "":
			places, listers = append(places, a.Place), append(listers, listed(a))
			continue
		}
		cmd.Flags().Var(argFlag{v.Call, a}, a.Name, helpOf(a))
		cli.CompleteFlag(cmd, a.Name, listed(a))
		if a.Type.Kind() == reflect.Bool {
			cmd.Flags().Lookup(a.Name).NoOptDefVal = "true"
		}
	}
	cmd.Use = strings.Join(append([]string{cmd.Use}, places...), " ")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := v.setPlaces(args)
		if err == nil && v.Before != nil {
			err = v.Before()
		}
		if err != nil {
			return cli.Usage(err)
		}
		return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error { return v.run(ctx, cmd, c) })
	}
	return cli.Command(cmd, &v.out, listers...)
}

// help returns the help of a verb: what it does and its effect, as the console says it, then the rest.
func help(v *verbs.Verb) string {
	if v.Effect == "" {
		return v.Help
	}
	return strings.TrimSpace(cli.Screen{Width: 80}.Wrap(v.Short+". "+v.Effect) + "\n\n" + v.Help)
}

func (v *Verb) setPlaces(args []string) error {
	for _, a := range v.Call.Verb.Args {
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
		if err := v.Call.Set(a, args[:n]...); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// assign sets values by words such as fetch_number=100.
func (v *Verb) assign(words []string) error {
	assigned := map[string]bool{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		i := slices.IndexFunc(v.Call.Verb.Args, func(a verbs.Arg) bool { return a.Key == key })
		switch {
		case !found:
			return fmt.Errorf("%s: must be setting=value", word)
		case i < 0:
			return new(center.Settings).Set(key, value) // its error names all settings
		case assigned[key]:
			return fmt.Errorf("%s is assigned twice", key)
		}
		assigned[key] = true
		if err := v.Call.Set(v.Call.Verb.Args[i], value); err != nil {
			return err
		}
	}
	return nil
}

func (v *Verb) run(ctx context.Context, cmd *cobra.Command, c *ops.Client) error {
	change, err := v.Call.Prepare(ctx, c)
	if err != nil && change != nil && !c.IsTransient(err) {
		return cli.Usage(err) // the objects exist, and a value is wrong
	}
	if err != nil {
		return err
	}
	if v.dryRun {
		return v.show(cmd, change)
	}
	asks := change.Loses != "" && !v.yes
	if v.out.IsTable() && (!asks || !cli.CanAsk(cmd)) { // the question shows them, too
		for _, o := range change.Objects {
			if len(o.Differences) > 0 {
				sc := cli.ScreenOf(cmd.OutOrStdout())
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(differencesText(sc, o), "\n")) //nolint:errcheck // the report tells
			}
		}
	}
	if asks {
		preview := func(s cli.Screen) string { return PreviewText(s, change) }
		if err := cli.Confirm(cmd, preview, change.Loses); err != nil {
			return err
		}
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	change.Step = func(d verbs.Done) bool {
		progress.Show(d.String(), d.Step, d.Steps)
		return false
	}
	done, err := change.Do(ctx, cli.Actor())
	progress.Clear()
	if told := v.report(cmd, change, done); err == nil { // what failed matters more than that nobody could be told
		err = told
	}
	if err == nil && v.After != nil {
		err = v.After(ctx, c, done)
	}
	return err
}

// show writes what would be done.
func (v *Verb) show(cmd *cobra.Command, change *verbs.Change) error {
	return v.write(cmd, change, change.Records(), func(s cli.Screen) string {
		text := PreviewText(s, change)
		if slices.ContainsFunc(change.Objects, func(o verbs.Object) bool { return len(o.Differences) > 0 }) {
			text += "\nNothing was written."
		}
		return text
	})
}

// PreviewText says what a change would do.
func PreviewText(s cli.Screen, change *verbs.Change) string {
	var lines []string
	for _, o := range change.Objects {
		if len(o.Differences) > 0 {
			lines = append(lines, differencesText(s, o)...)
			if o.Effect != "" {
				lines = append(lines, s.Wrap(o.Effect))
			}
			continue
		}
		if len(o.Planned) > 0 {
			lines = append(lines, cli.Render(s, o.Planned, plannedRow))
		}
		lines = append(lines, s.Wrap(o.Would()))
	}
	if len(change.Scenarios) == 0 { // the effects of a change of servers say the same of each of them
		lines = append(lines, s.Wrap(strings.Join(change.Says, " ")))
	}
	for _, warning := range change.Warnings {
		lines = append(lines, s.Wrap(warning))
	}
	if change.Loses != "" {
		lines = append(lines, s.Wrap("This would "+change.Loses+"."))
	}
	lines = append(lines, slotLines(change)...)
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// differencesText shows how an object changes, and what that causes.
func differencesText(s cli.Screen, o verbs.Object) []string {
	lines := []string{escape.Text(o.Name) + ":", o.Diff()}
	for _, says := range o.Says {
		lines = append(lines, s.Wrap(says))
	}
	return lines
}

// report writes what was done.
func (v *Verb) report(cmd *cobra.Command, change *verbs.Change, done []verbs.Done) error {
	if len(done) == 0 {
		return nil
	}
	var list []records.Object
	for _, d := range done {
		list = append(list, d.Record)
		if d.Note != "" {
			cli.SayError(cmd, "rota: "+d.Note)
		}
	}
	return v.write(cmd, change, list, func(s cli.Screen) string {
		var lines []string
		for _, d := range done {
			line := d.Object + ": " + d.Text
			if d.ID != "" {
				line = d.ID // for the next command
			}
			lines = append(lines, s.Wrap(line))
		}
		return strings.Join(append(lines, slotLines(change)...), "\n")
	})
}

// slotLines shows the next slots of a trigger in its time zone.
func slotLines(change *verbs.Change) (lines []string) {
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
			human.Relative(slots.Now, at)))
	}
	return lines
}

// write writes one record as an object, and a list if the verb takes a name that stands for several objects.
func (v *Verb) write(cmd *cobra.Command, change *verbs.Change, list []records.Object,
	text func(cli.Screen) string,
) error {
	r := cli.Result{Records: list, Text: text}
	if args := v.Call.Verb.Args; !change.List && (len(args) == 0 || args[0].Type.Kind() != reflect.Slice) {
		r.Records = list[0]
	}
	return v.out.Write(cmd.OutOrStdout(), r)
}

// argFlag is a flag that sets an argument of a call.
type argFlag struct {
	call *verbs.Call
	arg  verbs.Arg
}

// Set implements pflag.Value. It refuses an empty name, as [cli.Arguments] does: a variable of a script that has no
// value would mean all items of all queues.
func (f argFlag) Set(text string) error {
	if text == "" && f.arg.Names != "" {
		return errors.New("it is empty")
	}
	return f.call.Add(f.arg, text)
}

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
func helpOf(a verbs.Arg) string {
	if len(a.Choices) == 0 {
		return a.Help
	}
	return a.Help + ": " + human.Alternatives(a.Choices)
}

// listed returns the lister of the values that an argument can have; it lists none if they are not known.
func listed(a verbs.Arg) cli.Lister {
	switch {
	case a.Key != "":
		return cli.Names("setting")
	case a.Names != "" && a.Names != "choice": // of items, which has no names
		return cli.Names(a.Names)
	}
	return func(context.Context, *ops.Client, []string) ([]string, error) { return a.Choices, nil }
}

func plannedRow(s runs.PlannedSlot) cli.Row {
	return cli.Row{
		cli.Time("SLOT", s.ScheduledAt),
		cli.Text("ACTION", s.Action),
		cli.Maybe("STATE", s.State).Colored(s.State),
		cli.Maybe("RUN", s.RunID).Drop(1),
		cli.Long("REASON", s.Message).Drop(2),
	}
}
