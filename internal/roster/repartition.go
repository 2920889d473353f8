package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Repartition does what [LockTx.Repartition] does, in a transaction of its own.
func (o Operator) Repartition(ctx context.Context, taskType string, total int, seen int64) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		return l.Repartition(ctx, o.actor, total, seen)
	})
	return sqldb.Prefix(err, "repartition")
}

// Repartition requests another number of numbered queues. With the number, items change their queue: mod(id, total).
// So nothing changes before all owners have drained their queues and given them up (N1). Each request also withdraws
// the requests to split or merge queues. Requesting the present number only withdraws; queues that were split do not
// count in it, and stay as they are. If seen is not 0 and no longer the partition_version, it returns ErrChanged.
func (l *LockTx) Repartition(ctx context.Context, actor string, total int, seen int64) error {
	was := l.Changes
	changed, err := l.askTotal(ctx, total, seen)
	if err != nil || !changed {
		return err
	}
	if l.Changes.Queues() > 0 {
		if err := voidReservations(ctx, l); err != nil {
			return err
		}
	}
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	reason := repartitionReason(was, l.Changes, l.QueueTotal)
	if err := l.Record(ctx, Event{Kind: EventRepartition, Actor: actor, Reason: reason}); err != nil {
		return err
	}
	_, _, err = makeChanges(ctx, l, actor)
	return err
}

// MayRepartition returns the error with which Repartition would refuse the number.
func (l *LockTx) MayRepartition(ctx context.Context, total int, seen int64) error {
	_, err := l.askTotal(ctx, total, seen)
	return err
}

// askTotal makes Changes what they are after the request, and reports whether they differ. It writes nothing.
func (l *LockTx) askTotal(ctx context.Context, total int, seen int64) (changed bool, err error) {
	if !validTotal(total) {
		return false, fmt.Errorf("queues (%d) must be between 1 and %d", total, MaxQueues)
	}
	queues, err := l.NamedQueues(ctx)
	if !errors.Is(err, ErrNumbered) {
		return false, cmp.Or(err, errNamedQueues)
	}
	if seen != 0 && seen != l.versions.partition {
		return false, ErrChanged
	}
	was := l.Changes
	least := slices.MinFunc(queues, func(a, b NamedQueue) int { return a.Total - b.Total }).Total
	same := !slices.ContainsFunc(queues, func(q NamedQueue) bool { return q.Total != total })
	if same && len(was) == 0 {
		return false, nil
	}
	// A request that only withdraws keeps the queues that have the cursors.
	if l.Changes = (Changes{}); !same && (len(was) == 0 || total != least) {
		if refused, err := mustHaveNoCursors(ctx, l); err != nil || refused != nil {
			return false, cmp.Or(err, refused)
		}
		l.Changes[allQueues] = Change(total)
	}
	return true, nil
}

// repartitionReason says what a request has changed.
func repartitionReason(was, now Changes, present int) string {
	var reasons []string
	switch {
	case now.Queues() > 0:
		reasons = append(reasons, fmt.Sprintf("%s requested instead of %d",
			human.Count(now.Queues(), "queue was", "queues were"), present))
	case was.Queues() > 0:
		reasons = append(reasons, fmt.Sprintf("the request for %s was withdrawn",
			human.Count(was.Queues(), "queue", "queues")))
	}
	if len(was.Totals()) > 0 {
		reasons = append(reasons, "the requests to split or merge queues were withdrawn")
	}
	return strings.Join(reasons, "; ")
}

// unfitForTotal returns why the queues cannot become that many; nil if they can. An edit by hand may have requested it,
// and queues may have got cursors since.
func (queues sizedQueues) unfitForTotal(ctx context.Context, l *LockTx, total int) (why, err error) {
	for _, q := range queues {
		if q.Total == 0 {
			return errNamedQueues, nil
		}
	}
	if !validTotal(total) {
		return fmt.Errorf("the number of queues (%d) must be between 1 and %d", total, MaxQueues), nil
	}
	return mustHaveNoCursors(ctx, l)
}

// validTotal reports whether a task type may have that many queues. Without the bound, a typing error would make a
// server insert rows until it has no memory left.
func validTotal(total int) bool { return total >= 1 && total <= MaxQueues }

// changeQueueTotal begins a new division of the items among the queues, which nobody works and whose rows are locked.
// It raises the epoch of each of them above all epochs so far, so that items selected under the old number are
// rejected. It deletes the queues above the new number and inserts the missing ones. It counts the rows and does not
// rely on queue_total.
func changeQueueTotal(ctx context.Context, l *LockTx, actor string, queues []sizedQueue, total int) error {
	done, err := earliestWindowDone(ctx, l)
	if err != nil {
		return err
	}
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	if err := l.deleteRows(ctx, "schedule_queue", `queue_index >= ?`, total); err != nil {
		return err
	}
	if err := deleteLostSettings(ctx, l); err != nil {
		return err
	}
	if err := l.deleteRows(ctx, "schedule_backlog", `1 = 1`); err != nil { // all queues have other items now
		return err
	}
	there := make(map[string]bool, len(queues))
	var gone []string
	for _, q := range queues {
		if there[q.ID] = true; q.Index >= total {
			gone = append(gone, q.ID)
		}
	}
	missing := slices.DeleteFunc(NumberedQueues(total), func(q QueueRow) bool { return there[q.ID] })
	if err := l.queuesRemoved(ctx, l, "FAILED", "there are fewer queues now: rerun the run", gone); err != nil {
		return err
	}
	division := newDivision()
	_, err = l.Exec(ctx, `UPDATE schedule_queue SET queue_total = ?, division = ?, epoch = ?, window_done_at = ?,
		failing_since = NULL, req_server = NULL, req_since = NULL, gmt_modified = {now} WHERE `+ofTask,
		total, division, l.EpochHigh+1, done, l.TaskType, l.OwnSign)
	if err != nil {
		return err
	}
	if err := insertQueueRows(ctx, l, missing, division, done); err != nil {
		return err
	}
	l.QueueTotal, l.Changes = total, Changes{}
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	reason := fmt.Sprintf("%s instead of %d", human.Count(total, "queue", "queues"), len(queues))
	return l.Record(ctx, Event{Kind: EventRepartitioned, epoch: l.EpochHigh + 1, Actor: actor, Reason: reason})
}

// errNamedQueues means that the queues have names: their number does not divide the items.
var errNamedQueues = errors.New("the queues have names: add or remove one instead")

// errCursors means that queues have cursors. A cursor says how far the items of a queue were read; with another
// number of queues it would refer to other items.
var errCursors = errors.New("the queues have cursors, which belong to their number: " +
	"set cursor_value to '' first, and each source is read from its beginning")

// errDataCursors means that queues may have cursors in a data database.
var errDataCursors = errors.New("the queues may have cursors, which belong to their number")

// mustHaveNoCursors returns errCursors as refused if queues have cursors in the roster, and errDataCursors if a server
// keeps cursors in a data database, which only its transactions read.
func mustHaveNoCursors(ctx context.Context, l *LockTx) (refused, err error) {
	n, err := sqldb.Value[int](ctx, l, `SELECT COUNT(*) FROM schedule_queue WHERE `+ofTask+` AND cursor_value <> ''`,
		l.TaskType, l.OwnSign)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return errCursors, nil
	}
	d, _, err := readDivision(ctx, l)
	if err != nil {
		return nil, err
	}
	if refused, err = l.Unsuited(ctx, false, d.keepsCursors); refused != nil {
		refused = fmt.Errorf("%w: %w", errDataCursors, refused)
	}
	return refused, err
}

// earliestWindowDone returns the start of the last permit window in which all queues are done, NULL if there is none.
// Items change their queues, so that the unfinished items of one queue may be in any queue afterwards.
func earliestWindowDone(ctx context.Context, l *LockTx) (any, error) {
	type windows struct {
		All, Done int
		Least     time.Time
	}
	w, err := sqldb.Value[windows](ctx, l, `SELECT COUNT(*), COUNT(window_done_at), MIN(window_done_at)
		FROM schedule_queue WHERE `+ofTask, l.TaskType, l.OwnSign)
	if err != nil || w.Done < w.All {
		return nil, err
	}
	return l.Dialect.Time(w.Least), nil
}
