package roster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Items says which items of its task type a queue has: a numbered queue those with mod(id, Total) = Index, and a named
// queue, whose Total is 0, those of its name. Another number of queues begins a new Division, in which an item may
// belong to any queue (N1). A queue that is split or merged stays in its division (N3).
type Items struct {
	Division     string
	Index, Total int
}

// String describes the items for people.
func (i Items) String() string {
	if i.Total < 1 {
		return "those of its name"
	}
	return fmt.Sprintf("%d of %d", i.Index, i.Total)
}

// newDivision returns the id of a new division. It is random, because two branches of one history may each begin one
// (H8).
func newDivision() string { return rand.Text() }

// mayShare reports whether two queues may have an item in common.
func (i Items) mayShare(other Items) bool {
	switch {
	case i.Division != other.Division:
		return true
	case i.Total < 1 || other.Total < 1:
		return i.Total != other.Total
	}
	return (i.Index-other.Index)%divisor(i.Total, other.Total) == 0
}

// divisor returns the greatest common divisor of two positive numbers.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// AheadError means that a data database does not let a server raise its epoch of a queue, because it has fenced the
// items of the queue under another one: a higher one, or the same one for another server or for other items (F11).
type AheadError struct {
	Queue QueueEpoch
	By    string // the queue under whose row the items are fenced; mostly Queue itself
	Found Ownership
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("items of queue %s are fenced as those of queue %s at %s, which is ahead of epoch %d", e.Queue.ID,
		e.By, e.Found, e.Queue.Epoch)
}

// ErrDataCursors means that the items are divided in another way than before, and cursors are left that belong to the
// earlier division.
var ErrDataCursors = errors.New("the items are divided among the queues in another way than before, and rota_fence " +
	"has cursors, which belong to the earlier division: set cursor_value to '' there, and each source is read from " +
	"its beginning")

// HeldError means that fenced transactions have not ended. It hides the error of the database, so that Raise and End do
// not wait again: their callers have other queues to work.
type HeldError struct{ why string }

func (e *HeldError) Error() string { return "fenced transactions of the queue are open: " + e.why }

// held returns a HeldError if a statement has waited in vain for a row.
func (f Fence) held(err error) error {
	if c := f.DB.Class(err); c == sqldb.RolledBack || c == sqldb.Held {
		return &HeldError{err.Error()}
	}
	return err
}

// Raise makes a data database reject all epochs of a queue below the one under which the server owns it (F11), and the
// epochs of all other queues that may have items of it. It waits for the fenced transactions of these epochs, for about
// a second, and then returns a HeldError. It returns an AheadError if the database has fenced the items under an epoch
// that is not below, and ErrDataCursors if they have the cursor of another division.
func (f Fence) Raise(ctx context.Context, q QueueEpoch, items Items) error {
	r := raise{f, q, items}
	err := f.DB.Transact(ctx, f.DB.Store, func(ctx context.Context, t sqldb.Tx) error {
		done, err := r.sameItems(ctx, t)
		if err != nil || done {
			return err
		}
		return r.newItems(ctx, t)
	})
	return sqldb.Wrap(err, "raise the epoch of queue %s of %s$%s to %d", q.ID, f.TaskType, f.OwnSign, q.Epoch)
}

// raise is one raise of an epoch. No two rows of a task type with a division may share items: so a queue whose row has
// the items of the raise needs to look at no other row. Only a raise that changes the items of rows does (newItems).
type raise struct {
	Fence
	queue QueueEpoch
	items Items
}

// fenced is a row of rota_fence.
type fenced struct {
	ID        string
	HasCursor bool
	Divided   bool
	Ownership
}

const fencedColumns = `queue_id, CASE WHEN cursor_value <> '' THEN 1 ELSE 0 END,
	CASE WHEN division IS NULL THEN 0 ELSE 1 END, cur_server, epoch, division, queue_index, queue_total`

// sameItems raises the epoch if the row of the queue has its items already. It reports false if the row is missing, or
// has other items under a lower epoch. A named queue that was removed and added again has the same items under another
// index.
func (r raise) sameItems(ctx context.Context, t sqldb.Tx) (done bool, err error) {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET cur_server = ?, epoch = ?, queue_index = ?, raised_at = {now},
		gmt_modified = {now} WHERE `+ofTask+` AND queue_id = ? AND epoch < ? AND division = ? AND queue_total = ?
		AND (queue_index = ? OR queue_total = 0)`,
		r.Server, r.queue.Epoch, r.items.Index, r.TaskType, r.OwnSign, r.queue.ID, r.queue.Epoch,
		r.items.Division, r.items.Total, r.items.Index)
	if err != nil || n == 1 {
		return n == 1, r.held(err)
	}
	row, there, err := sqldb.Record[fenced](ctx, t, `SELECT `+fencedColumns+` FROM rota_fence
		WHERE `+ofTask+` AND queue_id = ?`, r.TaskType, r.OwnSign, r.queue.ID)
	switch {
	case err != nil || !there:
		return false, err
	case row.Ownership == Ownership{r.Server, r.queue.Epoch, r.items}:
		return true, nil
	}
	return false, r.mustBeBelow(row)
}

// mustBeBelow returns an AheadError unless a row has a lower epoch than the raise.
func (r raise) mustBeBelow(row fenced) error {
	if row.Epoch < r.queue.Epoch {
		return nil
	}
	if !row.Divided {
		row.Items = Items{}
	}
	return &AheadError{r.queue, row.ID, row.Ownership}
}

// newItems gives the queue its items in this database, and takes them from the rows that have them. These keep their
// epochs, so that no server raises one of these again, and have no owner and no items any more.
//
// Another raise may do the same at once for a row that this one does not see yet. So the last of the locks is that of
// the row without a queue: the raise that gets it later looks again. A raise holds it for two round trips only, because
// it waits for nothing more.
func (r raise) newItems(ctx context.Context, t sqldb.Tx) error {
	rows, err := r.sharing(ctx, t)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		highest := slices.MaxFunc(rows, func(a, b fenced) int { return cmp.Compare(a.Epoch, b.Epoch) })
		if err := r.mustBeBelow(highest); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(rows, func(row fenced) bool { return row.HasCursor }) {
		return ErrDataCursors
	}
	if err := r.take(ctx, t, rows); err != nil {
		return err
	}
	if err := r.write(ctx, t); err != nil {
		return err
	}
	if err := r.lockItems(ctx, t); err != nil {
		return err
	}
	if rows, err = r.sharing(ctx, t); err == nil && len(rows) > 0 {
		err = sqldb.ErrRaced
	}
	return err
}

// sharing returns the rows that may have items of the queue: its own row, if that has other items, and those of other
// queues.
func (r raise) sharing(ctx context.Context, t sqldb.Tx) ([]fenced, error) {
	rows, err := sqldb.Records[fenced](ctx, t, `SELECT `+fencedColumns+` FROM rota_fence
		WHERE `+ofTask+` AND (division <> ? OR division = ? AND (queue_total <> ? OR queue_index = ?))
		ORDER BY queue_id`, r.TaskType, r.OwnSign, r.items.Division, r.items.Division, r.items.Total, r.items.Index)
	return slices.DeleteFunc(rows, func(row fenced) bool {
		if row.ID == r.queue.ID {
			return row.Items == r.items
		}
		return !row.mayShare(r.items)
	}), err
}

// take takes the items from rows. It waits for their fenced transactions, in one order for all raises.
func (r raise) take(ctx context.Context, t sqldb.Tx, rows []fenced) error {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	n, err := t.ExecIn(ctx, ids, `UPDATE rota_fence SET cur_server = '', division = NULL, gmt_modified = {now}
		WHERE `+ofTask+` AND epoch < ? AND cursor_value = '' AND queue_id IN ({ids})`,
		r.TaskType, r.OwnSign, r.queue.Epoch)
	if err == nil && n != len(rows) {
		return sqldb.ErrRaced
	}
	return r.held(err)
}

// write writes the row of the queue, which has no items.
func (r raise) write(ctx context.Context, t sqldb.Tx) error {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET cur_server = ?, epoch = ?, division = ?, queue_index = ?, queue_total = ?,
		raised_at = {now}, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ? AND epoch < ? AND division IS NULL`,
		r.Server, r.queue.Epoch, r.items.Division, r.items.Index, r.items.Total, r.TaskType, r.OwnSign, r.queue.ID,
		r.queue.Epoch)
	if err != nil || n == 1 {
		return r.held(err)
	}
	return r.insert(ctx, t, r.queue, r.Server, r.items.Division)
}

// lockItems locks the row without a queue until the commit.
func (r raise) lockItems(ctx context.Context, t sqldb.Tx) error {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET gmt_modified = {now} WHERE `+ofTask+` AND queue_id = ''`, r.TaskType,
		r.OwnSign)
	if err != nil || n == 1 {
		return err
	}
	return raise{Fence: r.Fence}.insert(ctx, t, QueueEpoch{}, "", nil)
}

// insert inserts a row. If another server has just done so, the transaction begins again.
func (r raise) insert(ctx context.Context, t sqldb.Tx, q QueueEpoch, server string, division any) error {
	_, err := t.Exec(ctx, `INSERT INTO rota_fence (task_type, own_sign, queue_id, cur_server, epoch, division,
		queue_index, queue_total, cursor_value, raised_at, gmt_modified) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', {now}, {now})`,
		r.TaskType, r.OwnSign, q.ID, server, q.Epoch, division, r.items.Index, r.items.Total)
	if r.DB.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced
	}
	return err
}
