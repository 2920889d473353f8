package ops

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/center"
)

// AddQueue adds a named queue, or cancels its removal.
type AddQueue struct {
	TaskType  string `arg:"TASK" of:"task" json:"-"`
	Queue     string `arg:"QUEUE" json:"queue_id"`
	Parameter string `flag:"parameter" json:"queue_parameter" help:"queue_parameter, which the dealer gets with each select"`
}

var addQueue = verb[AddQueue](Verb{
	Name: "queue add", Right: RightChange,
	Short:   "Add a named queue, or cancel its removal",
	Effect:  "A server owns the queue at once. A queue that is being removed stays.",
	Help:    `"rota task apply" changes the number of numbered queues.`,
	Example: "  rota queue add settle west\n  rota queue add settle west --parameter '{\"zone\": 3}'",
})

// Prepare implements Operation.
func (a AddQueue) Prepare(ctx context.Context, c *Client) (*Change, error) {
	err := requireNames(ctx, c, a.TaskType)
	if err == nil && a.Queue != "" {
		err = requireDatabase(ctx, c, a.TaskType, a.Queue)
	}
	if err != nil {
		return nil, err
	}
	return queueChange(c, a.TaskType, a.Queue, "Add %s", Change{
		Says: []string{addQueue.Effect},
	}, "added", func(ctx context.Context, actor string) error {
		if err := requireDatabase(ctx, c, a.TaskType, a.Queue); err != nil {
			return err
		}
		return c.roster.Operator(actor).AddQueue(ctx, a.TaskType, a.Queue, a.Parameter)
	}), given("the queue", a.Queue)
}

// requireDatabase returns an error if the setting database says nothing about a queue: nobody could work it.
func requireDatabase(ctx context.Context, c *Client, taskType, queue string) error {
	s, err := c.Tasks().Settings(ctx, taskType)
	if err != nil {
		return err
	}
	if _, err := s.DatabaseOf(queue); err != nil {
		return fmt.Errorf("%s: database (%q) must name the data database of each queue: %w", taskType, s.Database, err)
	}
	return nil
}

// RemoveQueue removes a named queue after its owner has drained it.
type RemoveQueue struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
	Queue    string `arg:"QUEUE" of:"queue" json:"queue_id"`
}

var removeQueue = verb[RemoveQueue](Verb{
	Name: "queue remove", Right: RightChange, Asks: true,
	Short: "Remove a named queue after its owner has drained it",
	Effect: "Its owner finishes what it has in flight of the queue, then the row is deleted. Items of this name are no " +
		"longer processed. Adding the queue again before that cancels the removal.",
	Example: "  rota queue remove settle west --yes",
})

// Prepare implements Operation.
func (a RemoveQueue) Prepare(ctx context.Context, c *Client) (*Change, error) {
	err := requireNames(ctx, c, a.TaskType)
	if err == nil {
		err = given("the queue", a.Queue)
	}
	if err != nil {
		return nil, err
	}
	return queueChange(c, a.TaskType, a.Queue, "Remove %s", Change{
		Says: []string{removeQueue.Effect},
		Loses: fmt.Sprintf("remove queue %s of %s, whose items are then no longer processed",
			a.Queue, inEnvironment(c, a.TaskType)),
	}, "removed as soon as its owner has drained it", func(ctx context.Context, actor string) error {
		return c.roster.Operator(actor).RemoveQueue(ctx, a.TaskType, a.Queue)
	}), nil
}

// PinQueue lets only servers with certain labels own a queue.
type PinQueue struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
	Queue    string `arg:"QUEUE" of:"queue" json:"queue_id"`
	Labels   string `arg:"LABELS" json:"pin" help:"such as host=web1, or disk=ssd|nvme,zone=b"`
}

var pinQueue = verb[PinQueue](Verb{
	Name: "queue pin", Right: RightChange,
	Short: "Let only workers with these labels own a queue",
	Effect: "An owner that lacks a label hands the queue over as soon as a worker has them all. If no worker has them " +
		"and the queue has no owner, it waits.",
	Help: `LABELS is a list such as zone=b or disk=ssd|nvme,zone=b; host=web1 is the name
of a host.

A numbered queue loses its pin when "rota task apply" makes the queues fewer.`,
	Example: `  rota queue pin settle 3 host=web1
  rota queue pin regions west 'zone=b|c'`,
})

// Prepare implements Operation.
func (a PinQueue) Prepare(ctx context.Context, c *Client) (*Change, error) {
	q, err := readQueue(ctx, c, a.TaskType, a.Queue)
	if err != nil {
		return nil, err
	}
	change := queueChange(c, a.TaskType, a.Queue, "Pin %s", Change{
		Says: []string{pinQueue.Effect},
	}, "pinned to "+a.Labels, func(ctx context.Context, actor string) error {
		return c.roster.Operator(actor).PinQueue(ctx, a.TaskType, a.Queue, a.Labels)
	})
	if q.Pin != "" {
		change.Says = append(change.Says, "It is pinned to "+q.Pin+" now.")
	}
	return change, given("the labels", a.Labels)
}

// UnpinQueue ends a pin.
type UnpinQueue struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
	Queue    string `arg:"QUEUE" of:"queue" json:"queue_id"`
}

var unpinQueue = verb[UnpinQueue](Verb{
	Name: "queue unpin", Right: RightChange,
	Short:   "Let any worker own a queue again",
	Effect:  `Only "require" of its task type then says which workers may own it.`,
	Example: "  rota queue unpin settle 3",
})

// Prepare implements Operation.
func (a UnpinQueue) Prepare(ctx context.Context, c *Client) (*Change, error) {
	if _, err := readQueue(ctx, c, a.TaskType, a.Queue); err != nil {
		return nil, err
	}
	return queueChange(c, a.TaskType, a.Queue, "Unpin %s", Change{
		Says: []string{unpinQueue.Effect},
	}, "not pinned any more", func(ctx context.Context, actor string) error {
		return c.roster.Operator(actor).PinQueue(ctx, a.TaskType, a.Queue, "")
	}), nil
}

// queueChange completes a change of one queue.
func queueChange(
	c *Client, taskType, queue, title string, change Change, past string,
	do func(context.Context, string) error,
) *Change {
	change.Title = fmt.Sprintf(title, "queue "+queue+" of "+taskType)
	change.TaskTypes = []string{taskType}
	change.Objects = []Object{{Name: "queue " + queue + " of " + inEnvironment(c, taskType), Past: past, do: done(do)}}
	return &change
}

// readQueue returns a queue, or an error if the task type has none of that name.
func readQueue(ctx context.Context, c *Client, taskType, queue string) (QueueRecord, error) {
	if _, err := readTask(ctx, c, taskType); err != nil {
		return QueueRecord{}, err
	}
	if err := given("the queue", queue); err != nil {
		return QueueRecord{}, err
	}
	list, err := c.Queues().List(ctx, QueueFilter{TaskType: taskType})
	if err != nil {
		return QueueRecord{}, err
	}
	for _, q := range list {
		if q.QueueID == queue {
			return q, nil
		}
	}
	return QueueRecord{}, fmt.Errorf("find queue %q of %s: %w", queue, inEnvironment(c, taskType), ErrUnknownQueue)
}

// requireNames returns an error if the queues of a task type have numbers, with the command that changes these.
func requireNames(ctx context.Context, c *Client, taskType string) error {
	t, err := readTask(ctx, c, taskType)
	if err != nil {
		return err
	}
	s, err := c.Tasks().Settings(ctx, taskType)
	if err == nil && len(s.QueueNames) == 0 && t.QueueTotal > 0 {
		err = fmt.Errorf("%s: %w: rota task set %s queues=%d",
			inEnvironment(c, taskType), center.ErrNumbered, taskType, t.QueueTotal+1)
	}
	return err
}
