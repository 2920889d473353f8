package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/ops"
)

// itemsPage is the page of failed items.
type itemsPage struct {
	Task, State, Queue string
	Query              string
	Choose             bool // the viewer may choose items: those of one task type, to which they have the right
	Groups             []itemGroup
	Items              []ops.ItemRecord
	Tasks              []ops.TaskRecord
	Full               bool // older items are not read
	Pages              paging
}

// States returns the states that the list can be limited to.
func (p itemsPage) States() []string {
	return []string{ops.ItemDead, ops.ItemRetry, ops.ItemStarted}
}

// All returns the address of an action for all items that match.
func (p itemsPage) All(action string) template.URL { return p.OfKind(action, p.Task, "") }

// OfKind returns the address of an action for all items of a task type that match and have a kind of error, or any.
func (p itemsPage) OfKind(action, task, kind string) template.URL {
	return link(action, "task", task, "all", "true", "queue", p.Queue, "state", p.State, "match", p.Query, "error", kind)
}

// itemID returns an id for an item in a page. Keys may have any characters.
func itemID(i ops.ItemRecord) string {
	sum := sha256.Sum256([]byte(i.TaskType + "\x00" + i.ItemKey))
	return hex.EncodeToString(sum[:8])
}

// itemGroup is the items with one kind of error.
type itemGroup struct {
	Kind, Task  string
	Dead, Retry int
	Example     ops.ItemRecord
}

// maxItems is how many failed items a page reads.
const maxItems = 1_000

// itemsOf returns the latest failed items, the latest first.
func (v *viewer) itemsOf(ctx context.Context, f ops.ItemFilter, limit int) []ops.ItemRecord {
	return latest[ops.ItemRecord]{
		key:      strings.Join([]string{"items", f.QueueID, f.State, f.Text, number(limit)}, "\x00"),
		taskType: f.TaskType, limit: limit, taskTypeOf: func(i ops.ItemRecord) string { return i.TaskType },
		compare: func(a, b ops.ItemRecord) int {
			return cmp.Or(b.FirstFailedAt.Compare(a.FirstFailedAt), cmp.Compare(b.ItemKey, a.ItemKey))
		},
		query: func(ctx context.Context, taskType string) ([]ops.ItemRecord, error) {
			f := f // the query may run beside that of another task type
			f.TaskType = taskType
			items, err := v.client.Items().List(ctx, f, limit)
			slices.Reverse(items)
			return items, err
		},
	}.load(ctx, v)
}

// showItems returns the page of failed items.
func showItems(ctx context.Context, v *viewer, query url.Values) content {
	p := itemsPage{
		Task: query.Get("task"), State: strings.ToUpper(query.Get("state")), Queue: query.Get("queue"),
		Query: query.Get("q"), Pages: pageOf(query), Tasks: v.tasks(ctx),
	}
	p.Choose = p.Task != "" && v.Actor.may(Operate, p.Task)
	matching := v.itemsOf(ctx, ops.ItemFilter{TaskType: p.Task, QueueID: p.Queue, State: p.State, Text: p.Query}, maxItems)
	if !v.knows("items") {
		return content{Title: "Failed items"}
	}
	p.Full = len(matching) == maxItems
	p.Groups = groupErrors(matching)
	p.Items = cutPage(&p.Pages, matching, false)
	return content{"Failed items", p, matching}
}

// groupErrors groups items by task type and kind of error, the largest group first.
func groupErrors(items []ops.ItemRecord) (groups []itemGroup) {
	index := map[[2]string]int{}
	for _, i := range items {
		key := [2]string{i.TaskType, ops.ErrorKind(i.LastError)}
		n, ok := index[key]
		if !ok {
			n = len(groups)
			index[key] = n
			groups = append(groups, itemGroup{Kind: key[1], Task: i.TaskType, Example: i})
		}
		if i.State == ops.ItemDead {
			groups[n].Dead++
		} else {
			groups[n].Retry++
		}
	}
	slices.SortStableFunc(groups, func(a, b itemGroup) int {
		return cmp.Or(cmp.Compare(b.Dead, a.Dead), cmp.Compare(b.Retry, a.Retry))
	})
	return groups
}
