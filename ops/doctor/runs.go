package doctor

import (
	"context"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// runCheck checks the runs and the triggers of a task type.
type runCheck struct{ *diagnosis }

// problems reports runs that failed or last too long, and triggers that did not fire (R19).
func (d runCheck) problems(r rosterRows) {
	for _, p := range r.cancelled {
		d.advise(condition.RunCancelled, "rota run rerun "+p.RunID+" or rota run ack "+p.RunID, "%s: %s", p.Subject(),
			sqldb.JoinLines(p.Text())).Subject = p.Subject()
	}
	for _, p := range r.problems {
		c := p.Condition()
		c.Text = c.Subject + ": " + sqldb.JoinLines(c.Text)
		d.findings = append(d.findings, c)
	}
}

// triggers reports what follows from the triggers and is no problem: slots that were skipped, and joins without runs.
func (d runCheck) triggers(ctx context.Context, taskType string) error {
	triggers, err := d.c.Triggers().List(ctx, runs.TriggerFilter{})
	if err != nil || len(triggers) == 0 {
		return err
	}
	for _, t := range triggers {
		if t.Skipped == 0 || t.SkippedTooLong(t.Now) || taskType != "" && taskType != t.Target {
			continue
		}
		d.task = t.Target
		d.note(condition.SlotSkipped, command("rota run list", t.Target, "--state", "SKIPPED")+" says which run was open",
			"trigger %s: %s", t.Name, t.SkippedText()).Subject = "trigger " + t.Name
	}
	d.task = ""
	return d.joins(ctx, taskType, triggers)
}

// joins reports joins for which triggers never make a run, because no trigger leads to one of the upstreams (R18). The
// finding is a note: an operator may submit the upstreams.
func (d runCheck) joins(ctx context.Context, taskType string, triggers []runs.TriggerRecord) error {
	joins, err := d.c.Engine().Dependencies.UnmetJoins(ctx, triggers)
	if err != nil {
		return err
	}
	for _, j := range joins {
		if taskType != "" && taskType != j.TaskType {
			continue
		}
		d.task = j.TaskType
		d.add(condition.JoinUnmet, "no slot leads to a run: it runs after %s, and no trigger leads to %s",
			human.First(j.Upstreams, 5), human.First(j.Slotless, 5))
	}
	d.task = ""
	return nil
}

// unmade reports submissions that no server takes (R21): their transactions committed when the task type had become
// CONTINUOUS, or was deleted.
func (d runCheck) unmade(ctx context.Context, taskType string) error {
	unmade, err := d.c.Runs().Unmade(ctx)
	for _, u := range unmade {
		if taskType == "" || taskType == u.TaskType {
			d.task = u.TaskType
			d.add(condition.RunUnmade, "%s submitted in transactions and will not be made: the task type has no runs",
				human.Count(u.Runs, "run was", "runs were"))
		}
	}
	d.task = ""
	return err
}
