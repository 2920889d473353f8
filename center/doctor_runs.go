package center

import (
	"context"
	"time"
)

// runCheck checks the runs and the triggers of a task type.
type runCheck struct{ *diagnosis }

// problems reports runs that failed or last too long, and triggers that did not fire (R19).
func (d runCheck) problems(ctx context.Context, task TaskRecord) error {
	cancelled, err := d.c.Runs().Cancelled(ctx, task.TaskType)
	for _, p := range cancelled {
		d.note("runs", "rota run rerun "+p.RunID+" or rota run ack "+p.RunID, "%s: %s", p.Subject(), oneLine(errText(p.Text())))
	}
	if err != nil || task.RunProblems == 0 {
		return err
	}
	problems, err := d.c.Runs().Problems(ctx, task.TaskType)
	if err != nil {
		return err
	}
	for _, p := range problems {
		check := "runs"
		if p.RunID == "" {
			check = "triggers"
		}
		d.problem(check, runProblemHint(p), "%s: %s", p.Subject(), oneLine(errText(p.Text())))
	}
	return nil
}

// triggers reports what follows from the triggers and is no problem: slots that were skipped, and joins without runs.
func (d runCheck) triggers(ctx context.Context, taskType string) error {
	triggers, err := d.c.Triggers().List(ctx, TriggerFilter{})
	if err != nil || len(triggers) == 0 {
		return err
	}
	for _, t := range triggers {
		if t.Skipped == 0 || t.SkippedTooLong(t.Now) || taskType != "" && taskType != t.Target {
			continue
		}
		d.task = t.Target
		d.note("triggers", "rota run list "+t.Target+" --state SKIPPED says which run was open", "trigger %s: %s", t.Name, t.SkippedText())
	}
	d.task = ""
	return d.joins(ctx, taskType, triggers)
}

// joins reports joins for which triggers never make a run, because the upstreams share no slot (R18). The finding is a
// note: an operator may submit the upstreams.
func (d runCheck) joins(ctx context.Context, taskType string, triggers []TriggerRecord) error {
	joins, err := d.c.Engine().Dependencies.UnmetJoins(ctx, triggers, triggers[0].Now)
	if err != nil {
		return err
	}
	for _, j := range joins {
		if taskType != "" && taskType != j.TaskType {
			continue
		}
		d.task = j.TaskType
		upstreams := firstFive(j.Upstreams)
		if len(j.Slotless) > 0 {
			d.note("joins", "rota trigger apply: give the upstreams the same slots; or use after_any, for a run for each",
				"no slot leads to a run: it runs after %s, and no trigger leads to %s", upstreams, firstFive(j.Slotless))
			continue
		}
		d.note("joins", "rota trigger list: give the upstreams the same slots; or use after_any, for a run for each",
			"no slot leads to a run: it runs after %s, which share none that was found until %s", upstreams, j.Until.Format(time.DateOnly))
	}
	d.task = ""
	return nil
}

// runProblemHint says what an operator can do.
func runProblemHint(p RunProblem) string {
	switch p.Kind {
	case ProblemFailed:
		if p.Backfill != "" {
			return "rota run backfill show " + p.Backfill + "; then rota run rerun " + p.RunID + " or rota run ack " + p.RunID
		}
		if p.Trigger == "" {
			return "rota run show " + p.RunID + "; then rota run rerun or rota run ack; rota run ack " + p.TaskType + " acknowledges all"
		}
		return "rota run show " + p.RunID + "; then rota run rerun or rota run ack; the next success of the trigger also ends this"
	case ProblemOverdue:
		if p.State == RunReady {
			return "rota run show " + p.RunID + " says what it waits for"
		}
		return "rota run show " + p.RunID + "; it fails at its deadline; run_timeout sets the deadline of the next run"
	case ProblemStalled:
		return "rota run show " + p.RunID + " names its queues and failed items; rota run cancel " + p.RunID + " lets the next run begin"
	case ProblemMissed:
		return "the next success of the trigger ends this, or rota run ack " + p.TaskType + "; misfire of the trigger decides what late slots do"
	case ProblemSkipped:
		return "rota run list " + p.TaskType + " shows the open run; overlap WAIT of the trigger lets one slot wait; the next slot that fires ends this, or rota run ack " + p.TaskType
	case ProblemLate:
		return "start a worker: rota worker -c rota.yaml; a live worker logs why it cannot tick"
	case ProblemInvalid:
		return "correct it: rota trigger apply; then rota trigger resume " + p.Trigger
	}
	return ""
}
