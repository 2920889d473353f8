package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/runs"
)

// problemInterval is the pause between two looks for problems of runs. It bounds the delay of the alert of a failed
// run. A failure whose problem ends between two looks raises its alert all the same: the row of the run says that it is
// still to be raised.
const problemInterval = 30 * time.Second

// runProblems looks for problems of the runs and the triggers of the task type (R19). Every
// server looks, because the others may be gone.
type runProblems struct {
	*base
	alerter *alerter
	next    time.Time // when to look
}

// nextJob returns the job that looks for problems, or nil if it is not time for it.
func (r *runProblems) nextJob() *job {
	if time.Now().Before(r.next) {
		return nil
	}
	r.next = time.Now().Add(problemInterval)
	var raised []center.Condition
	var list []runs.Problem
	return &job{
		name: "look for problems of runs",
		call: func(ctx context.Context) (err error) {
			if raised, err = r.runs.Engine().Runs.AlertFailures(ctx, r.taskType); err != nil {
				return err
			}
			list, err = r.runs.Runs().Problems(ctx, r.taskType)
			return err
		},
		then: func(ctx context.Context, err error) (more bool) {
			for _, a := range raised {
				r.alerter.told(ctx, a, true, nil)
			}
			if err != nil {
				return false
			}
			for _, p := range list {
				r.alerter.episodes.see(p.Condition(), runLooks)
			}
			r.alerter.episodes.checked(runLooks)
			return len(list) > 0
		},
	}
}
