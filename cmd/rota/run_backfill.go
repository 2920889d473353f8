package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/records"
)

// runBackfill is the command's flags.
type runBackfill struct {
	from, to string
	want     center.BackfillRange
	priority int
	dryRun   bool
	out      output
}

func newRunBackfillCommand() *cobra.Command {
	var b runBackfill
	cmd := &cobra.Command{
		Use:   "backfill TASK --from TIME [--to TIME]",
		Short: "Make a run for each slot of a trigger in a range; list and control backfills",
		Long: `Make a run for each slot of the trigger of a task type from --from on and before
--to, and print the id of the backfill. The command returns at once. The workers
of the task type make the runs, the oldest slot first; when one of them dies, the
others go on. TIME is in RFC 3339, or a day in the time zone of the trigger.

A slot has one run, whether the trigger or a backfill makes it. A slot that has a
run keeps it, unless the run is SKIPPED. With --rerun-failed the backfill also
reruns the runs that failed or were cancelled. A failed run does not stop the
others, but the backfill ends FAILED.

The runs have the params of the trigger. Each run makes the runs of the task
types after it, unless --no-dependants is given. A slot is in progress until its
run and these runs have ended; --parallel is how many slots are in progress at a
time. One run of a task type works at a time. The trigger keeps firing
meanwhile: its runs have a higher priority, and a backfill makes it skip no
slot. A later change of the trigger does not change the backfill.`,
		Example: `  rota run backfill reindex --from 2026-11-01 --to 2026-11-13 --dry-run
  rota run backfill reindex --from 2026-11-01T12:00:00Z --rerun-failed
  rota run backfill show reindex --watch`,
		Args:                  arguments("TASK"),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     complete(listRunTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if err := b.check(cmd); err != nil {
				return usageError{err}
			}
			b.want.TaskType = args[0]
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error { return b.run(ctx, cmd, c) })
		},
	}
	cmd.Args = arguments("[TASK]") // without a task type it shows its help, like other commands with subcommands
	b.addFlags(cmd)
	cmd.AddCommand(newBackfillListCommand(), newBackfillShowCommand())
	addVerbs(cmd, "run backfill pause", "run backfill resume", "run backfill cancel")
	return cmd
}

func (b *runBackfill) addFlags(cmd *cobra.Command) {
	addRosterFlags(cmd)
	addOutputFlags(cmd, &b.out)
	flags, want := cmd.Flags(), &b.want
	flags.StringVar(&b.from, "from", "", "the first possible slot")
	flags.StringVar(&b.to, "to", "", "all slots are earlier; left out: now")
	flags.StringVar(&want.Trigger, "trigger", "", "trigger whose slots get runs, if the task type has several")
	flags.IntVar(&want.Parallel, "parallel", 1, "slots that are in progress at a time, from 1 to 100")
	flags.IntVar(&b.priority, "priority", 0, "priority of the runs; left out: one less than the trigger's")
	flags.BoolVar(&want.RerunFailed, "rerun-failed", false, "rerun the runs of slots that failed or were cancelled")
	flags.BoolVar(&want.NoDependants, "no-dependants", false, "make no runs of the task types that run after it")
	flags.BoolVar(&want.NewestFirst, "reverse", false, "the newest slot first")
	flags.BoolVar(&b.dryRun, "dry-run", false, "only list the slots, and what would be done with each")
	completeFlag(cmd, "trigger", listTriggers)
}

// check checks the flags, except what needs the database.
func (b *runBackfill) check(cmd *cobra.Command) error {
	if b.from == "" {
		return fmt.Errorf("%s: --from is missing (see %s --help)", subcommand(cmd), cmd.CommandPath())
	}
	if err := atLeastOne("parallel", b.want.Parallel); err != nil {
		return err
	}
	if cmd.Flags().Changed("priority") {
		b.want.Priority = &b.priority
	}
	return b.readRange(time.UTC)
}

// readRange reads --from and --to. A day begins at midnight in the time zone.
func (b *runBackfill) readRange(zone *time.Location) (err error) {
	if b.want.From, err = readSlot("from", b.from, zone); err != nil || b.to == "" {
		return err
	}
	b.want.To, err = readSlot("to", b.to, zone)
	return err
}

func readSlot(flag, value string, zone *time.Location) (time.Time, error) {
	if t, err := time.ParseInLocation(time.DateOnly, value, zone); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("--%s (%s) must be a day, such as 2026-12-01, or a time with its offset, such as 2026-12-01T02:00:00+01:00", flag, value)
	}
	return t, nil
}

func (b *runBackfill) run(ctx context.Context, cmd *cobra.Command, c *center.Center) error {
	zone, err := triggerZone(ctx, c, center.TriggerFilter{Name: b.want.Trigger, Target: b.want.TaskType})
	if err == nil {
		err = b.readRange(zone)
	}
	if err != nil {
		return err
	}
	if b.dryRun {
		_, list, err := c.Backfills().Preview(ctx, b.want)
		if err != nil {
			return err
		}
		return b.out.write(cmd.OutOrStdout(), result{records: list, text: func(s screen) string { return plannedText(s, list) }})
	}
	started, err := c.Backfills().Start(ctx, b.want, actor())
	if err != nil {
		return err
	}
	return b.out.reply(cmd, started.ID, records.Object{records.M("backfill_id", started.ID), records.M("slots_total", started.SlotsTotal)})
}

// triggerZone returns the time zone of the one trigger that the filter selects. Without one it returns UTC: the
// backfill is then refused.
func triggerZone(ctx context.Context, c *center.Center, f center.TriggerFilter) (*time.Location, error) {
	list, err := c.Triggers().List(ctx, f)
	if err != nil || len(list) != 1 {
		return time.UTC, err
	}
	zone, err := time.LoadLocation(list[0].TimeZone)
	if err != nil {
		return nil, fmt.Errorf("trigger %s: time zone %s is unknown on this host", list[0].Name, list[0].TimeZone)
	}
	return zone, nil
}

var plannedColumns = []column[center.PlannedSlot]{
	{title: "SLOT", text: func(s center.PlannedSlot) string { return timeText(s.ScheduledAt) }},
	{title: "ACTION", text: func(s center.PlannedSlot) string { return s.Action }},
	{title: "STATE", text: func(s center.PlannedSlot) string { return orDash(s.State) }, color: byMeaning[center.PlannedSlot]},
	{title: "RUN", text: func(s center.PlannedSlot) string { return orDash(s.RunID) }, dropRank: 1},
	{title: "REASON", text: func(s center.PlannedSlot) string { return oneLine(s.Message) }, dropRank: 2, truncate: true},
}

// plannedText returns the table of the slots, and how many of them get a run.
func plannedText(s screen, list []center.PlannedSlot) string {
	n := map[string]int{}
	for _, slot := range list {
		n[slot.Action]++
	}
	return render(s, list, plannedColumns) + fmt.Sprintf("\n\n %s: %d to make, %d to rerun, %d to keep; nothing was changed",
		plural.Of(len(list), "slot", "slots"), n[center.SlotMake], n[center.SlotRerun], n[center.SlotKeep])
}
