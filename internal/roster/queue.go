package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// NamedQueue is a queue for adding and removing queues, and for splitting and merging them.
type NamedQueue struct {
	ID       string
	Index    int
	Total    int // of a numbered queue: it has the items with mod(id, Total) = Index; 0 for a name
	Owner    string
	Epoch    int64
	Division string
	Removing bool `db:"-"`
}

// errNoQueue means that the task type has no queue of that name.
var errNoQueue = errors.New("there is no queue of that name")

// ErrNumbered means that the queues of the task type have numbers, not names.
var ErrNumbered = errors.New("the queues have numbers, so that only their number can change")

// NamedQueues returns the queues in the order of their index. It also returns ErrNumbered if they have numbers.
func (l *LockTx) NamedQueues(ctx context.Context) (queues []NamedQueue, err error) {
	queues, err = sqldb.Records[NamedQueue](ctx, l, `SELECT queue_id, queue_index,
		COALESCE(queue_total, 0), cur_server, epoch, division FROM schedule_queue
		WHERE `+ofTask+` ORDER BY queue_index, queue_id`, l.TaskType, l.OwnSign)
	numbered := true
	for i := range queues {
		q := &queues[i]
		q.Removing = l.Changes.Removes(q.ID)
		numbered = numbered && q.Total > 0
	}
	if err == nil && numbered {
		err = ErrNumbered
	}
	return queues, err
}

// InsertQueues inserts the queues of a new roster. The queues of the same task type in BASE replace them, if there are
// any.
func InsertQueues(ctx context.Context, l *LockTx, queues []QueueRow) error {
	base, err := baseQueues(ctx, l)
	if err != nil {
		return err
	}
	if len(base) > 0 {
		queues = base
	}
	if err := insertQueueRows(ctx, l, queues, newDivision(), pastWindows(l)); err != nil {
		return err
	}
	if err := cloneQueueSettings(ctx, l); err != nil {
		return err
	}
	err = l.setLockRow(ctx, `queue_total = ?, membership_version = membership_version + 1`, len(queues))
	return sqldb.Wrap(err, "set the number of queues")
}

// QueueRow is a queue to be inserted.
type QueueRow struct {
	ID        string
	Index     int
	Total     int // of a numbered queue; 0 for a name
	Parameter string

	Cursor  string `db:"-"` // of the queue that it was split from
	Crashes int    `db:"-"` // likewise
}

// NumberedQueues returns the queues with the numbers below total.
func NumberedQueues(total int) []QueueRow {
	queues := make([]QueueRow, total)
	for i := range queues {
		queues[i] = QueueRow{ID: fmt.Sprint(i), Index: i, Total: total}
	}
	return queues
}

// baseQueues returns the queues of BASE to clone. Cursors are not cloned: each environment reads its sources by
// itself.
func baseQueues(ctx context.Context, l *LockTx) (queues []QueueRow, err error) {
	if l.OwnSign == DefaultOwnSign {
		return nil, nil
	}
	base := l.Reader()
	base.ownSign, base.locked = DefaultOwnSign, nil // its lock row is another
	removing, err := base.Removing(ctx)
	if err != nil {
		return nil, err
	}
	queues, err = sqldb.Records[QueueRow](ctx, l, `SELECT queue_id, queue_index, COALESCE(queue_total, 0), queue_parameter
		FROM schedule_queue
		WHERE `+ofTask+` ORDER BY queue_index, queue_id`, l.TaskType, DefaultOwnSign)
	queues = slices.DeleteFunc(queues, func(q QueueRow) bool { return slices.Contains(removing, q.ID) })
	return queues, sqldb.Wrap(err, "read the queues of %s", DefaultOwnSign)
}

// pastWindows returns the window_done_at of a new queue: it counts as done in each permit window that began before now,
// because a queue does not repeat a window that it missed.
func pastWindows(l *LockTx) any { return l.Dialect.Time(l.Now.Add(-time.Microsecond)) }

// insertQueueRows inserts queues of a division that count as done in the permit windows up to windowDone. Their epochs
// start above each epoch that this roster has used (H6).
func insertQueueRows(ctx context.Context, l *LockTx, queues []QueueRow, division string, windowDone any) error {
	for part := range slices.Chunk(queues, InsertRows) {
		args := make([]any, 0, 11*len(part))
		for _, q := range part {
			args = append(args, l.TaskType, l.OwnSign, q.ID, q.Index, sqldb.NullIf0(q.Total), q.Parameter, q.Cursor, q.Crashes,
				division, l.EpochHigh+1, windowDone)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, {now}), ", len(part)), ", ")
		_, err := l.Exec(ctx, `INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, queue_total,
			queue_parameter, cursor_value, crash_count, division, epoch, window_done_at, gmt_created, gmt_modified)
			VALUES `+values, args...)
		if err != nil {
			return fmt.Errorf("insert the queues: %w", err)
		}
	}
	return nil
}

// RaiseEpochHigh raises EpochHigh to the highest epoch of the present queues.
func RaiseEpochHigh(ctx context.Context, l *LockTx) error {
	top, err := sqldb.Value[int64](ctx, sqldb.Strict{Eacher: l}, `SELECT COALESCE(MAX(epoch), 0) FROM schedule_queue
		WHERE `+ofTask+` AND `+validEpoch, l.TaskType, l.OwnSign)
	l.EpochHigh = max(l.EpochHigh, top)
	return err
}

// MaxQueues is the most queues that a task type may have. It keeps a typing error from filling the database.
const MaxQueues = 100_000

// AddQueue adds a named queue, which the next plan assigns (N2), or withdraws its removal. Where queues have numbers,
// Repartition changes how many there are.
func (o Operator) AddQueue(ctx context.Context, taskType, queueID, parameter string) error {
	err := cmp.Or(ValidName("queue", queueID, 150), sqldb.CheckText("queue_parameter", parameter, sqldb.MaxText))
	if err != nil {
		return fmt.Errorf("add a queue to %s: %w", taskType, err)
	}
	err = o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		queues, err := l.NamedQueues(ctx)
		if err != nil {
			return err
		}
		if there := slices.IndexFunc(queues, func(q NamedQueue) bool { return q.ID == queueID }); there >= 0 {
			return keepQueue(ctx, l, queues[there], o.actor)
		}
		if len(queues) == MaxQueues {
			return fmt.Errorf("there are %d queues already, which is the maximum", MaxQueues)
		}
		last := queues[len(queues)-1]
		row := QueueRow{ID: queueID, Index: last.Index + 1, Parameter: parameter}
		return addQueue(ctx, l, row, last.Division, o.actor)
	})
	return sqldb.Prefix(err, "add queue %q to", queueID)
}

// addQueue inserts the row of a queue.
func addQueue(ctx context.Context, l *LockTx, q QueueRow, division, actor string) error {
	delete(l.Changes, q.ID) // the removal still waits, and the id has its pin, if the row was deleted by hand
	if err := deleteLostSettings(ctx, l); err != nil {
		return err
	}
	if err := insertQueueRows(ctx, l, []QueueRow{q}, division, pastWindows(l)); err != nil {
		return err
	}
	if err := l.queuesChanged(ctx, 1); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventAdded, queue: q.ID, epoch: l.EpochHigh + 1, Actor: actor})
}

// keepQueue withdraws the removal of a queue. An owner that has drained for the removal resumes, or retakes the
// queue.
func keepQueue(ctx context.Context, l *LockTx, q NamedQueue, actor string) error {
	if !q.Removing {
		return errors.New("there is a queue of that name")
	}
	delete(l.Changes, q.ID)
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	return l.Record(ctx, Event{
		Kind: EventAdded, queue: q.ID, epoch: q.Epoch, Actor: actor, Reason: "the removal was withdrawn",
	})
}

// RemoveQueue removes a named queue (N2). Its owner first drains it; then the row is deleted. Without an owner it is
// deleted at once. Items of that name are not processed any more. The last queue cannot be removed: a task type
// without queues has nothing to do.
func (o Operator) RemoveQueue(ctx context.Context, taskType, queueID string) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		q, err := l.removable(ctx, queueID)
		if err != nil || q.Removing {
			return err
		}
		return removeQueue(ctx, l, q, o.actor)
	})
	return sqldb.Prefix(err, removeNamed, queueID)
}

// MayRemoveQueue returns the error with which [Operator.RemoveQueue] would refuse the queue now.
func (r *Roster) MayRemoveQueue(ctx context.Context, taskType, queueID string) error {
	err := r.Ask(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		_, err := l.removable(ctx, queueID)
		return err
	})
	return sqldb.Prefix(err, removeNamed, queueID)
}

// removeNamed is what Operator.RemoveQueue does, with the queue, for errors.
const removeNamed = "remove queue %q of"

// removable returns a named queue that may be removed, or is to be removed already.
func (l *LockTx) removable(ctx context.Context, queueID string) (q NamedQueue, err error) {
	queues, err := l.NamedQueues(ctx)
	if err != nil {
		return q, err
	}
	at := slices.IndexFunc(queues, func(q NamedQueue) bool { return q.ID == queueID })
	staying := slices.ContainsFunc(queues, func(q NamedQueue) bool { return !q.Removing && q.ID != queueID })
	switch {
	case at < 0:
		return q, errNoQueue
	case !queues[at].Removing && !staying:
		return q, errors.New("it is the last one")
	}
	return queues[at], nil
}

// removeQueue requests the removal of a queue.
func removeQueue(ctx context.Context, l *LockTx, q NamedQueue, actor string) error {
	l.Changes[q.ID] = Remove
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	removing := Event{Kind: EventRemoving, queue: q.ID, from: q.Owner, epoch: q.Epoch, Actor: actor}
	if err := l.Record(ctx, removing); err != nil {
		return err
	}
	_, _, err := makeChanges(ctx, l, actor)
	return err
}

// removeFree deletes a queue without an owner, whose row is locked. It records how high its epoch was: a queue that is
// added again under the same name starts above it (H6).
func removeFree(ctx context.Context, l *LockTx, q sizedQueue, actor string) error {
	for _, table := range []string{"schedule_queue", "schedule_backlog"} {
		if err := l.deleteRows(ctx, table, `queue_id = ?`, q.ID); err != nil {
			return err
		}
	}
	delete(l.Changes, q.ID)
	l.EpochHigh = max(l.EpochHigh, q.Epoch)
	if err := l.queuesChanged(ctx, -1); err != nil {
		return err
	}
	if err := deleteLostSettings(ctx, l); err != nil {
		return err
	}
	if err := l.queuesRemoved(ctx, l, "CANCELLED", "the queue was removed", []string{q.ID}); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventRemoved, queue: q.ID, epoch: q.Epoch, Actor: actor})
}

// deleteRows deletes the rows of the roster in a table under a condition.
func (l *LockTx) deleteRows(ctx context.Context, table, condition string, args ...any) error {
	_, err := l.Exec(ctx, `DELETE FROM `+table+` WHERE `+ofTask+` AND `+condition,
		append([]any{l.TaskType, l.OwnSign}, args...)...)
	return err
}

// deleteQueueRows deletes the rows of queues from a table. A change of many queues is a few statements, because over a
// slow link it would otherwise take longer than a transaction may (L7).
func (l *LockTx) deleteQueueRows(ctx context.Context, table string, queues []sizedQueue) error {
	_, err := l.ExecIn(ctx, allIDs(queues), `DELETE FROM `+table+` WHERE `+ofTask+` AND queue_id IN ({ids})`,
		l.TaskType, l.OwnSign)
	return err
}

func allIDs(queues []sizedQueue) []string {
	ids := make([]string, len(queues))
	for i, q := range queues {
		ids[i] = q.ID
	}
	return ids
}

// CheckPin returns an error if labels are no list of labels that a queue can be pinned to.
func CheckPin(labels string) error {
	if err := sqldb.CheckText("labels", labels, sqldb.MaxText); err != nil {
		return err
	}
	if _, err := plan.ParseSelector(labels); err != nil {
		return fmt.Errorf("labels (%.60q) %w", labels, err)
	}
	return nil
}

// PinQueue says which labels a server must have to own the queue (P14): a list such as "zone=b" or "host=web1|web2".
// The empty list says that any server may. The servers plan with their next heartbeats. A live owner that lacks a
// label hands the queue over when another server may have it, and keeps it until then (P7).
//
// The pin is not in the row of the queue. PostgreSQL lets each new batch share the lock on that row while a writer
// waits for it, so that a pin in the row would wait for as long as the owner's batches overlap.
func (o Operator) PinQueue(ctx context.Context, taskType, queueID, labels string) error {
	err := CheckPin(labels)
	if err != nil {
		return fmt.Errorf("pin queue %q of %s: %w", queueID, taskType, err)
	}
	err = o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		set, err := readQueueSetting(ctx, l, queueID)
		if err != nil || set.Labels == labels {
			return err
		}
		set.Labels = labels
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		reason := "any worker may own it"
		if labels != "" {
			reason = "to " + labels
		}
		if err := l.Record(ctx, Event{Kind: EventPinned, queue: queueID, Actor: o.actor, Reason: reason}); err != nil {
			return err
		}
		return writeQueueSetting(ctx, l, queueID, set)
	})
	return sqldb.Prefix(err, "pin queue %q of", queueID)
}

// QueueSetting is what an operator has set for one queue: a row of schedule_queue_setting.
type QueueSetting struct {
	Labels string // its pin (P14)
	QueueLimits
}

// QueueLimits bound one queue instead of the settings of its task type (X11). Nil is that of the task type, 0 no limit.
type QueueLimits struct {
	RatePerSecond *float64 `db:"rate_per_second" json:"rate_per_second"`
	MaxInFlight   *int     `db:"max_in_flight"   json:"max_in_flight"`
	Weight        *int     `db:"weight"          json:"weight"` // nil is 1
}

// Limits describes the limits to people.
func (q QueueLimits) Limits() string {
	var list []string
	for _, f := range []struct{ name, text string }{
		{"rate_per_second", textOf(q.RatePerSecond)}, {"max_in_flight", textOf(q.MaxInFlight)}, {"weight", textOf(q.Weight)},
	} {
		if f.text != "" {
			list = append(list, f.name+" "+f.text)
		}
	}
	return cmp.Or(strings.Join(list, ", "), "the limits of the task type")
}

func textOf[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

func (s QueueSetting) String() string { return fmt.Sprintf("labels %q, %s", s.Labels, s.Limits()) }

// SetQueue changes the limits of a queue (X11). change gets them as they are under the lock row, so that it keeps what
// another operator has set meanwhile. The owner adopts them with the settings of the task type, whose version rises.
func (o Operator) SetQueue(ctx context.Context, taskType, queueID string, change func(*QueueLimits) error) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		set, err := readQueueSetting(ctx, l, queueID)
		if err != nil {
			return err
		}
		was := set.Limits()
		if err := change(&set.QueueLimits); err != nil || set.Limits() == was {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_task_type SET version = version + 1, gmt_modified = {now} WHERE task_type = ?`,
			l.TaskType)
		if err != nil {
			return err
		}
		err = l.Record(ctx, Event{Kind: EventSettings, queue: queueID, Actor: o.actor, Reason: set.Limits()})
		if err != nil {
			return err
		}
		return writeQueueSetting(ctx, l, queueID, set)
	})
	return sqldb.Prefix(err, "set the limits of queue %q of", queueID)
}

const queueSettingColumns = `COALESCE(labels, ''), rate_per_second, max_in_flight, weight`

// readQueueSetting returns what is set for a queue.
func readQueueSetting(ctx context.Context, l *LockTx, queueID string) (QueueSetting, error) {
	return sqldb.One[QueueSetting](ctx, l, errNoQueue, `SELECT `+queueSettingColumns+`
		FROM schedule_queue LEFT JOIN schedule_queue_setting USING (task_type, own_sign, queue_id)
		WHERE `+ofTask+` AND queue_id = ?`, l.TaskType, l.OwnSign, queueID)
}

// writeQueueSetting replaces what is set for a queue.
func writeQueueSetting(ctx context.Context, l *LockTx, queueID string, s QueueSetting) error {
	return writeQueueSettings(ctx, l, []sizedQueue{{NamedQueue: NamedQueue{ID: queueID}}}, s)
}

// writeQueueSettings replaces what is set for queues. A queue for which nothing is set has no row.
func writeQueueSettings(ctx context.Context, l *LockTx, queues []sizedQueue, s QueueSetting) error {
	err := l.deleteQueueRows(ctx, "schedule_queue_setting", queues)
	if err != nil || s == (QueueSetting{}) {
		return err
	}
	for part := range slices.Chunk(queues, InsertRows) {
		var args []any
		for _, q := range part {
			args = append(args, l.TaskType, l.OwnSign, q.ID, s.Labels, s.RatePerSecond, s.MaxInFlight, s.Weight)
		}
		rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?), ", len(part)), ", ")
		_, err := l.Exec(ctx, `INSERT INTO schedule_queue_setting (task_type, own_sign, queue_id, labels,
			rate_per_second, max_in_flight, weight) VALUES `+rows, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// cloneQueueSettings gives the queues of a new roster what is set for those of BASE, of which they are copies. It first
// deletes what is left of queues that were deleted by hand.
func cloneQueueSettings(ctx context.Context, l *LockTx) error {
	err := l.deleteRows(ctx, "schedule_queue_setting", `1 = 1`)
	if err != nil || l.OwnSign == DefaultOwnSign {
		return err
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_queue_setting (task_type, own_sign, queue_id, labels, rate_per_second,
		max_in_flight, weight) SELECT task_type, ?, queue_id, labels, rate_per_second, max_in_flight, weight
		FROM schedule_queue_setting WHERE `+ofTask, l.OwnSign, l.TaskType, DefaultOwnSign)
	if err != nil {
		return fmt.Errorf("copy the settings of the queues of %s: %w", DefaultOwnSign, err)
	}
	return deleteLostSettings(ctx, l)
}

// deleteLostSettings deletes what is set for queues that do not exist any more. A new queue of the same name does not
// inherit it.
func deleteLostSettings(ctx context.Context, l *LockTx) error {
	return l.deleteRows(ctx, "schedule_queue_setting", `NOT EXISTS (SELECT 1 FROM schedule_queue q
		WHERE q.task_type = schedule_queue_setting.task_type AND q.own_sign = schedule_queue_setting.own_sign
		AND q.queue_id = schedule_queue_setting.queue_id)`)
}
