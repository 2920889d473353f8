package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// prepareQueues is the change of the number of numbered queues.
func prepareQueues(ctx context.Context, v *view, form url.Values) (*change, error) {
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
	version := fmt.Sprint(t.QueueTotal)
	if t.RequestedTotal != nil {
		version += fmt.Sprint("/", *t.RequestedTotal)
	}
	text := form.Get("queues")
	s.Queues, err = strconv.Atoi(text)
	if err != nil && text != "" {
		err = fmt.Errorf("queues (%s) must be a number of at least 1", text)
	}
	if was := form.Get("version"); text != "" && err == nil && was != "" && was != version {
		err = fmt.Errorf("the number of queues of %s has changed meanwhile: begin again", t.TaskType)
	}
	if text != "" && err == nil {
		d, diffErr := v.center.Tasks().Compare(ctx, t.TaskType, s)
		switch err = diffErr; {
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
			v.center.Queues().Repartition(ctx, t.TaskType, s.Queues, actor))
	}
	return c, nil
}

func prepareQueueAdd(ctx context.Context, v *view, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	c := changeOfTask(t.TaskType, "Add a queue to "+t.TaskType, "Add the queue")
	queue, parameter := form.Get("queue"), form.Get("parameter")
	if queue == "" || form.Get("edit") != "" {
		c.Fields = []formField{
			{Name: "queue", Label: "Name", Value: queue, Required: true},
			{Name: "parameter", Label: "Parameter", Value: parameter, Help: "handed to each Select; any text, such as JSON"},
		}
		return c, nil
	}
	c.hide("queue", queue)
	c.hide("parameter", parameter)
	c.hide("step", "show")
	c.Says = []string{fmt.Sprintf("A server owns the queue %s at once. If it is being removed, it stays.", queue)}
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doneIf(fmt.Sprintf("queue %s is added to %s", queue, t.TaskType), v.center.Queues().Add(ctx, t.TaskType, queue, parameter, actor))
	}
	return c, nil
}

func prepareQueueRemove(ctx context.Context, v *view, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	queue := form.Get("queue")
	if queue == "" {
		return nil, errMissing("the queue")
	}
	s, err := v.center.Tasks().Settings(ctx, t.TaskType)
	if err == nil && len(s.QueueNames) == 0 {
		err = errors.New(t.TaskType + ": its queues have numbers: change the number of queues")
	}
	if err != nil {
		return nil, err
	}
	c := changeOfTask(t.TaskType, fmt.Sprintf("Remove queue %s of %s", queue, t.TaskType), "Remove the queue")
	c.Danger = true
	c.hide("queue", queue)
	c.Says = []string{"Its owner drains it, then the row goes. Items of this name are no longer processed. To add it again before that cancels the removal."}
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doneIf(fmt.Sprintf("queue %s is removed as soon as its owner has drained it", queue), v.center.Queues().Remove(ctx, t.TaskType, queue, actor))
	}
	return c, nil
}
