package console

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// itemsPage is the page of failed items.
type itemsPage struct {
	Task, State, Query string
	Groups             []ItemGroup
	Items              []center.ItemRecord
	Tasks              []center.TaskRecord
	Full               bool // older items are not shown
}

// ItemGroup is the items with one kind of error.
type ItemGroup struct {
	Kind, Task  string
	Dead, Retry int
	Example     center.ItemRecord
}

// maxItems is how many failed items a page reads.
const maxItems = 1_000

// itemsOf returns the latest failed items, the latest first.
func (v *view) itemsOf(ctx context.Context, f center.ItemFilter, limit int) ([]center.ItemRecord, error) {
	key := strings.Join([]string{"items", f.TaskType, f.QueueID, f.State, number(limit)}, "\x00")
	return load(ctx, v, key, func(ctx context.Context) ([]center.ItemRecord, error) {
		items, err := v.center.Items().List(ctx, f, limit)
		slices.Reverse(items)
		return items, err
	})
}

// items makes the page of failed items.
func (v *view) items(ctx context.Context) error {
	p := itemsPage{Task: v.param("task"), State: strings.ToUpper(v.param("state")), Query: v.param("q")}
	var err error
	if p.Tasks, err = v.tasks(ctx); err != nil {
		return err
	}
	all, err := v.itemsOf(ctx, center.ItemFilter{TaskType: p.Task, QueueID: v.param("queue"), State: p.State}, maxItems)
	if err != nil {
		return err
	}
	p.Full = len(all) == maxItems
	for _, i := range all {
		if p.Query == "" || strings.Contains(i.ItemKey, p.Query) || strings.Contains(i.LastError, p.Query) {
			p.Items = append(p.Items, i)
		}
	}
	p.Groups = groupErrors(p.Items)
	v.Title, v.Records = "Failed items", p.Items
	p.Items = p.Items[:min(len(p.Items), rowsPerPage)]
	v.Data = p
	return nil
}

// varying are the parts of an error in which errors of one kind differ: quoted texts and figures.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9]+`)

// kindOf returns the first line of an error with its varying parts replaced.
func kindOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return varying.ReplaceAllString(line, "…")
}

// groupErrors groups items by task type and kind of error, the largest group first.
func groupErrors(items []center.ItemRecord) (groups []ItemGroup) {
	index := map[[2]string]int{}
	for _, i := range items {
		key := [2]string{i.TaskType, kindOf(i.LastError)}
		n, ok := index[key]
		if !ok {
			n = len(groups)
			index[key] = n
			groups = append(groups, ItemGroup{Kind: key[1], Task: i.TaskType, Example: i})
		}
		if i.State == center.ItemDead {
			groups[n].Dead++
		} else {
			groups[n].Retry++
		}
	}
	slices.SortStableFunc(groups, func(a, b ItemGroup) int {
		return cmp.Or(cmp.Compare(b.Dead, a.Dead), cmp.Compare(b.Retry, a.Retry))
	})
	return groups
}
