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
