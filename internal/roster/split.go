package roster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// splitDrained splits a queue that its owner has drained. The owner keeps the queue under the next epoch. It returns
// false if the queue is not to be split.
func splitDrained(ctx context.Context, l *LockTx, s Server, q QueueEpoch) (done bool, err error) {
	queues, err := readSizedQueues(ctx, l)
	if err != nil {
		return false, err
	}
	refused, err := mustBeSplittable(ctx, l)
	if err != nil {
		return false, err
	}
	own := queues[q.ID]
	family, err := queues.toChange(l, own)
	if err != nil || refused != nil || len(family) > 1 || own.Owner != s.uuid || own.Epoch != q.Epoch {
		return false, nil //nolint:nilerr // the request is dropped when the queue has no owner
	}
	return true, splitQueue(ctx, l, own, s.uuid)
}

// splitQueue splits a queue that nobody works. Its row is locked.
func splitQueue(ctx context.Context, l *LockTx, q sizedQueue, actor string) error {
	total := l.Resizing[q.ID]
	delete(l.Resizing, q.ID)
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	err := sqldb.Changed(l.Exec(ctx, `UPDATE schedule_queue SET queue_total = ?, epoch = epoch + 1,
		cur_since = CASE WHEN cur_server IS NULL THEN NULL ELSE {now} END, req_server = NULL, req_since = NULL,
		failing_since = NULL, plan_version = ?, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ? AND epoch = ? AND COALESCE(cur_server, '') = ?`,
		total, l.versions.plan+1, l.TaskType, l.OwnSign, q.ID, q.Epoch, q.Owner))
	if err != nil {
		return sqldb.Wrap(err, "split queue %s", q.ID)
	}
	var parts []QueueRow
	for i := q.Index + q.Total; i < total; i += q.Total {
		parts = append(parts, QueueRow{
			ID: fmt.Sprint(i), Index: i, Total: total, Parameter: q.Parameter, Cursor: q.Cursor, Crashes: q.Crashes,
		})
	}
	if err := insertQueueRows(ctx, l, parts, q.Division, l.Dialect.TimeOrNull(q.WindowDone)); err != nil {
		return err
	}
	for _, part := range parts {
		if err := writeQueueSetting(ctx, l, part.ID, q.Set); err != nil {
			return err
		}
	}
	halves := []sizedQueue{q}
	for _, part := range parts {
		halves = append(halves, sizedQueue{NamedQueue: NamedQueue{ID: part.ID}})
	}
	if err := l.shareBacklog(ctx, []sizedQueue{q}, halves); err != nil {
		return err
	}
	if err := l.queuesChanged(ctx, len(parts)); err != nil {
		return err
	}
	events := []Event{{
		Kind: EventResized, queue: q.ID, from: q.Owner, to: q.Owner, epoch: q.Epoch + 1, Actor: actor,
		Reason: fmt.Sprintf("queue %d of %d became the queues %s of %d", q.Index, q.Total, idsOf(halves), total),
	}}
	for _, part := range parts {
		events = append(events, Event{
			Kind: EventAdded, queue: part.ID, epoch: l.EpochHigh + 1, Actor: actor,
			Reason: fmt.Sprintf("split from queue %s", q.ID),
		})
	}
	return l.Record(ctx, events...)
}

// resizeExtension splits and merges the queues that have lost their owner (N3). Another plan gives the parts owners.
func resizeExtension() extension {
	return extension{last: func(ctx context.Context, p *planning) error {
		_, err := resizeFreeQueues(ctx, p.l, p.actor)
		return err
	}}
}

// resizeFreeQueues splits and merges the queues that are to be and that no server owns. It drops requests that do not
// fit the rows: these were edited by hand, or a cursor has moved, or the task type is not splittable any more. It
// leaves a plan due for queues that need an owner, and reports whether there are any.
func resizeFreeQueues(ctx context.Context, l *LockTx, actor string) (changed bool, err error) {
	if len(l.Resizing) == 0 {
		return false, nil
	}
	queues, err := readSizedQueues(ctx, l)
	if err != nil {
		return false, err
	}
	refused, err := mustBeSplittable(ctx, l)
	if err != nil {
		return false, err
	}
	for _, id := range slices.Sorted(maps.Keys(l.Resizing)) {
		q, found := queues[id]
		total, pending := l.Resizing[id]
		if !pending {
			continue // it has merged with an earlier one
		}
		var family []sizedQueue
		err := errNoQueue
		if found {
			family, err = queues.toChange(l, q)
		}
		err = cmp.Or(refused, err)
		if err != nil {
			if err := dropRequest(ctx, l, q, id, actor, err); err != nil {
				return false, err
			}
			continue
		}
		done, err := changeFree(ctx, l, family, total, actor)
		if err != nil {
			return false, err
		}
		changed = changed || done
	}
	return changed, nil
}

// dropRequest withdraws a request that does not fit the rows.
func dropRequest(ctx context.Context, l *LockTx, q sizedQueue, id, actor string, why error) error {
	total := l.Resizing[id]
	delete(l.Resizing, id)
	l.versions.partition++ // the servers read their queues again
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	return l.Record(ctx, Event{
		Kind: EventResizing, queue: id, epoch: q.Epoch, Actor: actor,
		Reason: fmt.Sprintf("the request for the total %d was withdrawn: %v", total, why),
	})
}

// toChange returns the queues that change together with q: itself if it is to be split, or those that merge. It returns
// an error if the request does not fit them.
func (queues sizedQueues) toChange(l *LockTx, q sizedQueue) ([]sizedQueue, error) {
	switch total := l.Resizing[q.ID]; {
	case total < 1 || total > maxTotal || q.Total < 1:
		return nil, fmt.Errorf("the total must be between 1 and %d", maxTotal)
	case total > q.Total && total%q.Total == 0:
		return []sizedQueue{q}, nil
	case total < q.Total && q.Total%total == 0:
		family := queues.family(q, total)
		for _, other := range family {
			if l.Resizing[other.ID] != total {
				return nil, fmt.Errorf("queue %s does not merge", other.ID)
			}
		}
		return family, mayMerge(family, total)
	}
	return nil, fmt.Errorf("the total is %d", q.Total)
}

// changeFree splits or merges queues, unless one of them has an owner, or a transaction holds its row.
func changeFree(ctx context.Context, l *LockTx, family []sizedQueue, total int, actor string) (done bool, err error) {
	ids := make([]string, len(family))
	for i, q := range family {
		if ids[i] = q.ID; q.Owner != "" {
			return false, nil
		}
	}
	free, err := lockQueueRows(ctx, l, ids)
	if err != nil {
		return false, err
	}
	if len(free) < len(ids) {
		return false, l.noteSkipped(ctx)
	}
	if total > family[0].Total {
		return true, splitQueue(ctx, l, family[0], actor)
	}
	return true, mergeQueues(ctx, l, family, total, actor)
}

// mergeQueues merges queues that nobody works into the first of them. Their rows are locked.
func mergeQueues(ctx context.Context, l *LockTx, family []sizedQueue, total int, actor string) error {
	first, gone := family[0], family[1:]
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	crashes, windowDone := first.Crashes, first.WindowDone
	var events []Event
	for _, q := range family {
		delete(l.Resizing, q.ID)
		crashes = max(crashes, q.Crashes)
		if q.WindowDone.Before(windowDone) { // the zero time is before all others
			windowDone = q.WindowDone
		}
	}
	if err := l.shareBacklog(ctx, family, family[:1]); err != nil {
		return err
	}
	for _, q := range gone {
		if err := l.deleteRows(ctx, "schedule_queue", `queue_id = ?`, q.ID); err != nil {
			return err
		}
		events = append(events, Event{
			Kind: EventRemoved, queue: q.ID, epoch: q.Epoch, Actor: actor, Reason: "merged into queue " + first.ID,
		})
	}
	if err := deleteLostSettings(ctx, l); err != nil {
		return err
	}
	_, err := l.Exec(ctx, `UPDATE schedule_queue SET failing_since = NULL, queue_total = ?, epoch = ?, crash_count = ?,
		window_done_at = ?, gmt_modified = {now} WHERE `+ofTask+` AND queue_id = ?`,
		total, l.EpochHigh+1, crashes, l.Dialect.TimeOrNull(windowDone), l.TaskType, l.OwnSign, first.ID)
	if err != nil {
		return fmt.Errorf("merge the queues %s: %w", idsOf(family), err)
	}
	if err := l.queuesChanged(ctx, -len(gone)); err != nil {
		return err
	}
	return l.Record(ctx, append(events, Event{
		Kind: EventResized, queue: first.ID, epoch: l.EpochHigh + 1, Actor: actor,
		Reason: fmt.Sprintf("the queues %s became queue %s of %d", idsOf(family), first.ID, total),
	})...)
}
