package center

import (
	"context"
)

// runCheck checks the runs and the triggers of a task type.
type runCheck struct{ *diagnosis }

// problems reports runs that failed or last too long, and triggers that did not fire (R19).
func (d runCheck) problems(ctx context.Context, task TaskRecord) error {
	if task.RunProblems == 0 {
		return nil
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

// runProblemHint says what an operator can do.
func runProblemHint(p RunProblem) string {
	switch p.Kind {
	case ProblemFailed:
		return "rota run show " + p.RunID + "; then rota run rerun or rota run ack; the next success of the trigger also ends this"
	case ProblemOverdue:
		if p.State == RunReady {
			return "rota run show " + p.RunID + " says what it waits for"
		}
		return "rota run show " + p.RunID + "; it fails at its deadline; run_timeout sets the deadline of the next run"
	case ProblemMissed:
		return "the next success of the trigger ends this, or rota run ack " + p.TaskType + "; misfire of the trigger decides what late slots do"
	case ProblemLate:
		return "start a worker: rota worker -c rota.yaml; a live worker logs why it cannot tick"
	case ProblemInvalid:
		return "correct it: rota trigger apply; then rota trigger resume " + p.Trigger
	}
	return ""
}
