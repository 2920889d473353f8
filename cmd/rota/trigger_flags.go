package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// triggerFlags are the flags that describe a trigger.
type triggerFlags struct {
	trigger          center.Trigger
	cron, every, at  string
	start, end       string
	misfire, overlap choice
}

func newTriggerFlags() triggerFlags {
	return triggerFlags{
		misfire: choice{value: center.MisfireOne, values: []string{center.MisfireOne, center.MisfireSkip, center.MisfireAll}},
		overlap: choice{value: center.OverlapSkip, values: []string{center.OverlapSkip, center.OverlapWait}},
	}
}

func (f *triggerFlags) add(cmd *cobra.Command) {
	flags, t := cmd.Flags(), &f.trigger
	flags.StringVar(&t.Target, "task", "", "task type whose runs the trigger makes")
	flags.StringVar(&f.cron, "cron", "", `when it is due: "0 0 2 * * ?" is at 2:00 every day`)
	flags.StringVar(&t.TimeZone, "time-zone", "UTC", "time zone of --cron, such as Europe/Berlin")
	flags.StringVar(&f.every, "every", "", "how often it is due: 90s, 10m, 24h")
	flags.StringVar(&f.at, "at", "", "when it is due, once")
	flags.StringVar(&f.start, "start", "", "it is not due before this time")
	flags.StringVar(&f.end, "end", "", "it is not due after this time")
	flags.Int64Var(&t.MaxFires, "max-fires", 0, "after this many runs it is DONE; 0: no limit")
	addChoice(cmd, &f.misfire, "misfire", "", "which missed slots fire")
	flags.DurationVar(&t.MisfireAfter, "misfire-after", time.Minute, "age limit of --misfire SKIP")
	flags.IntVar(&t.CatchupMax, "catchup-max", 100, "limit of --misfire ALL, from 1 to 1000")
	addChoice(cmd, &f.overlap, "overlap", "", "what a slot does while a run is open")
	flags.DurationVar(&t.Jitter, "jitter", 0, "fires later than the slot by a constant time below this")
	flags.StringVar(&t.ExcludedDays, "exclude", "", "days without slots of --cron: 2026-04-03,12-25")
	flags.IntVar(&t.Priority, "priority", 0, "priority of the runs: the highest starts first")
	flags.StringVar(&t.Params, "params", "", "parameters of the runs: any text, such as JSON")
	completeFlag(cmd, "task", listRunTasks)
}

// read completes the trigger from the flags and validates it.
func (f *triggerFlags) read(cmd *cobra.Command) (err error) {
	t := &f.trigger
	if t.Target == "" {
		return fmt.Errorf("%s: --task is missing (see %s --help)", subcommand(cmd), cmd.CommandPath())
	}
	if err := f.readSchedule(cmd); err != nil {
		return err
	}
	var startErr, endErr error
	t.StartAt, startErr = readTime("start", f.start)
	t.EndAt, endErr = readTime("end", f.end)
	if err := errors.Join(startErr, endErr); err != nil {
		return err
	}
	if t.MisfireAfter < time.Millisecond { // center takes zero for the default
		return fmt.Errorf("--misfire-after (%s) must be at least 1ms", t.MisfireAfter)
	}
	if err := atLeastOne("catchup-max", t.CatchupMax); err != nil {
		return err
	}
	t.Misfire, t.Overlap = f.misfire.value, f.overlap.value
	return t.Validate()
}

// readSchedule reads exactly one of --cron, --every and --at.
func (f *triggerFlags) readSchedule(cmd *cobra.Command) error {
	given := 0
	for _, s := range []struct{ flag, kind, value string }{
		{"cron", center.TriggerCron, f.cron}, {"every", center.TriggerEvery, f.every}, {"at", center.TriggerOnce, f.at},
	} {
		if cmd.Flags().Changed(s.flag) {
			given++
			f.trigger.Kind, f.trigger.Expression = s.kind, s.value
		}
	}
	if given != 1 {
		return fmt.Errorf("%s: give one of --cron, --every and --at (see %s --help)", subcommand(cmd), cmd.CommandPath())
	}
	if every, err := time.ParseDuration(f.every); err == nil {
		f.trigger.Expression = every.String() // the form that rota.yaml's every has
	}
	if f.trigger.Kind != center.TriggerCron && cmd.Flags().Changed("time-zone") {
		return fmt.Errorf("--time-zone (%s) is only for --cron", f.trigger.TimeZone)
	}
	return nil
}

func readTime(flag, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339, value); err != nil {
		return t, fmt.Errorf("--%s (%s) must be a time with its offset, such as 2026-12-01T02:00:00+01:00", flag, value)
	}
	return t, nil
}
