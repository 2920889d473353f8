package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
)

// itemVerb is Retry or Drop of failed items.
type itemVerb struct {
	title, done, says string
	danger            bool
	do                func(it *center.Items, ctx context.Context, taskType, actor string, keys ...string) (int, error)
}

var (
	retryItems = itemVerb{
		title: "Retry", done: "retried", do: (*center.Items).Retry,
		says: "They are executed at once, dead items included, and begin with zero attempts.",
	}
	dropItems = itemVerb{
		title: "Drop", done: "dropped", do: (*center.Items).Drop, danger: true,
		says: "This deletes the records of the failures, and not the items. An item that a select still returns is executed again as if it had never failed.",
	}
)

func prepareItemsRetry(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareItems(ctx, v, form, retryItems)
}

func prepareItemsDrop(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareItems(ctx, v, form, dropItems)
}

// prepareItems is a change of failed items: of the chosen ones (key), or of all that match.
func prepareItems(ctx context.Context, v *view, form url.Values, verb itemVerb) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	c := &change{Button: verb.title, Danger: verb.danger, TaskTypes: []string{t.TaskType}, Back: address("items", "task", t.TaskType), Says: []string{verb.says}}
	c.hide("task", t.TaskType)
	if keys := form["key"]; len(keys) > 0 {
		c.Title = fmt.Sprintf("%s %s of %s", verb.title, plural(len(keys), "failed item", "failed items"), t.TaskType)
		c.hide("key", keys...)
		c.do = func(ctx context.Context, actor string) (string, error) {
			n, err := verb.do(v.center.Items(), ctx, t.TaskType, actor, keys...)
			text := fmt.Sprintf("%s of %s %s", plural(n, "failed item", "failed items"), t.TaskType, verb.done)
			if err != nil && n == 0 {
				return "", err
			}
			if err == nil && n < len(keys) {
				text += fmt.Sprintf("; %s meanwhile", plural(len(keys)-n, "other has gone", "others have gone"))
			}
			return text, err
		}
		return c, nil
	}
	if form.Get("all") != "yes" {
		return nil, errors.New("choose the items first")
	}
	sweep, err := newItemSweep(form, t.TaskType)
	if err != nil {
		return nil, err
	}
	c.Title = fmt.Sprintf("%s %s", verb.title, sweep)
	c.Says = append(c.Says, fmt.Sprintf("%s has %s now.", t.TaskType, plural(t.DeadItems+t.RetryItems, "failed item", "failed items")))
	sweep.hide(c)
	c.do = func(ctx context.Context, actor string) (string, error) { return sweep.step(ctx, v, c, verb, actor) }
	return c, nil
}

// itemSweep is a change of all failed items that match. A request changes some pages of them, and hands on to the next
// request how far it is: to close the page ends it, and nothing goes on behind the people's backs.
type itemSweep struct {
	filter            center.ItemFilter
	kind, query       string
	after             string
	examined, changed int
}

// A request examines at most pagesPerRequest pages of failed items, of 1,000 items each, and begins no other after
// sweepLimit: it must end before changeLimit.
const (
	pagesPerRequest = 10
	sweepLimit      = changeLimit / 4
)

func newItemSweep(form url.Values, taskType string) (s itemSweep, err error) {
	s = itemSweep{
		filter: center.ItemFilter{TaskType: taskType, QueueID: form.Get("queue"), State: strings.ToUpper(form.Get("state"))},
		kind:   form.Get("kind"), query: form.Get("q"), after: form.Get("after"),
	}
	if s.after == "" {
		return s, nil
	}
	var errs [2]error
	s.examined, errs[0] = strconv.Atoi(form.Get("examined"))
	s.changed, errs[1] = strconv.Atoi(form.Get("changed"))
	return s, errors.Join(errs[:]...)
}

// String names the items.
func (s itemSweep) String() string {
	text := "all "
	if s.filter.State != "" {
		text += strings.ToLower(s.filter.State) + " "
	}
	text += "failed items of " + s.filter.TaskType
	if s.filter.QueueID != "" {
		text += ", queue " + s.filter.QueueID
	}
	if s.kind != "" {
		text += fmt.Sprintf(" with the error %q", s.kind)
	}
	if s.query != "" {
		text += fmt.Sprintf(" that contain %q", s.query)
	}
	return text
}

func (s itemSweep) hide(c *change) {
	c.hide("all", "yes")
	c.hide("queue", s.filter.QueueID)
	c.hide("state", s.filter.State)
	c.hide("kind", s.kind)
	c.hide("q", s.query)
	if s.after != "" {
		c.hide("after", s.after)
		c.hide("examined", strconv.Itoa(s.examined))
		c.hide("changed", strconv.Itoa(s.changed))
	}
}

// matches reports whether an item is meant.
func (s itemSweep) matches(i center.ItemRecord) bool {
	return (s.kind == "" || kindOf(i.LastError) == s.kind) && matchesItem(i, s.query)
}

// step changes the items of some pages.
func (s itemSweep) step(ctx context.Context, v *view, c *change, verb itemVerb, actor string) (string, error) {
	begin := time.Now()
	for pages := 1; ; pages++ {
		page, next, err := v.center.Items().Page(ctx, s.filter, s.after)
		if err != nil {
			return s.before(verb), err
		}
		var keys []string
		for _, i := range page {
			if s.matches(i) {
				keys = append(keys, i.ItemKey)
			}
		}
		if len(keys) > 0 {
			n, err := verb.do(v.center.Items(), ctx, s.filter.TaskType, actor, keys...)
			s.changed += n
			if err != nil {
				return s.before(verb), err
			}
		}
		s.examined, s.after = s.examined+len(page), next
		c.Hidden = []formValue{{"task", s.filter.TaskType}} // an error goes on from here
		s.hide(c)
		if next == "" {
			return s.text(verb), nil
		}
		if pages == pagesPerRequest || time.Since(begin) > sweepLimit {
			c.Again = true
			return fmt.Sprintf("%s so far; %s examined", s.text(verb), number(s.examined)), nil
		}
	}
}

// before returns what was done before an error; nothing if that is nothing.
func (s itemSweep) before(verb itemVerb) string {
	if s.changed == 0 {
		return ""
	}
	return s.text(verb)
}

func (s itemSweep) text(verb itemVerb) string {
	return fmt.Sprintf("%s of %s %s", plural(s.changed, "failed item", "failed items"), s.filter.TaskType, verb.done)
}
