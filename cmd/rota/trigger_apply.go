package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

// shownSlots is how many of the next slots the command shows.
const shownSlots = 5

// triggerApply is one run of "rota trigger apply".
type triggerApply struct {
	triggerFlags
	cmd    *cobra.Command
	out    output
	dryRun bool
}

func newTriggerApplyCommand() *cobra.Command {
	a := &triggerApply{triggerFlags: newTriggerFlags()}
	cmd := &cobra.Command{
		Use:   "apply NAME --task TASK (--cron EXPR|--every DURATION|--at TIME)",
		Short: "Create a trigger, or change it to what the flags say",
		Long: `Create a trigger, or change it to what the flags say. A flag that is left out
has its default. The command shows each difference and the next slots before it
writes. Any worker fires a trigger; each slot makes at most one run.

Cron expressions have seconds, as in Quartz: second minute hour day month
weekday [year]; or five fields as in a crontab, after "cron5:". A wall time that
occurs twice in autumn fires once. One that does not exist in spring fires at
the first instant after the gap. DURATION is counted from --start, or from the
creation of the trigger. TIME is in RFC 3339. --jitter delays all slots of the
trigger by one time, so that not all triggers fire at once.

--misfire applies to slots that no server fired in time: ONE fires the newest,
SKIP the newest if it is younger than --misfire-after, ALL fires each, at most
--catchup-max. --overlap applies to slots while a run is open: SKIP leaves a
SKIPPED run, WAIT lets one run wait. The run of --at always waits. A paused run
that has not started skips nothing.`,
		Example: `  rota trigger apply nightly --task reindex --cron "0 0 2 * * ?" \
      --time-zone Europe/Berlin --dry-run
  rota trigger apply poll --task import --every 10m --overlap WAIT
  rota trigger apply move --task migrate --at 2026-12-01T02:00:00+01:00`,
		Args:                  arguments("NAME"),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     complete(listTriggers),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cmd, a.trigger.Name = cmd, args[0]
			if err := a.read(cmd); err != nil {
				return usageError{err}
			}
			return withRoster(cmd, a.run)
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &a.out)
	a.add(cmd)
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "show the differences and write nothing")
	return cmd
}

// run shows the differences before it writes them. JSON and CSV come last, as
// they have the trigger that was written.
func (a *triggerApply) run(ctx context.Context, c *center.Center) error {
	was, err := c.Triggers().Compare(ctx, a.trigger, shownSlots)
	if err != nil {
		return err
	}
	changes := triggerChanges(was, a.trigger.Name, c.OwnSign(), !a.dryRun)
	if a.out.isTable() {
		text := triggerText(screenOf(a.cmd.OutOrStdout()), was, changes, a.trigger, c.OwnSign(), a.dryRun)
		if _, err := fmt.Fprintln(a.cmd.OutOrStdout(), text); err != nil {
			return err
		}
	}
	now := was.Trigger
	if !a.dryRun && !was.Same() {
		if now, err = c.Triggers().Apply(ctx, was, actor()); err != nil {
			return err
		}
	}
	if a.out.isTable() {
		return nil
	}
	return a.out.write(a.cmd.OutOrStdout(), result{records: triggerReply{triggerObject(now, c.OwnSign()), changes, was.Next}})
}

// triggerReply is the output in JSON and CSV.
type triggerReply struct {
	Trigger records.Object  `json:"trigger"`
	Changes []triggerChange `json:"changes"`
	Next    []time.Time     `json:"next"`
}

// csvRecords implements csvRecorder.
func (r triggerReply) csvRecords() any { return r.Changes }

func triggerObject(t center.Trigger, ownSign string) records.Object {
	return records.Of(center.TriggerRecord{Trigger: t, OwnSign: ownSign, MisfireAfterMS: t.MisfireAfter.Milliseconds()})
}
