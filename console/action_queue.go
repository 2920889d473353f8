package console

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/dutyrota/rota/center"
)

// prepareQueues is the change of the number of numbered queues.
func prepareQueues(ctx context.Context, v *viewer, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	s, err := v.center.Tasks().Settings(ctx, t.TaskType)
	if err != nil {
		return nil, err
	}
	c := changeOfTask(t.TaskType, "Change the number of queues of "+t.TaskType, "Change the number of queues")
	if len(s.QueueNames) > 0 {
		return nil, fmt.Errorf("%s: its queues have names: add and remove them one by one", t.TaskType)
	}
	version := fmt.Sprint(t.Partition)
	text := form.Get("queues")
	var d center.SettingsDiff
	s.Queues, err = strconv.Atoi(text)
	if err != nil && text != "" {
		err = fmt.Errorf("queues (%s) must be a number of at least 1", text)
	}
	if was := form.Get("version"); text != "" && err == nil && was != "" && was != version {
		err = fmt.Errorf("the number of queues of %s has changed meanwhile: begin again", t.TaskType)
	}
	if text != "" && err == nil {
		d, err = v.center.Tasks().Compare(ctx, t.TaskType, s)
		switch {
		case err != nil:
		case d.Same():
			err = errNothing
		case d.QueuesRemoved() > 0:
			c.Danger = true
			c.Says = append(c.Says, fmt.Sprintf("Items of the %s are then in others: mod(id, %d) decides.", plural(d.QueuesRemoved(), "removed queue", "removed queues"), s.Queues))
		case d.QueuesAdded() == 0:
			c.Says = append(c.Says, fmt.Sprintf("This withdraws the change to %s, for which the servers are draining.", plural(d.Waiting, "queue", "queues")))
		}
		c.Says = append(c.Says, "This is a barrier: every server finishes what it has in flight and waits. Then the rows are added or removed, and all servers go on under new epochs.")
	}
	if text == "" || err != nil || form.Get("edit") != "" {
		if text == "" {
			text, err = strconv.FormatInt(t.QueueTotal, 10), nil
		}
		c.Says = nil
		c.hide("version", version)
		c.Fields = []formField{{Name: "queues", Label: "Number of queues", Value: text, Required: true, Help: fmt.Sprintf("now %d", t.QueueTotal)}}
		return c, err
	}
	c.hide("version", version)
	c.hide("queues", text)
	c.hide("step", "show")
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doneIf(fmt.Sprintf("%s changes to %s as soon as every server has drained", t.TaskType, plural(s.Queues, "queue", "queues")),
			v.center.Tasks().Apply(ctx, d, actor))
	}
	return c, nil
}
