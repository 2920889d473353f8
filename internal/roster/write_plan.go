package roster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// changeRow is a plan.Change in the JSON that the writing statement reads.
type changeRow struct {
	ID       string  `json:"id"`
	OldCur   *string `json:"old_cur"`
	OldEpoch int64   `json:"old_epoch"`
	Cur      *string `json:"cur"`
	Req      *string `json:"req"`
	Bump     int     `json:"bump"`
	Plan     int64   `json:"plan"` // plan_version: the version of the plan that has the change
}

func newChangeRow(c plan.Change, version int64) changeRow {
	row := changeRow{ID: c.QueueID, OldEpoch: c.OldEpoch, Plan: version}
	for _, f := range []struct {
		to   **string
		from string
	}{{&row.OldCur, c.OldOwner}, {&row.Cur, c.Owner}, {&row.Req, c.Requester}} {
		if f.from != "" {
			*f.to = &f.from
		}
	}
	if c.ChangesOwner() {
		row.Bump = 1
	}
	return row
}

// changesPerStatement is how many changes go into one statement, as one parameter.
const changesPerStatement = 2_000

// writePlan writes the changes of the rows that no other transaction holds. It returns them, and the changes that it
// skipped. If a stalled fenced transaction holds the row of a change, the change waits for the next plan and delays
// no other change (L5). Each change is a compare-and-set; if one fails, the transaction is rolled back and everything
// is planned anew (L4).
func writePlan(ctx context.Context, l *LockTx, changes []plan.Change) (written, skipped []plan.Change, err error) {
	written, skipped, err = lockFreeRows(ctx, l, changes)
	if err != nil {
		return nil, nil, err
	}
	return written, skipped, writeChanges(ctx, l, written, l.versions.plan+1, "")
}

// writeChanges writes changes of rows that this transaction has locked, where the database has row locks. version is
// the version of the plan. It is higher than any version in the rows. It raises the numbers of all servers for which
// the changes are news (S2), except one that knows.
func writeChanges(ctx context.Context, l *LockTx, changes []plan.Change, version int64, except string) error {
	for _, c := range changes {
		if c.ChangesOwner() && c.Owner != "" {
			l.given = append(l.given, c.Owner)
		}
		if c.Requester != "" {
			l.given = append(l.given, c.Requester)
		}
	}
	if err := l.queuesChangedFor(ctx, changedFor(changes, except)...); err != nil {
		return err
	}
	if len(changes) == 1 {
		return writeChange(ctx, l, changes[0], version)
	}
	for part := range slices.Chunk(changes, changesPerStatement) {
		rows := make([]changeRow, len(part))
		for i, c := range part {
			rows[i] = newChangeRow(c, version)
		}
		query, args, err := changeQueues(l.Dialect.ChangeQueues, rows)
		if err != nil {
			return err
		}
		n, err := l.Exec(ctx, query, append(args, l.TaskType, l.OwnSign)...)
		if err != nil {
			return fmt.Errorf("write the queues: %w", err)
		}
		if n != len(part) {
			return fmt.Errorf("write the queues: %d of %d rows: %w", n, len(part), sqldb.ErrRaced)
		}
	}
	return nil
}

// changeQueues returns the statement of a dialect that writes changes, with the parameters of the changes.
func changeQueues(text string, rows []changeRow) (query string, args []any, err error) {
	before, after, selected := strings.Cut(text, "{changes}")
	if !selected {
		doc, err := json.Marshal(rows)
		return strings.ReplaceAll(text, "{rows}", nextPowerOfTen(len(rows))), []any{string(doc)}, err
	}
	list := make([]string, len(rows))
	for i, row := range rows {
		var columns []string
		for _, f := range sqldb.Fields(row) {
			columns, args = append(columns, "? AS "+f.Column), append(args, f.Value)
		}
		list[i] = "SELECT " + strings.Join(columns, ", ")
	}
	return before + strings.Join(list, " UNION ALL ") + after, args, nil
}

// writeChange writes one change as the dialect's statement for many does, without its table of changes.
func writeChange(ctx context.Context, l *LockTx, c plan.Change, version int64) error {
	var set strings.Builder
	var args []any
	if c.Requester == "" {
		set.WriteString(`req_since = NULL, req_server = NULL`)
	} else {
		// The order matters (L6).
		set.WriteString(`req_since = CASE WHEN req_server = ? THEN req_since ELSE {now} END, req_server = ?`)
		args = append(args, c.Requester, c.Requester)
	}
	switch {
	case c.ChangesOwner() && c.Owner == "":
		set.WriteString(`, cur_server = NULL, cur_since = NULL, epoch = epoch + 1`)
	case c.ChangesOwner():
		set.WriteString(`, cur_server = ?, cur_since = {now}, epoch = epoch + 1,
			reserved_for = NULL, reserved_until = NULL, waits_for = NULL`)
		args = append(args, c.Owner)
	}
	owned := ` AND cur_server IS NULL`
	args = append(args, version, l.TaskType, l.OwnSign, c.QueueID, c.OldEpoch)
	if c.OldOwner != "" {
		owned = ` AND cur_server = ?`
		args = append(args, c.OldOwner)
	}
	err := sqldb.Changed(l.Exec(ctx, `UPDATE schedule_queue SET `+set.String()+`, plan_version = ?, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ? AND epoch = ?`+owned, args...))
	return sqldb.Wrap(err, "write queue %s", c.QueueID)
}

// nextPowerOfTen returns n rounded up to a power of ten, at least 10, so that there are few different statements.
func nextPowerOfTen(n int) string {
	most := 10
	for most < n {
		most *= 10
	}
	return strconv.Itoa(most)
}

// lockFreeRows locks the rows of the changes and skips the rows that another transaction holds. It returns the changes
// of either kind.
func lockFreeRows(ctx context.Context, l *LockTx, changes []plan.Change) (free, skipped []plan.Change, err error) {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.QueueID
	}
	locked, err := lockQueueRows(ctx, l, list)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range changes {
		if locked[c.QueueID] {
			free = append(free, c)
		} else {
			skipped = append(skipped, c)
		}
	}
	return free, skipped, nil
}

// lockQueueRows locks the free rows of queues, and returns their ids. A database with one lock for all writers has no
// row locks: there it returns all ids, and a stalled transaction delays each writer.
func lockQueueRows(ctx context.Context, l *LockTx, list []string) (got map[string]bool, err error) {
	ids := list
	if !l.Dialect.OneWriter {
		if ids, err = lockFree[string](ctx, l, `q.queue_id`, list); err != nil {
			return nil, err
		}
	}
	got = make(map[string]bool, len(ids))
	for _, id := range ids {
		got[id] = true
	}
	return got, nil
}

// lockFree locks the rows of queues, skips the rows that another transaction holds (L5), and returns the columns of the
// others.
func lockFree[T any](ctx context.Context, l *LockTx, columns string, queues []string) (rows []T, err error) {
	for part := range slices.Chunk(queues, changesPerStatement) {
		free, err := lockFreeOf[T](ctx, l, columns, part)
		if err != nil {
			return nil, fmt.Errorf("lock the queues: %w", err)
		}
		rows = append(rows, free...)
	}
	return rows, nil
}

// lockFreeOf is lockFree with one statement. In a database that locks either all of the rows or none, it tries the
// halves if one of them is held.
func lockFreeOf[T any](ctx context.Context, l *LockTx, columns string, queues []string) ([]T, error) {
	from, args, err := l.Dialect.SelectQueues(queueTable, queues, l.TaskType, l.OwnSign)
	if err != nil {
		return nil, err
	}
	rows, held, err := sqldb.Free[T](ctx, l, l.Dialect, `SELECT `+columns+from+` ORDER BY q.queue_id`, args...)
	half := len(queues) / 2
	if err != nil || !held || half == 0 {
		return rows, err
	}
	for _, part := range [][]string{queues[:half], queues[half:]} {
		free, err := lockFreeOf[T](ctx, l, columns, part)
		if err != nil {
			return nil, err
		}
		rows = append(rows, free...)
	}
	return rows, nil
}
