package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dutyrota/rota/center"
)

func prepareRunSubmit(ctx context.Context, v *view, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	if t.Mode != center.ModeRun {
		return nil, fmt.Errorf("%s has no runs: its mode is %s", t.TaskType, t.Mode)
	}
	c := changeOfTask(t.TaskType, "Submit a run of "+t.TaskType, "Submit the run")
	r := formReader{form: form}
	ask := center.Submission{
		Key: form.Get("key"), Params: form.Get("params"), Priority: int(r.number("priority")), MaxAttempts: int(r.number("attempts")),
		NotBefore: r.time("not_before"), EndBefore: r.time("deadline"),
	}
	if form.Get("step") == "" || form.Get("edit") != "" || len(r.errs) > 0 {
		c.hide("step", "show")
		c.Fields = []formField{
			{Name: "key", Label: "Key", Value: ask.Key, Help: "there is one run of a key; without a key each submission makes a run"},
			{Name: "params", Label: "Parameters", Value: ask.Params, Long: true, Help: "for the dealer: any text, such as JSON"},
			{Name: "priority", Label: "Priority", Value: form.Get("priority"), Placeholder: "0", Help: "the highest is opened first"},
			{Name: "not_before", Label: "Not before", Value: form.Get("not_before"), Placeholder: "2026-08-01T12:00:00Z", Help: "it does not start before this time"},
			{Name: "deadline", Label: "Deadline", Value: form.Get("deadline"), Placeholder: "2026-08-01T18:00:00Z", Help: "it fails if it has not ended by this time"},
			{Name: "attempts", Label: "Attempts", Value: form.Get("attempts"), Placeholder: "0", Help: "of each queue; 0 is the setting queue_max_attempts"},
		}
		return c, errors.Join(r.errs...)
	}
	c.hide("step", "show")
	for _, name := range []string{"key", "params", "priority", "not_before", "deadline", "attempts"} {
		c.hide(name, form.Get(name))
	}
	c.Says = []string{"The runs that depend on it are made with it. It begins when no other run of " + t.TaskType + " is running."}
	if ask.Key != "" {
		c.Says = append(c.Says, fmt.Sprintf("The key is %s.", ask.Key))
	}
	if !ask.NotBefore.IsZero() {
		c.Says = append(c.Says, "It does not start before "+ask.NotBefore.UTC().Format(time.RFC3339)+".")
	}
	if !ask.EndBefore.IsZero() {
		c.Says = append(c.Says, "It fails if it has not ended by "+ask.EndBefore.UTC().Format(time.RFC3339)+".")
	}
	if t.Paused {
		c.Warnings = []string{t.TaskType + " is paused: the run waits until somebody resumes it."}
	}
	c.do = func(ctx context.Context, actor string) (string, error) {
		ask.Actor = actor
		id, existed, err := v.center.Runs().Submit(ctx, t.TaskType, ask)
		if err != nil {
			return "", err
		}
		c.Back = address("run", "run", id)
		if existed {
			return "a run of this key exists already: this one", nil
		}
		return "the run is submitted", nil
	}
	return c, nil
}

// runVerb is something that people do to a run.
type runVerb struct {
	title, button string
	done, says    string
	danger        bool
	do            func(r *center.Runs, ctx context.Context, runID, actor string) error
}

func prepareRunCancel(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareRun(ctx, v, form, runVerb{
		"Cancel", "Cancel the run", "cancelled", "It ends at once. Servers at work on it stop within two seconds; what they have started may still take effect. Runs that need its success fail. To rerun it lets it go on where it was.", true, (*center.Runs).Cancel,
	})
}

func prepareRunRerun(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareRun(ctx, v, form, runVerb{
		"Rerun", "Rerun", "reopened", "Its failed and cancelled queues begin again, each from its cursor. Queues that are done stay done. The runs that failed or were skipped because of it wait again.", false, (*center.Runs).Rerun,
	})
}

func prepareRunPause(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareRun(ctx, v, form, runVerb{
		"Pause", "Pause", "paused", "It is not opened, no server takes its queues, and those at work stop in between two batches. Its deadline does not change.", false, (*center.Runs).Pause,
	})
}

func prepareRunResume(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareRun(ctx, v, form, runVerb{"Resume", "Resume", "resumed", "It goes on where it was.", false, (*center.Runs).Resume})
}

// prepareRunAck acknowledges a failed run, or all failed runs and missed slots of a task type.
func prepareRunAck(ctx context.Context, v *view, form url.Values) (*change, error) {
	if form.Get("run") == "" && form.Get("task") != "" {
		return prepareTaskAck(ctx, v, form)
	}
	return prepareRun(ctx, v, form, runVerb{
		"Acknowledge the failure of", "Acknowledge", "acknowledged", "The failure is no problem any more. So are the earlier failures of the same trigger, and the runs that failed because of this one. The next run that fails is a problem again.", false, (*center.Runs).Ack,
	})
}

func prepareTaskAck(ctx context.Context, v *view, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	c := changeOfTask(t.TaskType, "Acknowledge the problems of "+t.TaskType, "Acknowledge")
	c.Back = address("runs", "task", t.TaskType)
	c.Says = []string{"Its failed runs, and the missed slots of its triggers, are no problem any more. The next run that fails is a problem again."}
	c.do = func(ctx context.Context, actor string) (string, error) {
		problems, err := v.center.Runs().AckTask(ctx, t.TaskType, actor)
		return doneIf(fmt.Sprintf("%s of %s acknowledged", plural(len(problems), "problem", "problems"), t.TaskType), err)
	}
	return c, nil
}

func prepareRun(ctx context.Context, v *view, form url.Values, verb runVerb) (*change, error) {
	id := form.Get("run")
	if id == "" {
		return nil, errMissing("the run")
	}
	r, err := v.center.Runs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &change{
		Title: fmt.Sprintf("%s run %s of %s", verb.title, r.Key, r.TaskType), Button: verb.button, Danger: verb.danger,
		TaskTypes: []string{r.TaskType}, Back: address("run", "run", r.ID), Says: []string{verb.says},
	}
	c.hide("run", r.ID)
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doneIf(fmt.Sprintf("run %s of %s is %s", r.Key, r.TaskType, verb.done), verb.do(v.center.Runs(), ctx, r.ID, actor))
	}
	return c, nil
}
