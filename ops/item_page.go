package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/sqldb"
)

// itemsPerPage is how many failed items a page has at most.
const itemsPerPage = 1_000

// Page returns the failed items of a task type that the filter selects, at most 1,000, behind the position that the page
// before has returned. The position before the first page is empty, and next is empty after the last one. The order has no
// meaning. A caller may change the items of a page before it asks for the next one. An item that fails for the first time
// meanwhile may be left out.
func (it *Items) Page(ctx context.Context, f ItemFilter, after string) (page []ItemRecord, next string, err error) {
	if f.TaskType == "" {
		return nil, "", errors.New("read a page of failed items: the filter needs a task type")
	}
	w := sqldb.Where{Args: []any{f.TaskType, it.c.ownSign, after}}
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	page, err = sqldb.Records[ItemRecord](ctx, it.c.db, fmt.Sprintf(`SELECT {columns} FROM schedule_failed_item
		WHERE task_type = ? AND own_sign = ? AND item_hash > ?%s ORDER BY item_hash LIMIT %d`, w.Text, itemsPerPage), w.Args...)
	if err != nil {
		return nil, "", fmt.Errorf("read a page of failed items of %s: %w", f.TaskType, err)
	}
	if len(page) == itemsPerPage {
		next = failures.Hash(page[len(page)-1].ItemKey)
	}
	return page, next, nil
}
