package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// triggerApply is one run of "rota trigger apply".
type triggerApply struct {
	cmd              *cobra.Command
	out              output
	trigger          center.Trigger
	cron, every, at  string
	start, end       string
	misfire, overlap choice
	dryRun           bool
	ownSign          string
}

func newTriggerApplyCommand() *cobra.Command {
	a := &triggerApply{
		misfire: choice{value: center.MisfireOne, of: []string{center.MisfireOne, center.MisfireSkip, center.MisfireAll}},
		overlap: choice{value: center.OverlapSkip, of: []string{center.OverlapSkip, center.OverlapWait}},
	}
	cmd := &cobra.Command{
		Use:   "apply NAME --task TASK (--cron EXPRESSION | --every DURATION | --at TIME)",
		Short: "Make a trigger, or make it what the flags say",
		Long: `Make a trigger, or make it what the flags say: what they leave open gets its
default. It shows each difference before it writes, and when the trigger is due
next. Any worker fires it; each slot makes a run at most once.

Expressions have seconds, as Quartz has them: second minute hour day month
weekday [year]. A wall time that comes twice in autumn fires once, one that does
not exist in spring at the first instant after the gap. DURATION is counted from
--start, or from when the trigger was made. TIME is in RFC 3339.

--misfire is about slots that nobody was there for: ONE fires the newest, SKIP
the newest if it is younger than --misfire-after, ALL each, up to --catchup-max.
--overlap is about slots while a run is open: SKIP leaves a SKIPPED run, WAIT
lets one wait.`,
		Example: `  rota trigger apply nightly --task reindex --cron "0 0 2 * * ?" \
      --time-zone Europe/Berlin --dry-run
  rota trigger apply poll --task import --every 10m --overlap WAIT
  rota trigger apply move --task migrate --at 2026-12-01T02:00:00+01:00`,
		Args:                  arguments("NAME"),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     complete(triggerNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cmd, a.trigger.Name = cmd, args[0]
			if err := a.read(); err != nil {
				return usageError{err}
			}
			return withRoster(cmd, a.run)
		},
	}
	a.addFlags(cmd)
	return cmd
}

func (a *triggerApply) addFlags(cmd *cobra.Command) {
	addRosterFlags(cmd)
	addOutputFlags(cmd, &a.out, false)
	flags, t := cmd.Flags(), &a.trigger
	flags.StringVar(&t.Target, "task", "", "task type whose runs it makes")
	flags.StringVar(&a.cron, "cron", "", `when it is due: "0 0 2 * * ?" is two o'clock`)
	flags.StringVar(&t.TimeZone, "time-zone", "UTC", "of --cron, such as Europe/Berlin")
	flags.StringVar(&a.every, "every", "", "how often it is due: 90s, 10m, 24h")
	flags.StringVar(&a.at, "at", "", "when it is due, once")
	flags.StringVar(&a.start, "start", "", "it is not due before this time")
	flags.StringVar(&a.end, "end", "", "it is not due after this time")
	flags.Int64Var(&t.MaxFires, "max-fires", 0, "after so many firings it is DONE; 0: no bound")
	addChoice(cmd, &a.misfire, "misfire", "", "which slots fire when they were missed")
	flags.DurationVar(&t.MisfireAfter, "misfire-after", time.Minute, "of --misfire SKIP")
	flags.IntVar(&t.CatchupMax, "catchup-max", 100, "of --misfire ALL, from 1 to 1000")
	addChoice(cmd, &a.overlap, "overlap", "", "what becomes of a slot while a run is open")
	flags.IntVar(&t.Priority, "priority", 0, "of the runs: the highest begins first")
	flags.StringVar(&t.Params, "params", "", "of the runs: any text, such as JSON")
	flags.BoolVar(&a.dryRun, "dry-run", false, "show the difference, and write nothing")
	completeFlag(cmd, "task", runTasks)
}

// read makes a trigger of the flags and refuses what no database could mend.
func (a *triggerApply) read() (err error) {
	t := &a.trigger
	if t.Target == "" {
		return fmt.Errorf("%s wants --task (see %[1]s --help)", a.cmd.CommandPath())
	}
	if err := a.readSlots(); err != nil {
		return err
	}
	if t.StartAt, err = readTime("start", a.start); err != nil {
		return err
	}
	if t.EndAt, err = readTime("end", a.end); err != nil {
		return err
	}
	if t.MisfireAfter < time.Millisecond { // zero would be the default
		return fmt.Errorf("--misfire-after (%s): must be at least 1ms", t.MisfireAfter)
	}
	if err := positive("catchup-max", t.CatchupMax); err != nil {
		return err
	}
	t.Misfire, t.Overlap = a.misfire.value, a.overlap.value
	return t.Validate()
}

// readSlots takes the one flag that says when it is due.
func (a *triggerApply) readSlots() error {
	given := 0
	for _, f := range []struct{ flag, kind, value string }{
		{"cron", center.TriggerCron, a.cron}, {"every", center.TriggerEvery, a.every}, {"at", center.TriggerOnce, a.at},
	} {
		if a.cmd.Flags().Changed(f.flag) {
			given++
			a.trigger.Kind, a.trigger.Expression = f.kind, f.value
		}
	}
	if given != 1 {
		return fmt.Errorf("%s wants one of --cron, --every and --at (see %[1]s --help)", a.cmd.CommandPath())
	}
	if every, err := time.ParseDuration(a.every); err == nil {
		a.trigger.Expression = every.String() // as "every" of rota.yaml
	}
	if a.trigger.Kind != center.TriggerCron && a.cmd.Flags().Changed("time-zone") {
		return fmt.Errorf("--time-zone (%s): is only for --cron", a.trigger.TimeZone)
	}
	return nil
}

func readTime(flag, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339, value); err != nil {
		return t, fmt.Errorf("--%s (%s): must be a time with its offset, such as 2026-12-01T02:00:00+01:00", flag, value)
	}
	return t, nil
}

// shownSlots is how many of the next slots are told.
const shownSlots = 5

// run tells what will be done, does it, and tells what has become of the trigger.
func (a *triggerApply) run(ctx context.Context, c *center.Center) error {
	a.ownSign = c.OwnSign()
	was, err := c.CompareTrigger(ctx, a.trigger, shownSlots)
	if err != nil {
		return err
	}
	r := triggerReply{Trigger: a.record(was.Trigger), Changes: a.changes(was), Next: was.Next}
	if a.out.format.value == formatTable {
		if _, err := fmt.Fprintln(a.cmd.OutOrStdout(), a.text(was, r)); err != nil {
			return err
		}
	}
	if !a.dryRun && !was.Same() {
		now, err := c.ApplyTrigger(ctx, a.trigger, actor())
		if err != nil {
			return err
		}
		r.Trigger = a.record(now)
	}
	if a.out.format.value == formatTable {
		return nil
	}
	return a.out.write(a.cmd.OutOrStdout(), reply{records: r})
}

// triggerReply is the answer in JSON and CSV.
type triggerReply struct {
	Trigger pairs           `json:"trigger"`
	Changes []triggerChange `json:"changes"`
	Next    []time.Time     `json:"next"`
}

func (r triggerReply) rows() any { return r.Changes }

// triggerChange is a difference.
type triggerChange struct {
	Name    string `json:"name"`
	OwnSign string `json:"own_sign"`
	Setting string `json:"setting"`
	Row     string `json:"row"`
	Given   string `json:"given"`
	Applied bool   `json:"applied"`
}

func (a *triggerApply) record(t center.Trigger) pairs {
	return recordsOf(trigger{Trigger: t, OwnSign: a.ownSign, MisfireAfterMS: t.MisfireAfter.Milliseconds()})
}

func (a *triggerApply) changes(was center.AppliedTrigger) []triggerChange {
	diffs := was.Changes
	if !was.Exists {
		diffs = []center.Difference{{Name: "name", Given: a.trigger.Name}}
	}
	list := []triggerChange{} // never null
	for _, d := range diffs {
		list = append(list, triggerChange{a.trigger.Name, a.ownSign, d.Name, d.Row, d.Given, !a.dryRun})
	}
	return list
}

var triggerChangeFields = []field[triggerChange]{
	{title: "SETTING", text: func(c triggerChange) string { return c.Setting }},
	{title: "DATABASE", text: func(c triggerChange) string { return orDash(line(c.Row)) }, free: true},
	{title: "COMMAND LINE", text: func(c triggerChange) string { return orDash(line(c.Given)) }, free: true},
}

// text tells people what is different, and when the trigger is due then.
func (a *triggerApply) text(was center.AppliedTrigger, r triggerReply) string {
	name := a.trigger.Name + "$" + a.ownSign
	var lines []string
	switch {
	case was.Same():
		lines = append(lines, name+": nothing to do")
	case !was.Exists:
		lines = append(lines, fmt.Sprintf("%s: %s, for %s", name, will("created", a.dryRun), a.trigger.Target))
	default:
		lines = append(lines, name+":", render(screenOf(a.cmd.OutOrStdout()), r.Changes, triggerChangeFields))
	}
	lines = append(lines, slotsText(was)...)
	if a.dryRun && !was.Same() {
		lines = append(lines, "Nothing was written.")
	}
	return strings.Join(lines, "\n")
}

// slotsText tells when the trigger is due, in its own time zone.
func slotsText(was center.AppliedTrigger) (lines []string) {
	t := was.Trigger
	if len(was.Next) == 0 {
		return []string{"It is not due any more."}
	}
	if t.Status == center.TriggerPaused {
		lines = append(lines, "It is PAUSED, and fires when it is resumed (see rota trigger resume).")
	}
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		zone = time.UTC // it was valid for the database's host
	}
	lines = append(lines, "It is due, in "+zone.String()+":")
	for _, at := range was.Next {
		lines = append(lines, fmt.Sprintf(" %s  %s", at.In(zone).Format("Mon "+time.RFC3339), ago(was.Now, at)))
	}
	return lines
}
