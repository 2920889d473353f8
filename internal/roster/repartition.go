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

// Repartition requests another number of numbered queues. With the number, items change their queue: mod(id, total).
// So nothing changes at once: the servers learn of the request with their next heartbeats, drain all their queues and
// report it. When all have drained, one of them changes the number (N1). Each request also withdraws the requests to
// split or merge queues. Requesting the present number only withdraws; queues that were split do not count in it, and
// stay as they are. If seen is not 0 and no longer the partition_version, it returns ErrChanged.
func (o Operator) Repartition(ctx context.Context, taskType string, total int, seen int64) error {
	if !validTotal(total) {
		return fmt.Errorf("repartition %s: queues (%d) must be between 1 and %d", taskType, total, MaxQueues)
	}
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		queues, err := l.NamedQueues(ctx)
		if !errors.Is(err, ErrNumbered) {
			return cmp.Or(err, errNamedQueues)
		}
		if seen != 0 && seen != l.versions.partition {
			return ErrChanged
		}
		var requested any = total
		resizes := len(l.Resizing) > 0
		least := slices.MinFunc(queues, func(a, b NamedQueue) int { return a.Total - b.Total }).Total
		same := !slices.ContainsFunc(queues, func(q NamedQueue) bool { return q.Total != total })
		if same && l.RequestedTotal == 0 && !resizes {
			return nil
		}
		if same || (l.RequestedTotal > 0 || resizes) && total == least {
			requested = nil
		} else if err := mustHaveNoCursors(ctx, l); err != nil { // a withdrawal keeps the queues that have the cursors
			return err
		}
		// Each request has a version of its own, so that a server that drained for an earlier request does not count.
		err = l.setLockRow(ctx, `requested_total = ?, resizing = NULL, partition_version = partition_version + 1`, requested)
		if err == nil {
			err = l.queuesChangedForAll(ctx)
		}
		if err == nil && requested != nil {
			err = voidReservations(ctx, l)
		}
		if err == nil && resizes {
			err = l.membershipChanged(ctx) // a queue that waited for others to merge needs an owner again
		}
		if err != nil {
			return err
		}
		var reasons []string
		switch {
		case requested != nil:
			reasons = append(reasons, fmt.Sprintf("%s requested instead of %d", human.Count(total, "queue was", "queues were"),
				l.QueueTotal))
		case l.RequestedTotal > 0:
			reasons = append(reasons, fmt.Sprintf("the request for %s was withdrawn",
				human.Count(l.RequestedTotal, "queue", "queues")))
		}
		if resizes {
			reasons = append(reasons, "the requests to split or merge queues were withdrawn")
		}
		return l.Record(ctx, Event{Kind: EventRepartition, Actor: o.actor, Reason: strings.Join(reasons, "; ")})
	})
	return sqldb.Prefix(err, "repartition")
}

// RepartitionReply is what a heartbeat's reply says about a request for another number of queues (N1).
type RepartitionReply struct {
	Total      int  // that is requested; 0: none. Otherwise all servers drain, so that the number can change
	AllDrained bool // all servers have drained: any of them may change the number
}

// columns implements replyOption. The second one is a constant while no server of the process has drained.
func (RepartitionReply) columns(b Heartbeat) string {
	allDrained := `0`
	if slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.DrainedPartition != 0 }) {
		allDrained = `CASE WHEN r.requested_total IS NULL OR EXISTS (SELECT 1 FROM schedule_server b
			WHERE b.task_type = s.task_type AND b.own_sign = s.own_sign
			AND b.drained_partition <> r.partition_version) THEN 0 ELSE 1 END`
	}
	return `COALESCE(r.requested_total, 0), ` + allDrained
}

// FinishRepartition changes the number of queues if that is requested and each server has drained for it. It reports
// whether it did. It also waits for a server that is dead but not yet expired.
func (p Planner) FinishRepartition(ctx context.Context) (done bool, err error) {
	err = p.roster.UnderLock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
		done = false
		busy, err := sqldb.Value[int](ctx, l, `SELECT COUNT(*) FROM schedule_server
			WHERE `+ofTask+` AND drained_partition <> ?`, l.TaskType, l.OwnSign, l.versions.partition)
		if err != nil || busy > 0 || l.RequestedTotal == 0 {
			return err
		}
		queues, err := numberedQueues(ctx, l)
		if err == nil {
			err = mustHaveNoCursors(ctx, l)
		}
		if err != nil {
			return withdrawRepartition(ctx, l, p.actor, err)
		}
		done = true
		return changeQueueTotal(ctx, l, p.actor, queues)
	})
	return done && err == nil, sqldb.Prefix(err, "repartition")
}

// numberedQueues returns the queues. It returns an error if their number cannot change to the requested one, which an
// edit by hand may have written.
func numberedQueues(ctx context.Context, l *LockTx) ([]NamedQueue, error) {
	queues, err := l.NamedQueues(ctx)
	switch {
	case err == nil:
		return nil, errNamedQueues
	case !errors.Is(err, ErrNumbered):
		return nil, err
	case !validTotal(l.RequestedTotal):
		return nil, fmt.Errorf("%w: schedule_task_running.requested_total (%d) must be between 1 and %d",
			errInvalidTotal, l.RequestedTotal, MaxQueues)
	}
	return queues, nil
}

// validTotal reports whether a task type may have that many queues. Without the bound, a typing error would make a
// server insert rows until it has no memory left.
func validTotal(total int) bool { return total >= 1 && total <= MaxQueues }

// withdrawRepartition withdraws the request because the number of queues cannot change: it is invalid, or queues have
// got cursors or names while the servers drained. It returns any other error as it is.
func withdrawRepartition(ctx context.Context, l *LockTx, actor string, why error) error {
	withdraws := func(known error) bool { return errors.Is(why, known) }
	if !slices.ContainsFunc([]error{errCursors, errDataCursors, errNamedQueues, errInvalidTotal}, withdraws) {
		return why
	}
	err := l.setLockRow(ctx, `requested_total = NULL, partition_version = partition_version + 1`)
	if err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventRepartition, Actor: actor, Reason: "the request was withdrawn: " + why.Error()})
}

// changeQueueTotal begins a new division of the items, and raises the epoch of each of the queues above all epochs so
// far, so that items selected under the old number are rejected. It deletes the queues above the new number and inserts
// the missing ones. It counts the rows and does not rely on queue_total.
func changeQueueTotal(ctx context.Context, l *LockTx, actor string, queues []NamedQueue) error {
	done, err := earliestWindowDone(ctx, l)
	if err != nil {
		return err
	}
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	if err := l.deleteRows(ctx, "schedule_queue", `queue_index >= ?`, l.RequestedTotal); err != nil {
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
		if there[q.ID] = true; q.Index >= l.RequestedTotal {
			gone = append(gone, q.ID)
		}
	}
	missing := slices.DeleteFunc(NumberedQueues(l.RequestedTotal), func(q QueueRow) bool { return there[q.ID] })
	if err := l.queuesRemoved(ctx, l, "FAILED", "there are fewer queues now: rerun the run", gone); err != nil {
		return err
	}
	division := newDivision()
	_, err = l.Exec(ctx, `UPDATE schedule_queue SET queue_total = ?, division = ?, epoch = ?, window_done_at = ?,
		failing_since = NULL, req_server = NULL, req_since = NULL, gmt_modified = {now} WHERE `+ofTask,
		l.RequestedTotal, division, l.EpochHigh+1, done, l.TaskType, l.OwnSign)
	if err != nil {
		return err
	}
	if err := insertQueueRows(ctx, l, missing, division, done); err != nil {
		return err
	}
	err = l.setLockRow(ctx, `queue_total = requested_total, requested_total = NULL, epoch_high = ?,
		partition_version = partition_version + 1, membership_version = membership_version + 1,
		plan_version = plan_version + 1`, l.EpochHigh)
	if err == nil {
		err = l.queuesChangedForAll(ctx)
	}
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("%s instead of %d", human.Count(l.RequestedTotal, "queue", "queues"), len(queues))
	return l.Record(ctx, Event{Kind: EventRepartitioned, epoch: l.EpochHigh + 1, Actor: actor, Reason: reason})
}

// errNamedQueues means that the queues have names: their number does not divide the items.
var errNamedQueues = errors.New("the queues have names: add or remove one instead")

// errInvalidTotal means that another number of queues is requested than a task type may have.
var errInvalidTotal = errors.New("the requested number of queues is invalid")

// errCursors means that queues have cursors. A cursor says how far the items of a queue were read; with another
// number of queues it would refer to other items.
var errCursors = errors.New("the queues have cursors, which belong to their number: " +
	"set cursor_value to '' first, and each source is read from its beginning")

// errDataCursors means that queues may have cursors in a data database.
var errDataCursors = errors.New("the queues may have cursors, which belong to their number")

// mustHaveNoCursors returns errCursors if queues have cursors in the roster, and errDataCursors if a server keeps
// cursors in a data database, which only its transactions read.
func mustHaveNoCursors(ctx context.Context, l *LockTx) error {
	n, err := sqldb.Value[int](ctx, l, `SELECT COUNT(*) FROM schedule_queue WHERE `+ofTask+` AND cursor_value <> ''`,
		l.TaskType, l.OwnSign)
	if err != nil || n > 0 {
		return cmp.Or(err, errCursors)
	}
	d, _, err := readDivision(ctx, l)
	if err != nil {
		return err
	}
	refused, err := l.Unsuited(ctx, false, d.keepsCursors)
	if refused != nil {
		err = fmt.Errorf("%w: %w", errDataCursors, refused)
	}
	return err
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
