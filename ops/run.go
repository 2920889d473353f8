package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

const runHelp = "\n\nRUN is the id of a run, or a task type, which stands for its newest run."

func runExample(verb string) string {
	return fmt.Sprintf("  rota run %[1]s reindex\n  rota run %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", verb)
}

// CancelRun ends an open run.
type CancelRun struct {
	Run string `arg:"RUN" of:"open run" json:"-"`
}

var cancelRun = verb[CancelRun](Verb{
	Name: "run cancel", Right: RightOperate,
	Short: "Cancel an open run; the runs that depend on it fail",
	Long: `Cancel an open run at once, whichever servers own its queues. A server notices
within two seconds; what it has started may still take effect. The runs that
wait for its success fail.` + runHelp,
	Example: runExample("cancel"),
})

// Prepare implements Operation.
func (a CancelRun) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	change, err := runChange(ctx, c, a.Run, "Cancel", "cancelled", "", (*center.Runs).Cancel)
	if err == nil {
		change.Says = []string{"It ends at once. Servers at work on it stop within two seconds; what they have started may still take effect. Runs that need its success fail. To rerun it lets it go on where it was."}
	}
	return change, err
}

// RerunRun lets a run go on that failed or was cancelled or skipped.
type RerunRun struct {
	Run string `arg:"RUN" of:"ended run" json:"-"`
}

var rerunRun = verb[RerunRun](Verb{
	Name: "run rerun", Right: RightOperate,
	Short: "Rerun what a run has not done that failed or was cancelled or skipped",
	Long: `Rerun the unfinished queues of a run that failed or was cancelled, each from its
current position. Finished queues stay finished. A run that was SKIPPED starts
when no other run of its task type is RUNNING. The runs that failed or were
skipped because of this run wait for it again.` + runHelp,
	Example: runExample("rerun"),
})

// Prepare implements Operation.
func (a RerunRun) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	change, err := runChange(ctx, c, a.Run, "Rerun", "reopened", "the queues that were not done run again", (*center.Runs).Rerun)
	if err == nil {
		change.Says = []string{"Its failed and cancelled queues begin again, each from its cursor. Queues that are done stay done. The runs that failed or were skipped because of it wait again."}
	}
	return change, err
}

// PauseRun stops the sweeps of an open run.
type PauseRun struct {
	Run string `arg:"RUN" of:"open run" json:"-"`
}

var pauseRun = verb[PauseRun](Verb{
	Name: "run pause", Right: RightOperate,
	Short: "Pause an open run: its sweeps stop",
	Long: `Pause an open run. Its sweeps stop and none starts, until "rota run resume". Its
deadline does not change.` + runHelp,
	Example: runExample("pause"),
})

// Prepare implements Operation.
func (a PauseRun) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	change, err := runChange(ctx, c, a.Run, "Pause", "paused", "its sweeps stop", (*center.Runs).Pause)
	if err == nil {
		change.Says = []string{"It is not opened, no server takes its queues, and those at work stop in between two batches. Its deadline does not change."}
	}
	return change, err
}

// ResumeRun ends the pause of a run.
type ResumeRun struct {
	Run string `arg:"RUN" of:"paused run" json:"-"`
}

var resumeRun = verb[ResumeRun](Verb{
	Name: "run resume", Right: RightOperate,
	Short:   "Resume a paused run",
	Long:    `Resume a paused run, each queue from its current position.` + runHelp,
	Example: runExample("resume"),
})

// Prepare implements Operation.
func (a ResumeRun) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	change, err := runChange(ctx, c, a.Run, "Resume", "resumed", "", (*center.Runs).Resume)
	if err == nil {
		change.Says = []string{"It goes on where it was."}
	}
	return change, err
}

// AckRun acknowledges a failed run, or all failed runs and missed slots of a task type.
type AckRun struct {
	Run string `arg:"RUN" of:"failed run" json:"-"`
}

var ackRun = verb[AckRun](Verb{
	Name: "run ack", Right: RightOperate,
	Short: "Acknowledge failed runs, missed and skipped slots: no problem any more",
	Long: `Acknowledge that a run failed: its alert is not repeated, and "rota doctor" and
"rota task list" do not count it any more. This also acknowledges the earlier
failures of the same trigger or backfill, and the runs that failed because of
this run, but no other submitted runs. The next run that fails is a problem
again.

RUN is the id of a failed run, or a task type, which stands for all its failed
and cancelled runs and the missed and skipped slots of its triggers.`,
	Example: `  rota run ack reindex
  rota run ack 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c`,
})

// Prepare implements Operation.
func (a AckRun) Prepare(ctx context.Context, c *center.Center) (*Change, error) {
	if a.Run == "" {
		return nil, missing("the run")
	}
	r, err := c.Runs().Get(ctx, a.Run)
	if err == nil {
		change := changeOfRun(c, r, "Acknowledge the failure of", "acknowledged", "", (*center.Runs).Ack)
		change.Says = []string{"The failure is no problem any more. So are the earlier failures of the same trigger, and the runs that failed because of this one. The next run that fails is a problem again."}
		return change, nil
	}
	if !errors.Is(err, center.ErrUnknownRun) {
		return nil, err
	}
	if _, err := c.Runs().Find(ctx, a.Run); err != nil && !errors.Is(err, center.ErrNoRunYet) { // a slot may be missed before the first run
		return nil, err
	}
	taskType := a.Run
	return &Change{
		Title: "Acknowledge the problems of " + taskType, TaskTypes: []string{taskType},
		Says: []string{"Its failed runs, and the missed and skipped slots of its triggers, are no problem any more. The next run that fails is a problem again."},
		Objects: []Object{{
			Name: inEnvironment(c, taskType), Past: "acknowledged",
			do: func(ctx context.Context, actor string) (Done, error) {
				problems, err := c.Runs().AckTask(ctx, taskType, actor)
				return Done{Text: acknowledged(problems)}, err
			},
		}},
	}, nil
}

func acknowledged(problems []center.RunProblem) string {
	var runs, triggers int64
	for _, p := range problems {
		if p.RunID != "" {
			runs += p.Count
		} else {
			triggers++
		}
	}
	return fmt.Sprintf("acknowledged %s, and missed or skipped slots of %s", plural.Of(runs, "run", "runs"), plural.Of(triggers, "trigger", "triggers"))
}

// runChange returns a change of the run with an id, or of the newest run of a task type.
func runChange(ctx context.Context, c *center.Center, name, title, past, effect string, do func(r *center.Runs, ctx context.Context, id, actor string) error) (*Change, error) {
	if name == "" {
		return nil, missing("the run")
	}
	r, err := c.Runs().Find(ctx, name)
	if err != nil {
		return nil, err
	}
	return changeOfRun(c, r, title, past, effect, do), nil
}

func changeOfRun(c *center.Center, r center.RunRecord, title, past, effect string, do func(r *center.Runs, ctx context.Context, id, actor string) error) *Change {
	return &Change{
		Title: fmt.Sprintf("%s run %s of %s", title, r.Key, r.TaskType), TaskTypes: []string{r.TaskType},
		Objects: []Object{{
			ID: r.ID, Name: fmt.Sprintf("run %s (%s)", r.ID, r.TaskType), Past: past, Effect: effect,
			do: done(func(ctx context.Context, actor string) error { return do(c.Runs(), ctx, r.ID, actor) }),
		}},
	}
}
