package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

// ItemChoice says which failed items of a task type a verb changes: those of the keys, or all that match.
type ItemChoice struct {
	TaskType string   `arg:"TASK" of:"task" json:"-"`
	Keys     []string `arg:"[ITEM...]" form:"key" of:"item" json:"-"`
	All      bool     `flag:"all" of:"choice" json:"-" help:"all failed items, or those that the other flags choose"`
	Queue    string   `flag:"queue" of:"queue" json:"-" help:"with --all: only items of this queue"`
	OrderKey string   `flag:"order-key" of:"choice" json:"-" help:"with --all: only items with this order key"`
	State    string   `flag:"state" of:"choice" choices:"RETRY STARTED DEAD" json:"-" help:"with --all: only items in this state"`
	Error    string   `flag:"error" of:"choice" json:"-" help:"with --all: only items with this error, as the console shows it: with … for figures and quoted texts"`
	Text     string   `flag:"match" of:"choice" json:"-" help:"with --all: only items whose key, order key or error contains this text"`

	// How far an earlier call has come, if it was stopped.
	After    string `form:"after" of:"choice" json:"-"`
	Examined int    `form:"examined" of:"choice" json:"-"`
	Changed  int    `form:"changed" of:"choice" json:"-"`
}

// RetryItems makes failed items due at once.
type RetryItems struct{ ItemChoice }

var retryItems = verb[RetryItems](Verb{
	Name: "item retry", Right: RightOperate,
	Short:  "Retry failed items at once, dead items included",
	Effect: "They are executed at once, and begin with zero attempts.",
	Example: `  rota item retry settle 4711 4712
  rota item retry settle --all
  rota item retry settle --all --state DEAD --error "account … is closed"`,
})

// Prepare implements Operation.
func (a RetryItems) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	change, err := itemVerb{
		Verb: retryItems, past: "retried", do: c.Items().Retry,
		rest: func(left ItemChoice) Operation { return RetryItems{left} },
	}.prepare(ctx, c, a.ItemChoice)
	if err != nil {
		return nil, err
	}
	s, err := c.Tasks().Settings(ctx, a.TaskType)
	if err == nil && s.OnDead == center.OnDeadPass {
		change.Says = append(change.Says, "on_dead is PASS: a dead item with an order key is executed out of order, because "+
			"items behind it have gone on.")
	}
	return change, err
}

// DropItems deletes the records of failed items.
type DropItems struct{ ItemChoice }

var dropItems = verb[DropItems](Verb{
	Name: "item drop", Right: RightChange,
	Short:  "Delete the records of failed items",
	Effect: "The items stay. An item that a select still returns is executed again as if it had never failed.",
	Help:   `Use it after the items were repaired or removed by hand.`,
	Example: `  rota item drop settle 4711 4712
  rota item drop settle --all --queue 3 --yes`,
})

// Prepare implements Operation.
func (a DropItems) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	change, err := itemVerb{
		Verb: dropItems, past: "forgotten", do: c.Items().Drop,
		note: "An item that a select still returns is executed again as if it had never failed.",
		rest: func(left ItemChoice) Operation { return DropItems{left} },
	}.prepare(ctx, c, a.ItemChoice)
	if err == nil {
		change.Loses = "delete the records of " + change.Objects[0].Name
	}
	return change, err
}

// itemVerb is what the verbs about failed items do not share.
type itemVerb struct {
	*Verb
	past string
	note string // what people should know when it is done; may be empty
	do   func(ctx context.Context, taskType, actor string, keys ...string) (int, error)
	rest func(left ItemChoice) Operation
}

func (v itemVerb) prepare(ctx context.Context, c *ops.Client, a ItemChoice) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	switch filtered := a.Queue+a.OrderKey+a.State+a.Error+a.Text != ""; {
	case err != nil:
	case a.All == (len(a.Keys) > 0):
		err = ErrChoice
	case filtered && !a.All:
		err = fmt.Errorf("%w: queue, order-key, state, error and match choose among all", ErrChoice)
	}
	if err != nil {
		return nil, err
	}
	a.Keys, a.State = slices.Compact(slices.Sorted(slices.Values(a.Keys))), strings.ToUpper(a.State)
	change := &Change{TaskTypes: []string{t.TaskType}, Says: []string{v.Effect}}
	items := a.allOf(inEnvironment(c, t.TaskType))
	if a.All {
		all := human.Count(t.DeadItems+t.RetryItems, "failed item", "failed items")
		change.Says = append(change.Says, fmt.Sprintf("%s has %s now.", t.TaskType, all))
	} else {
		found, err := failures.Of(c.Roster()).Find(ctx, t.TaskType, a.Keys)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: %w: %s", inEnvironment(c, t.TaskType), ErrUnknownItem, strings.Join(a.Keys, ", "))
		}
		items = human.Count(len(found), "failed item", "failed items") + " of " + inEnvironment(c, t.TaskType)
	}
	change.Title = v.Button() + " " + items
	change.Objects = []Object{{Name: items, Past: v.past, do: func(ctx context.Context, actor string) (Done, error) {
		done, err := v.change(ctx, c, a, t, change.step, actor)
		if err == nil && done.some && done.Rest == nil {
			done.Note = v.note
		}
		return done, err
	}}}
	return change, nil
}

// change changes the items of the keys, or all that match.
func (v itemVerb) change(
	ctx context.Context, c *ops.Client, a ItemChoice, t ops.TaskRecord, step func(Done) bool, actor string,
) (Done, error) {
	if a.All {
		return v.changeAll(ctx, c, a, a.countedIn(t), step, actor)
	}
	n, err := v.do(ctx, a.TaskType, actor, a.Keys...)
	done := v.done(c, a, n)
	if err == nil && n < len(a.Keys) {
		return Done{}, fmt.Errorf("%s: no failed item has %d of the %d keys; %s",
			done.Object, len(a.Keys)-n, len(a.Keys), done.Text)
	}
	return done, err
}

// countedIn returns about how many items changeAll examines; 0 if the counts of the task type do not tell.
func (a ItemChoice) countedIn(t ops.TaskRecord) int64 {
	switch {
	case a.Queue != "" || a.OrderKey != "":
		return 0
	case a.State == "":
		return t.DeadItems + t.RetryItems
	case a.State == ops.ItemDead:
		return t.DeadItems
	}
	return 0
}

// changeAll changes all items that match, page by page. It stops between two pages if the step says so.
func (v itemVerb) changeAll(
	ctx context.Context, c *ops.Client, a ItemChoice, total int64, step func(Done) bool, actor string,
) (Done, error) {
	filter := ops.ItemFilter{TaskType: a.TaskType, QueueID: a.Queue, State: a.State, OrderKey: a.OrderKey}
	for {
		page, next, err := c.Items().Page(ctx, filter, a.After)
		var keys []string
		for _, i := range page {
			if a.Matches(i) {
				keys = append(keys, i.ItemKey)
			}
		}
		n := 0
		if err == nil && len(keys) > 0 {
			n, err = v.do(ctx, a.TaskType, actor, keys...)
		}
		a.Changed += n
		done := v.done(c, a, a.Changed)
		if err == nil && next == "" {
			return done, nil
		}
		if err == nil {
			a.Examined, a.After = a.Examined+len(page), next
		}
		done.Rest = v.rest(a)
		if err != nil {
			return done, err
		}
		done.Text += fmt.Sprintf(" so far; %d examined", a.Examined)
		done.Step, done.Steps = int64(a.Examined), total
		if step(done) {
			return done, nil
		}
	}
}

// done says how many items were changed.
func (v itemVerb) done(c *ops.Client, a ItemChoice, n int) Done {
	return Done{
		Object: inEnvironment(c, a.TaskType), Text: human.Count(n, "failed item", "failed items") + " " + v.past,
		Record: records.Object{records.M("items", n)}, some: n > 0,
	}
}

// allOf names the items that are chosen by what they have in common.
func (a ItemChoice) allOf(name string) string {
	text := "all "
	if a.State != "" {
		text += strings.ToLower(a.State) + " "
	}
	text += "failed items of " + name
	if a.Queue != "" {
		text += ", queue " + a.Queue
	}
	if a.OrderKey != "" {
		text += ", order key " + a.OrderKey
	}
	if a.Error != "" {
		text += fmt.Sprintf(" with the error %q", a.Error)
	}
	if a.Text != "" {
		text += fmt.Sprintf(" that contain %q", a.Text)
	}
	return text
}

// Matches reports whether the keys and the error of an item are such as the choice says.
func (a ItemChoice) Matches(i ops.ItemRecord) bool {
	return (a.Error == "" || ops.ErrorKind(i.LastError) == a.Error) &&
		(strings.Contains(i.ItemKey, a.Text) || strings.Contains(i.OrderKey, a.Text) || strings.Contains(i.LastError, a.Text))
}
