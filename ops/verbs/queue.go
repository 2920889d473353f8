package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
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
	Effect:  "A worker owns the queue at once. A queue that is being removed stays.",
	Help:    `"rota task apply" changes the number of numbered queues.`,
	Example: "  rota queue add settle west\n  rota queue add settle west --parameter '{\"zone\": 3}'",
})

// Prepare implements Operation.
func (a AddQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	err := requireNames(ctx, c, a.TaskType)
	if err == nil && a.Queue != "" {
		err = requireDatabase(ctx, c, a.TaskType, a.Queue)
	}
	if err == nil && a.Queue != "" {
		err = a.requireNew(ctx, c)
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
		return c.Roster().Operator(actor).AddQueue(ctx, a.TaskType, a.Queue, a.Parameter)
	}), given("the queue", a.Queue)
}

// requireNew returns an error if there is a queue of that name which is not to be removed, or has another parameter: a
// queue that stays keeps its own.
func (a AddQueue) requireNew(ctx context.Context, c *ops.Client) error {
	q, err := readQueue(ctx, c, a.TaskType, a.Queue)
	problem := ""
	switch {
	case errors.Is(err, ErrUnknownQueue):
		return nil
	case err != nil:
		return err
	case !q.Removing:
		problem = "there is a queue of that name"
	case a.Parameter != "" && a.Parameter != q.QueueParameter:
		problem = fmt.Sprintf("the queue of that name is still there, and stays with its parameter, %.60q: leave out the "+
			"parameter, or wait until the queue is removed", q.QueueParameter)
	default:
		return nil
	}
	return fmt.Errorf("add queue %q to %s: %s", a.Queue, inEnvironment(c, a.TaskType), problem)
}

// requireDatabase returns an error if the setting database says nothing about a queue: nobody could work it.
func requireDatabase(ctx context.Context, c *ops.Client, taskType, queue string) error {
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
	Name: "queue remove", Right: RightChange,
	Short: "Remove a named queue after its owner has drained it",
	Effect: "Its owner finishes what it has in flight of the queue, then the row is deleted. Items of this name are no " +
		"longer processed. Adding the queue again before that cancels the removal.",
	Example: "  rota queue remove settle west --yes",
})

// Prepare implements Operation.
func (a RemoveQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	err := requireNames(ctx, c, a.TaskType)
	if err == nil {
		_, err = readQueue(ctx, c, a.TaskType, a.Queue)
	}
	if err == nil {
		err = c.Roster().MayRemoveQueue(ctx, a.TaskType, a.Queue)
	}
	if err != nil {
		return nil, err
	}
	return queueChange(c, a.TaskType, a.Queue, "Remove %s", Change{
		Says: []string{removeQueue.Effect},
		Loses: fmt.Sprintf("remove queue %s of %s, whose items are then no longer processed",
			a.Queue, inEnvironment(c, a.TaskType)),
	}, "removed as soon as its owner has drained it", func(ctx context.Context, actor string) error {
		return c.Roster().Operator(actor).RemoveQueue(ctx, a.TaskType, a.Queue)
	}), nil
}

// SplitQueue splits a numbered queue, or gives up its merge.
type SplitQueue struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
	Queue    string `arg:"QUEUE" of:"queue" json:"queue_id"`
	Total    int    `flag:"total" json:"queue_total" help:"the new total, a multiple of the present one; twice it if left out"`
}

var splitQueue = verb[SplitQueue](Verb{
	Name: "queue split", Right: RightChange,
	Short: "Split a numbered queue",
	Effect: "Its owner finishes what it has in flight of the queue and works its other queues meanwhile. The parts have " +
		"its cursor, parameter and pin.",
	Help: `The task type must be splittable: each select of its dealer divides by the total
of its own queue. Queue 3 of 8 becomes queues 3 and 11 of 16.

The present total withdraws a split or a merge that has not happened yet.

"rota task set TASK queues=N" splits or merges all queues, one after the other.`,
	Example: `  rota queue split settle 3
  rota queue split settle 3 --total 32
  rota queue split settle 3 --total 8       withdraw it`,
})

// Prepare implements Operation.
func (a SplitQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	q, total, err := numberedQueue(ctx, c, a.TaskType, a.Queue)
	if err != nil {
		return nil, err
	}
	if a.Total == 0 {
		a.Total = 2 * total
	}
	if a.Total < total || a.Total%total != 0 {
		err = fmt.Errorf("total (%d) must be a multiple of the queue's total, %d", a.Total, total)
		return resizeChange(c, a.TaskType, q, a.Total, "Split %s", ""), err
	}
	if err := c.Roster().MayResize(ctx, a.TaskType, q.QueueID, a.Total); err != nil {
		return nil, err
	}
	if a.Total == total {
		return resizeChange(c, a.TaskType, q, a.Total, "Split %s", "left as it is",
			"What was requested for the queue is withdrawn."), nil
	}
	var parts []string
	for i := int(q.QueueIndex); i < a.Total; i += total {
		parts = append(parts, fmt.Sprint(i))
	}
	becomes := fmt.Sprintf("Queue %s of %d becomes queues %s of %d.", q.QueueID, total, human.First(parts, 5), a.Total)
	change := resizeChange(c, a.TaskType, q, a.Total, "Split %s", "split as soon as its owner has drained it", becomes,
		splitQueue.Effect)
	change.Exact = a
	return change, nil
}

// MergeQueues merges a numbered queue with those that it was split from or into.
type MergeQueues struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
	Queue    string `arg:"QUEUE" of:"queue" json:"queue_id"`
	Total    int    `flag:"total" json:"queue_total" help:"the new total, a divisor of the present one; half of it if left out"`
}

var mergeQueues = verb[MergeQueues](Verb{
	Name: "queue merge", Right: RightChange,
	Short: "Merge numbered queues into one",
	Effect: "The owners finish what they have in flight of these queues and work their other queues meanwhile. Then one " +
		"queue has all their items.",
	Help: `The task type must be splittable. Queues 3 and 11 of 16 become queue 3 of 8.
Their cursors, parameters and pins must be the same.`,
	Example: `  rota queue merge settle 11
  rota queue merge settle 3 --total 4`,
})

// Prepare implements Operation.
func (a MergeQueues) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	q, total, err := numberedQueue(ctx, c, a.TaskType, a.Queue)
	if err != nil {
		return nil, err
	}
	if a.Total == 0 && total%2 == 0 {
		a.Total = total / 2
	}
	if a.Total == 0 && total > 1 {
		err = fmt.Errorf("total %w: the queue's total, %d, is odd and has no half: state a divisor of it", ErrMissing, total)
		return resizeChange(c, a.TaskType, q, a.Total, "Merge %s", ""), err
	}
	if a.Total < 1 || a.Total >= total || total%a.Total != 0 {
		err = fmt.Errorf("total (%d) must be a divisor of the queue's total, %d, and less", a.Total, total)
		return resizeChange(c, a.TaskType, q, a.Total, "Merge %s", ""), err
	}
	if err := c.Roster().MayResize(ctx, a.TaskType, q.QueueID, a.Total); err != nil {
		return nil, err
	}
	all, err := c.Queues().List(ctx, ops.QueueFilter{TaskType: a.TaskType})
	if err != nil {
		return nil, err
	}
	into := q.QueueIndex % int64(a.Total)
	var family []string
	for _, other := range all {
		if other.QueueIndex%int64(a.Total) == into {
			family = append(family, other.QueueID)
		}
	}
	becomes := fmt.Sprintf("Queues %s become queue %d of %d.", human.First(family, 5), into, a.Total)
	change := resizeChange(c, a.TaskType, q, a.Total, "Merge %s",
		"merged as soon as the owners have drained the queues", becomes, mergeQueues.Effect)
	change.Exact = a
	return change, nil
}

// numberedQueue returns a queue and its total. It returns an error if the queue has a name.
func numberedQueue(ctx context.Context, c *ops.Client, taskType, queue string) (ops.QueueRecord, int, error) {
	q, err := readQueue(ctx, c, taskType, queue)
	if err != nil {
		return q, 0, err
	}
	if q.QueueTotal == nil {
		return q, 0, fmt.Errorf("queue %s of %s has a name, which divides no items", queue, inEnvironment(c, taskType))
	}
	t, err := readTask(ctx, c, taskType)
	if err == nil && !t.Splittable {
		err = fmt.Errorf("%s is not splittable: if each select divides by the total of its queue, %s",
			inEnvironment(c, taskType), c.SetCommand(taskType, "splittable=true"))
	}
	return q, int(*q.QueueTotal), err
}

// resizeChange is a split or a merge.
func resizeChange(
	c *ops.Client, taskType string, q ops.QueueRecord, total int, title, past string, says ...string,
) *Change {
	change := queueChange(c, taskType, q.QueueID, title, Change{Says: says}, past,
		func(ctx context.Context, actor string) error {
			return c.Roster().Operator(actor).Resize(ctx, taskType, q.QueueID, total)
		})
	if q.Resizing != nil {
		change.Says = append(change.Says, fmt.Sprintf("Its total is to become %d already.", *q.Resizing))
	}
	return change
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
func (a PinQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	q, err := readQueue(ctx, c, a.TaskType, a.Queue)
	if err != nil {
		return nil, err
	}
	change := queueChange(c, a.TaskType, a.Queue, "Pin %s", Change{
		Says: []string{pinQueue.Effect},
	}, "pinned to "+a.Labels, func(ctx context.Context, actor string) error {
		return c.Roster().Operator(actor).PinQueue(ctx, a.TaskType, a.Queue, a.Labels)
	})
	if q.Pin != "" {
		change.Says = append(change.Says, "It is pinned to "+q.Pin+" now.")
	}
	return change, cmp.Or(given("the labels", a.Labels), roster.CheckPin(a.Labels))
}

// SetQueue gives a queue limits of its own.
type SetQueue struct {
	TaskType    string `arg:"TASK" of:"task" json:"-"`
	Queue       string `arg:"QUEUE" of:"queue" json:"queue_id"`
	Rate        string `flag:"rate-per-second" json:"rate_per_second" help:"most items in a second instead of queue_rate_per_second; 0: no limit; default: as the task type"`
	MaxInFlight string `flag:"max-in-flight" json:"max_in_flight" help:"most calls of Execute in flight instead of queue_max_in_flight; 0: no limit; default: as the task type"`
	Weight      string `flag:"weight" json:"weight" help:"calls of Execute that it may start when it is its turn among the queues of a worker, up to 1000; default: 1"`
}

var setQueue = verb[SetQueue](Verb{
	Name: "queue set", Right: RightChange,
	Short:  "Give a queue limits of its own",
	Effect: "Its owner adopts them with its next heartbeat. What is left out stays as it is.",
	Help: `The queues of a worker take turns, and each starts one call of Execute in its
turn, or as many as its weight. All other queues have the limits of the task
type: queue_rate_per_second and queue_max_in_flight.`,
	Example: `  rota queue set regions west --rate-per-second 50 --max-in-flight 2
  rota queue set regions west --weight 3
  rota queue set regions west --max-in-flight default`,
})

// Prepare implements Operation.
func (a SetQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	q, err := readQueue(ctx, c, a.TaskType, a.Queue)
	if err != nil {
		return nil, err
	}
	limits := q.QueueLimits
	err = a.change(&limits)
	if err == nil && a.Rate+a.MaxInFlight+a.Weight == "" {
		err = missing("a limit")
	}
	return queueChange(c, a.TaskType, a.Queue, "Set the limits of %s", Change{
		Says: []string{setQueue.Effect, "It has " + q.Limits() + " now."},
	}, "given "+limits.Limits(), func(ctx context.Context, actor string) error {
		return c.Roster().Operator(actor).SetQueue(ctx, a.TaskType, a.Queue, a.change)
	}), err
}

// change sets the limits that are named.
func (a SetQueue) change(limits *roster.QueueLimits) error {
	return errors.Join(
		setLimit(&limits.RatePerSecond, "rate_per_second", a.Rate, 0, 1e9),
		setLimit(&limits.MaxInFlight, "max_in_flight", a.MaxInFlight, 0, 1_000_000),
		setLimit(&limits.Weight, "weight", a.Weight, 1, 1000))
}

// setLimit sets a limit to what text says, if it says something.
func setLimit[T int | float64](limit **T, name, text string, least, most T) error {
	switch text {
	case "":
		return nil
	case "default":
		*limit = nil
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	value := T(n)
	if err != nil || float64(value) != n || value < least || value > most {
		return fmt.Errorf("%s (%s) must be %s, or default", name, text, rangeOf(least, most))
	}
	*limit = &value
	return nil
}

func rangeOf[T int | float64](least, most T) string {
	if _, whole := any(least).(int); whole {
		return fmt.Sprintf("a whole number between %v and %v", least, most)
	}
	return fmt.Sprintf("between %v and %.0f", least, float64(most))
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
func (a UnpinQueue) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	if _, err := readQueue(ctx, c, a.TaskType, a.Queue); err != nil {
		return nil, err
	}
	return queueChange(c, a.TaskType, a.Queue, "Unpin %s", Change{
		Says: []string{unpinQueue.Effect},
	}, "not pinned any more", func(ctx context.Context, actor string) error {
		return c.Roster().Operator(actor).PinQueue(ctx, a.TaskType, a.Queue, "")
	}), nil
}

// queueChange completes a change of one queue.
func queueChange(
	c *ops.Client, taskType, queue, title string, change Change, past string,
	do func(context.Context, string) error,
) *Change {
	change.Title = fmt.Sprintf(title, "queue "+queue+" of "+taskType)
	change.TaskTypes = []string{taskType}
	change.Objects = []Object{{Name: "queue " + queue + " of " + inEnvironment(c, taskType), Past: past, do: done(do)}}
	return &change
}

// readQueue returns a queue, or an error if the task type has none of that name.
func readQueue(ctx context.Context, c *ops.Client, taskType, queue string) (ops.QueueRecord, error) {
	if _, err := readTask(ctx, c, taskType); err != nil {
		return ops.QueueRecord{}, err
	}
	if err := given("the queue", queue); err != nil {
		return ops.QueueRecord{}, err
	}
	list, err := c.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
	if err != nil {
		return ops.QueueRecord{}, err
	}
	for _, q := range list {
		if q.QueueID == queue {
			return q, nil
		}
	}
	return ops.QueueRecord{}, fmt.Errorf("find queue %q of %s: %w", queue, inEnvironment(c, taskType), ErrUnknownQueue)
}

// requireNames returns an error if the queues of a task type have numbers, with the command that changes these.
func requireNames(ctx context.Context, c *ops.Client, taskType string) error {
	t, err := readTask(ctx, c, taskType)
	if err != nil {
		return err
	}
	s, err := c.Tasks().Settings(ctx, taskType)
	if err == nil && len(s.QueueNames) == 0 && t.QueueTotal > 0 {
		err = fmt.Errorf("%s: %w: %s", inEnvironment(c, taskType), center.ErrNumbered,
			c.SetCommand(taskType, fmt.Sprintf("queues=%d", t.QueueTotal+1)))
	}
	return err
}
