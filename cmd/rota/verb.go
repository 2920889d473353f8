package main

import (
	"context"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

// verbCommand is one run of the command of a verb.
type verbCommand struct {
	call   *ops.Call
	out    output
	dryRun bool

	// after looks at what was done; nil if nothing is left to do.
	after func(ctx context.Context, c *center.Center, done []ops.Done) error
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
	v.after = func(ctx context.Context, c *center.Center, done []ops.Done) error {
		r, err := c.Runs().Get(ctx, done[0].ID)
		if err == nil && r.State == center.RunSkipped {
			err = endError(r.Run)
		}
		return err
	}
	return v.command()
}

func (v *verbCommand) command() *cobra.Command {
	verb := v.call.Verb
	words := strings.Fields(verb.Name)
	cmd := &cobra.Command{Use: words[len(words)-1], Short: verb.Short, Long: verb.Long, Example: verb.Example}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &v.out)
	cmd.Flags().BoolVar(&v.dryRun, "dry-run", false, "show what would happen and change nothing")
	if verb.Asks {
		addYes(cmd)
	}
	var places []string
	var listers []lister
	for _, a := range verb.Args {
		if a.FormOnly {
			continue
		}
		if a.Place != "" {
			places, listers = append(places, a.Place), append(listers, listed(a.Names))
			continue
		}
		cmd.Flags().Var(argFlag{v.call, a}, a.Name, a.Help)
		if a.Names != "" {
			completeFlag(cmd, a.Name, listed(a.Names))
		}
		if a.Type.Kind() == reflect.Bool {
			cmd.Flags().Lookup(a.Name).NoOptDefVal = "true"
		}
	}
	cmd.Use += " " + strings.Join(places, " ")
	cmd.Args = arguments(places...)
	cmd.ValidArgsFunction = complete(listers...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := v.setPlaces(args); err != nil {
			return usageError{err}
		}
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error { return v.run(ctx, cmd, c) })
	}
	return cmd
}

func (v *verbCommand) setPlaces(args []string) error {
	for _, a := range v.call.Verb.Args {
		if a.Place == "" {
			continue
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

func (v *verbCommand) run(ctx context.Context, cmd *cobra.Command, c *center.Center) error {
	change, err := v.call.Prepare(ctx, c)
	if err != nil && change != nil {
		return usageError{err} // the objects exist, and a value is wrong
	}
	if err != nil {
		return err
	}
	if v.dryRun {
		return v.show(cmd, change)
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
	if err := v.report(cmd, done); err != nil {
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
		for _, o := range change.Objects {
			lines = append(lines, escape.Text(o.Would()))
		}
		if len(change.Scenarios) == 0 { // the effects of a change of servers say the same of each of them
			lines = append(lines, s.wrap(strings.Join(change.Says, " ")))
		}
		for _, warning := range change.Warnings {
			lines = append(lines, s.wrap(warning))
		}
		return strings.Join(lines, "\n")
	})
}

// report writes what was done.
func (v *verbCommand) report(cmd *cobra.Command, done []ops.Done) error {
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
		return strings.Join(lines, "\n")
	})
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

// listed returns the lister of what an argument names; nil if it names nothing that exists.
func listed(names string) lister {
	switch names {
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
		return listRuns(func(r center.Run) bool { return openRun(r) && r.Paused })
	case "ended run":
		return listRuns(func(r center.Run) bool { return r.Ended() && r.State != center.RunSuccess })
	case "failed run":
		return listRuns(func(r center.Run) bool {
			return r.Unresolved() || r.State == center.RunCancelled && r.AckedAt.IsZero()
		})
	case "open backfill":
		return listBackfills(openBackfill)
	case "paused backfill":
		return listBackfills(pausedBackfill)
	}
	return func(context.Context, *center.Center, []string) ([]string, error) { return nil, nil }
}

func openRun(r center.Run) bool { return !r.Ended() }
