package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Bounds of what may be requested. Each read of a server's queues has the requests that wait. A total is a number in
// the selects of users.
const (
	MaxResizing = 1_000
	maxTotal    = 1_000_000_000
)

// Resize requests another total for a numbered queue (N3). A multiple of the present total splits the queue: queue 3 of
// 8 becomes queues 3 and 11 of 16. A divisor merges it with the queues that have the other items: queues 3 and 11 of 16
// become queue 3 of 8. The present total withdraws what was requested for the queue.
//
// The owner drains the queue and gives it up (Changes). Each server drains one such queue at a time.
func (o Operator) Resize(ctx context.Context, taskType, queueID string, total int) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		return l.resize(ctx, o.actor, total, 0, isQueue(queueID))
	})
	return sqldb.Prefix(err, resizeQueue, queueID)
}

// resizeQueue is what Operator.Resize does, with the queue, for errors.
const resizeQueue = "give queue %s another total in"

// ResizeAll does what [LockTx.ResizeAll] does, in a transaction of its own.
func (o Operator) ResizeAll(ctx context.Context, taskType string, total int, seen int64) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		return l.ResizeAll(ctx, o.actor, total, seen)
	})
	return sqldb.Prefix(err, "split or merge the queues of")
}

// ResizeAll does what Operator.Resize does for all queues. If seen is not 0 and no longer the partition_version, it
// returns ErrChanged.
func (l *LockTx) ResizeAll(ctx context.Context, actor string, total int, seen int64) error {
	return l.resize(ctx, actor, total, seen, func(NamedQueue) bool { return true })
}

// MayResizeAll returns the error with which ResizeAll would refuse the total.
func (l *LockTx) MayResizeAll(ctx context.Context, total int, seen int64) error {
	_, err := l.askTotals(ctx, "", total, seen, func(NamedQueue) bool { return true })
	return err
}

// MayResize returns the error with which [Operator.Resize] would refuse the total now.
func (r *Roster) MayResize(ctx context.Context, taskType, queueID string, total int) error {
	err := r.Ask(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		_, err := l.askTotals(ctx, "", total, 0, isQueue(queueID))
		return err
	})
	return sqldb.Prefix(err, resizeQueue, queueID)
}

func isQueue(id string) func(NamedQueue) bool { return func(q NamedQueue) bool { return q.ID == id } }

func (l *LockTx) resize(ctx context.Context, actor string, total int, seen int64, asked func(NamedQueue) bool) error {
	events, err := l.askTotals(ctx, actor, total, seen, asked)
	if err != nil {
		return err
	}
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	if err := l.Record(ctx, events...); err != nil {
		return err
	}
	_, _, err = makeChanges(ctx, l, actor)
	return err
}

// askTotals makes Changes what they are after the request, and returns what is to be recorded. It writes nothing.
func (l *LockTx) askTotals(
	ctx context.Context, actor string, total int, seen int64, asked func(NamedQueue) bool,
) ([]Event, error) {
	if seen != 0 && seen != l.versions.partition {
		return nil, ErrChanged
	}
	queues, err := resizableQueues(ctx, l)
	if err != nil {
		return nil, err
	}
	requests, err := queues.requests(total, asked)
	if err != nil {
		return nil, err
	}
	events := queues.withdraw(l, requests, actor)
	for id, total := range requests {
		if total == queues[id].Total {
			continue // the withdrawal is all that was asked for
		}
		l.Changes[id] = Change(total)
		events = append(events, Event{
			Kind: EventResizing, queue: id, from: queues[id].Owner, epoch: queues[id].Epoch, Actor: actor,
			Reason: fmt.Sprintf("the total %d was requested instead of %d", total, queues[id].Total),
		})
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.queue, b.queue) }) // withdrawals first
	return events, errors.Join(queues.checkRequests(l, requests), checkOpenRun(ctx, l, requests))
}

// sizedQueue is a numbered queue with what its parts inherit, in the order in which readSizedQueues reads it.
type sizedQueue struct {
	NamedQueue
	Parameter, Cursor string
	Crashes           int
	WindowDone        time.Time
	Set               QueueSetting
}

// sizedQueues are all queues of a roster by their ids.
type sizedQueues map[string]sizedQueue

func readSizedQueues(ctx context.Context, l *LockTx) (sizedQueues, error) {
	list, err := sqldb.Records[sizedQueue](ctx, l, `SELECT queue_id, queue_index, COALESCE(queue_total, 0), cur_server,
		epoch, division, queue_parameter, cursor_value, crash_count, window_done_at, `+queueSettingColumns+`
		FROM schedule_queue LEFT JOIN schedule_queue_setting USING (task_type, own_sign, queue_id)
		WHERE `+ofTask+` ORDER BY queue_index, queue_id`, l.TaskType, l.OwnSign)
	queues := make(sizedQueues, len(list))
	for _, q := range list {
		queues[q.ID] = q
	}
	return queues, sqldb.Wrap(err, "read the queues")
}

// resizableQueues returns the queues if they may be split and merged.
func resizableQueues(ctx context.Context, l *LockTx) (sizedQueues, error) {
	if _, err := l.NamedQueues(ctx); !errors.Is(err, ErrNumbered) {
		return nil, cmp.Or(err, errors.New("the queues have names, which divide no items"))
	}
	if n := l.Changes.Queues(); n > 0 {
		return nil, fmt.Errorf("another number of queues is requested (%d): wait for it, or withdraw it", n)
	}
	if refused, err := mustBeSplittable(ctx, l); err != nil || refused != nil {
		return nil, cmp.Or(err, refused)
	}
	return readSizedQueues(ctx, l)
}

// mustBeSplittable returns why the settings, or the dealers of the servers, do not let queues be split and merged; nil
// if they do.
func mustBeSplittable(ctx context.Context, l *LockTx) (refused, err error) {
	d, _, err := readDivision(ctx, l)
	switch {
	case err != nil:
		return nil, err
	case !d.Splittable:
		return errors.New("splittable is not set: set it if each select divides by the total of its queue"), nil
	case d.databases() > 1:
		return fmt.Errorf("its items are in several data databases (%s): the parts of a queue stay in one", d.Database), nil
	}
	return l.Unsuited(ctx, false, d.suits)
}

// family returns the queues that share the items of q under a total, which is a divisor of its own, sorted by index.
func (queues sizedQueues) family(q sizedQueue, total int) (family []sizedQueue) {
	for _, other := range queues {
		if other.Index%total == q.Index%total {
			family = append(family, other)
		}
	}
	slices.SortFunc(family, func(a, b sizedQueue) int { return a.Index - b.Index })
	return family
}

// whole reports whether the queues have all items of one queue of the total.
func whole(family []sizedQueue, total int) bool {
	parts := new(big.Rat)
	for _, q := range family {
		if q.Total%total != 0 {
			return false
		}
		parts.Add(parts, big.NewRat(int64(total), int64(q.Total)))
	}
	return parts.Cmp(big.NewRat(1, 1)) == 0 && family[0].Index < total
}

// requests returns the total for each queue that the request concerns: the queues that are asked for, and those that
// they merge with.
func (queues sizedQueues) requests(total int, asked func(NamedQueue) bool) (map[string]int, error) {
	requests := map[string]int{}
	for id, q := range queues {
		switch {
		case !asked(q.NamedQueue):
		case total < 1 || total > maxTotal || total%q.Total != 0 && q.Total%total != 0:
			return nil, fmt.Errorf("the total of queue %s (%d) must become a multiple or a divisor of itself, "+
				"at most %d: %d is not", id, q.Total, maxTotal, total)
		case total >= q.Total:
			requests[id] = total
		default:
			for _, other := range queues.family(q, total) {
				requests[other.ID] = total
			}
		}
	}
	if len(requests) == 0 {
		return nil, errNoQueue
	}
	return requests, nil
}

// withdraw takes earlier requests for the queues back, with all queues that were to merge with them.
func (queues sizedQueues) withdraw(l *LockTx, requests map[string]int, actor string) (events []Event) {
	for id := range requests {
		total := l.Changes.Total(id)
		if total == 0 {
			continue
		}
		for _, q := range queues.family(queues[id], total) {
			if l.Changes.Total(q.ID) != total {
				continue
			}
			delete(l.Changes, q.ID)
			events = append(events, Event{
				Kind: EventResizing, queue: q.ID, from: q.Owner, epoch: q.Epoch, Actor: actor,
				Reason: fmt.Sprintf("the request for the total %d was withdrawn", total),
			})
		}
	}
	return events
}

// checkRequests returns an error if too many requests wait, or if queues cannot merge.
func (queues sizedQueues) checkRequests(l *LockTx, requests map[string]int) error {
	totals := l.Changes.Totals()
	if len(totals) > MaxResizing {
		return fmt.Errorf("at most %d queues may wait to be split or merged, not %d", MaxResizing, len(totals))
	}
	after := len(queues)
	for id, total := range totals {
		if q, found := queues[id]; found && total > q.Total {
			after += total/q.Total - 1
		}
	}
	if after > MaxQueues {
		return fmt.Errorf("there would be %d queues; the maximum is %d", after, MaxQueues)
	}
	for id, total := range requests {
		if q := queues[id]; total < q.Total && q.Index < total {
			if err := mayMerge(queues.family(q, total), total); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayMerge returns an error if the queues do not become one queue of the total.
func mayMerge(family []sizedQueue, total int) error {
	first := family[0]
	if !whole(family, total) {
		return fmt.Errorf("queue %d of %d is not divided among %s: a row is missing", first.Index%total, total, idsOf(family))
	}
	for _, q := range family[1:] {
		for _, value := range []struct{ name, of, first string }{
			{"cursor_value", q.Cursor, first.Cursor},
			{"queue_parameter", q.Parameter, first.Parameter},
			{"setting", q.Set.String(), first.Set.String()},
		} {
			if value.of != value.first {
				return fmt.Errorf("queues %s and %s cannot merge while their %s differs (%q and %q)", first.ID, q.ID, value.name,
					value.first, value.of)
			}
		}
	}
	return nil
}

// idsOf lists the queues for people.
func idsOf(family []sizedQueue) string {
	const most = 5
	var ids []string
	for _, q := range family[:min(most, len(family))] {
		ids = append(ids, q.ID)
	}
	if more := len(family) - most; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

// checkOpenRun returns an error if the open run has not finished one of the queues: its sweep would lose a part of the
// queue's items. While a request waits, no run is opened (R6).
func checkOpenRun(ctx context.Context, l *LockTx, requests map[string]int) error {
	type unfinished struct{ Run, Queue string }
	list, err := sqldb.Records[unfinished](ctx, l, `SELECT r.run_id, q.queue_id FROM schedule_run r
		JOIN schedule_run_queue q ON q.run_id = r.run_id
		WHERE r.task_type = ? AND r.own_sign = ? AND r.state = 'RUNNING' AND q.state IN ('PENDING', 'RUNNING')
		ORDER BY q.queue_id`, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("read the open run: %w", err)
	}
	for _, u := range list {
		if _, found := requests[u.Queue]; found {
			return fmt.Errorf("run %s has not finished queue %s: wait for its end, or cancel it", u.Run, u.Queue)
		}
	}
	return nil
}

// MarkChanging marks the queues that the server drains now, to give them up: all if another number of queues is
// requested, all that are removed, and one that is split or merged, so that the server goes on with its other queues.
// All servers take the latter in the same order, so that those that merge are drained at about the same time. given
// are queues that the server has given up to be merged. While one of them waits for the parts of another server, the
// server gives up no part of a later queue: it would have no queue left before an item of the other server ends. The
// first queue of all is never later, so that servers do not wait for each other.
func (v View) MarkChanging(uuid string, given []ViewQueue) {
	waiting := v.Waiting(uuid, given)
	var next *ViewQueue
	order := func(q *ViewQueue) int { return q.Index % v.Changes.Total(q.ID) }
	for i := range v.Queues {
		q := &v.Queues[i]
		q.Changing = v.Changes.Queues() > 0 || v.Changes.Removes(q.ID)
		resizes := q.Owner == uuid && v.Changes.Total(q.ID) > 0
		if resizes && (next == nil || order(q) < order(next)) && !v.isLater(*q, waiting) {
			next = q
		}
	}
	if next != nil {
		next.Changing = true
	}
}

// Waiting returns those of the queues that a server has given up to be merged that have not merged yet.
func (v View) Waiting(uuid string, given []ViewQueue) (list []ViewQueue) {
	for _, q := range given {
		owned := slices.ContainsFunc(v.Queues, func(o ViewQueue) bool { return o.ID == q.ID && o.Owner == uuid })
		if total := v.Changes.Total(q.ID); total > 0 && total < q.Total && !owned {
			q.Owner = ""
			list = append(list, q)
		}
	}
	return list
}

// isLater reports whether a queue is to merge with parts of other servers while a part of an earlier queue waits.
func (v View) isLater(q ViewQueue, waiting []ViewQueue) bool {
	total := v.Changes.Total(q.ID)
	order := func(p ViewQueue) int { return p.Index % v.Changes.Total(p.ID) }
	if total >= q.Total || !slices.ContainsFunc(waiting, func(p ViewQueue) bool { return order(p) < order(q) }) {
		return false
	}
	var family []sizedQueue
	for _, p := range slices.Concat(waiting, v.Queues) {
		if (p.Owner == q.Owner || p.Owner == "") && p.Total > 0 && v.Changes.Total(p.ID) == total && order(p) == order(q) {
			family = append(family, sizedQueue{NamedQueue: NamedQueue{Index: p.Index, Total: p.Total}})
		}
	}
	slices.SortFunc(family, func(a, b sizedQueue) int { return a.Index - b.Index })
	return !whole(family, total)
}
