package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTriggerCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "trigger",
		Short: "Say when runs begin by themselves; see, fire, pause and delete triggers",
	})
	cmd.AddCommand(newTriggerApplyCommand(), newTriggerListCommand(), newTriggerPauseCommand(true), newTriggerPauseCommand(false),
		newTriggerFireCommand(), newTriggerDeleteCommand())
	return cmd
}

func newTriggerListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List the triggers, and when they are due",
		Long: `List the triggers, and when they are due.

ACTIVE: it fires. PAUSED: it does not. DONE: it is never due again. ERROR: its
row makes no sense, and WHY says why. MISSED are the slots that never fire,
because nobody was there, or the trigger paused.`,
		Example: `  rota trigger list
  rota trigger list reindex -o json | jq '.[].next_fire_at'`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(runTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				if err := mustExist(ctx, c, first(args)); err != nil {
					return reply{}, err
				}
				triggers, err := c.TriggerRecords(ctx, center.TriggerFilter{Target: first(args)})
				return reply{triggers, func(s screen) string { return render(s, triggers, triggerFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	return cmd
}

type trigger = center.TriggerRecord

var triggerFields = []field[trigger]{
	{title: "TRIGGER", text: func(t trigger) string { return t.Name }},
	{title: "TASK", text: func(t trigger) string { return t.Target }},
	{title: "STATUS", text: func(t trigger) string { return t.Status }, color: byMeaning[trigger]},
	{title: "WHEN", text: func(t trigger) string { return slotsOf(t.Trigger) }, spare: 4, free: true},
	{title: "NEXT", text: nextFire, right: true},
	{title: "PREVIOUS", text: func(t trigger) string { return ago(t.Now, t.PrevFireAt) }, right: true, spare: 1},
	{title: "FIRES", text: func(t trigger) string { return number(t.Fires) }, right: true, spare: 3},
	{title: "MISSED", text: func(t trigger) string { return number(t.Missed) }, right: true, spare: 2},
	{title: "OVERLAP", text: func(t trigger) string { return t.Overlap }, spare: 6},
	{title: "MISFIRE", text: func(t trigger) string { return t.Misfire }, spare: 6},
	{title: "WHY", text: func(t trigger) string { return line(t.Message) }, spare: 5, free: true},
}

// slotsOf says when a trigger is due.
func slotsOf(t center.Trigger) string {
	switch t.Kind {
	case center.TriggerCron:
		return t.Expression + " " + t.TimeZone
	case center.TriggerEvery:
		return "every " + t.Expression
	}
	return "at " + t.Expression
}

// nextFire is when a trigger will fire: one that is paused does not.
func nextFire(t trigger) string {
	if t.Status != center.TriggerActive || t.NextFireAt.IsZero() {
		return "-"
	}
	if !t.NextFireAt.After(t.Now) {
		return "now"
	}
	return ago(t.Now, t.NextFireAt)
}

// triggerNames completes triggers, with what they are.
func triggerNames(ctx context.Context, c *center.Center, _ []string) (list []string, err error) {
	triggers, err := c.TriggerRecords(ctx, center.TriggerFilter{})
	for _, t := range triggers {
		list = append(list, fmt.Sprintf("%s\t%s, %s", t.Name, t.Target, slotsOf(t.Trigger)))
	}
	return list, err
}

func newTriggerPauseCommand(pause bool) *cobra.Command {
	use, short, done := "pause NAME", "Stop a trigger: slots are missed", "paused; its slots are missed"
	long := "Stop a trigger. When it is resumed, its misfire says which of the slots that it\nhas missed fire. Runs go on."
	if !pause {
		use, short, done = "resume NAME", "Let a paused trigger go on", "goes on"
		long = "Let a paused trigger go on, or one in ERROR whose row makes sense by now. Its\nmisfire says which of the slots that it has missed fire."
	}
	cmd := &cobra.Command{
		Use:               use,
		Short:             short,
		Long:              long,
		Example:           "  rota trigger " + use[:len(use)-4] + "nightly",
		Args:              arguments("NAME"),
		ValidArgsFunction: complete(triggerNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := c.PauseTrigger(ctx, args[0], pause, actor()); err != nil {
					return err
				}
				cmd.Printf("%s$%s: %s\n", args[0], c.OwnSign(), done)
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	return cmd
}

func newTriggerFireCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fire NAME",
		Short: "Make a run of a trigger now, and print its id",
		Long: `Make a run of a trigger now, whatever its slots and its status, and print its
id. The slots stay as they are. The trigger's overlap holds: if runs are open
and this one is SKIPPED, the exit code is 1.`,
		Example: `  rota trigger fire nightly
  rota run wait $(rota trigger fire nightly)`,
		Args:              arguments("NAME"),
		ValidArgsFunction: complete(triggerNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				id, err := c.FireTrigger(ctx, args[0], actor())
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), id); err != nil {
					return err
				}
				r, err := c.Run(ctx, id)
				if err == nil && r.State == center.RunSkipped {
					err = endError(runRecord{Run: r})
				}
				return err
			})
		},
	}
	addRosterFlags(cmd)
	return cmd
}

func newTriggerDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a trigger; its runs stay",
		Long:              "Delete a trigger. Its runs stay, and one that is made again under its name fires\nnone of its slots twice.",
		Example:           "  rota trigger delete nightly\n  rota trigger delete nightly --yes",
		Args:              arguments("NAME"),
		ValidArgsFunction: complete(triggerNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				triggers, err := c.TriggerRecords(ctx, center.TriggerFilter{Name: args[0]})
				if err == nil && len(triggers) > 0 {
					err = confirm(cmd, fmt.Sprintf("delete the trigger %s$%s: %s is not run by it any more", args[0], c.OwnSign(), triggers[0].Target))
				}
				if err != nil {
					return err
				}
				if err := c.DeleteTrigger(ctx, args[0], actor()); err != nil {
					return err
				}
				cmd.Printf("%s$%s: deleted\n", args[0], c.OwnSign())
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	addYes(cmd)
	return cmd
}
