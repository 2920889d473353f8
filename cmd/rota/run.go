package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newRunCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "run",
		Short: "Submit runs, see how far they are, wait for them; cancel, rerun, pause",
		Long: `Submit runs, see how far they are, wait for them; cancel, rerun, pause and resume
them. A run sweeps all queues of a task type of mode RUN once. RUN is the id of a
run, or the name of a task type: then its newest run is meant.`,
	})
	cmd.AddCommand(newRunSubmitCommand(), newRunListCommand(), newRunShowCommand(), newRunWaitCommand())
	for _, change := range runChanges {
		cmd.AddCommand(newRunChangeCommand(change))
	}
	return cmd
}

var runStates = []string{
	center.RunWaiting, center.RunReady, center.RunRunning, center.RunSuccess,
	center.RunFailed, center.RunDependentFailed, center.RunCancelled, center.RunSkipped,
}

func newRunListCommand() *cobra.Command {
	var o output
	state := choice{of: runStates}
	limit := 100
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List runs, the newest first",
		Long: `List runs, the newest first.

WAITING: for its upstreams. READY: begins when no other run of its task type is
RUNNING. RUNNING: its queues are being swept. SUCCESS: all are. FAILED: a queue
has failed too often, or the deadline has passed. DEPENDENT_FAILED: an upstream
did not succeed. CANCELLED: by an operator. SKIPPED: others were open when its
trigger was due.`,
		Example: `  rota run list reindex --watch
  rota run list --state FAILED
  rota run list --limit 1000 -o csv`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(runTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := positive("limit", limit); err != nil {
				return err
			}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				if err := mustExist(ctx, c, first(args)); err != nil {
					return reply{}, err
				}
				runs, err := c.RunRecords(ctx, center.RunFilter{TaskType: first(args), State: state.value}, limit)
				return reply{runs, func(s screen) string { return render(s, runs, runFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	addChoice(cmd, &state, "state", "", "only")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at the most")
	return cmd
}

type runRecord = center.RunRecord

var runFields = []field[runRecord]{
	{title: "RUN", text: func(r runRecord) string { return r.ID }},
	{title: "TASK", text: func(r runRecord) string { return r.TaskType }},
	{title: "STATE", text: runState, color: byMeaning[runRecord]},
	{title: "QUEUES", text: queuesOf, right: true},
	{title: "ITEMS", text: func(r runRecord) string { return number(r.ItemsDone) }, right: true, spare: 4},
	{title: "FAILED", text: func(r runRecord) string { return number(r.ItemsFailed) }, right: true, spare: 3, color: badUnlessZero[runRecord]},
	{title: "DUE", text: func(r runRecord) string { return ago(r.Now, r.ScheduledAt) }, right: true, spare: 2},
	{title: "TOOK", text: func(r runRecord) string { return took(r) }, right: true, spare: 1},
	{title: "TRIGGER", text: func(r runRecord) string { return orDash(r.Trigger) }, spare: 5},
	{title: "KEY", text: givenKey, spare: 6, free: true},
	{title: "WHY", text: func(r runRecord) string { return line(r.Message) }, spare: 7, free: true},
}

// givenKey is the key that somebody gave: that of a trigger's run says no more than its slot.
func givenKey(r runRecord) string {
	if r.Trigger != "" {
		return "-"
	}
	return line(r.Key)
}

// runState is the state that counts: one that is paused does not go on by itself.
func runState(r runRecord) string {
	if r.Paused && !r.Ended() {
		return "PAUSED"
	}
	return r.State
}

// queuesOf is how many queues are finished, of how many.
func queuesOf(r runRecord) string {
	if r.Queues() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.QueuesDone+r.QueuesFailed+r.QueuesCancelled, r.Queues())
}

// took is for how long a run went on, or goes on.
func took(r runRecord) string {
	end := r.FinishedAt
	if end.IsZero() {
		end = r.Now
	}
	if r.StartedAt.IsZero() {
		return "-"
	}
	return duration(end.Sub(r.StartedAt))
}

// ago is a time for people, beside that of the database.
func ago(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.After(now):
		return "in " + duration(t.Sub(now))
	}
	return duration(now.Sub(t)) + " ago"
}

func duration(d time.Duration) string {
	seconds := d.Seconds()
	return age(&seconds)
}

// resolveRun finds the run that somebody means: by its id, or the newest of a task type.
func resolveRun(ctx context.Context, c *center.Center, name string) (runRecord, error) {
	list, err := c.RunRecords(ctx, center.RunFilter{RunID: name}, 1)
	if err != nil {
		return runRecord{}, err
	}
	if len(list) > 0 {
		return list[0], nil
	}
	r, err := c.LatestRun(ctx, name)
	switch {
	case errors.Is(err, center.ErrUnknownTask):
		err = fmt.Errorf("there is no run and no task type %s in own_sign %s (see rota run list)", name, c.OwnSign())
	case errors.Is(err, center.ErrUnknownRun):
		err = fmt.Errorf("%s$%s has had no run (see rota run submit)", name, c.OwnSign())
	}
	return r, err
}

// runTasks completes task types that can have runs.
func runTasks(ctx context.Context, c *center.Center, _ []string) (names []string, err error) {
	tasks, err := c.Tasks(ctx, "")
	for _, t := range tasks {
		if t.Mode == center.ModeRun {
			names = append(names, t.TaskType)
		}
	}
	return names, err
}

// completedRuns is how many runs a shell is offered.
const completedRuns = 50

// runRefs completes the newest runs that something can be done to, with what they are, and task types.
func runRefs(fit func(runRecord) bool) candidates {
	return func(ctx context.Context, c *center.Center, _ []string) (list []string, err error) {
		runs, err := c.RunRecords(ctx, center.RunFilter{}, completedRuns)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if fit(r) {
				list = append(list, r.ID+"\t"+r.TaskType+", "+strings.ToLower(runState(r))+", "+ago(r.Now, r.ScheduledAt))
			}
		}
		tasks, err := runTasks(ctx, c, nil)
		for _, name := range tasks {
			list = append(list, name+"\tits newest run")
		}
		return list, err
	}
}

func anyRun(runRecord) bool    { return true }
func openRun(r runRecord) bool { return !r.Ended() }
