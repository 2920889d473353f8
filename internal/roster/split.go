package roster

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// splitQueue splits a queue that nobody works. An owner that has drained it keeps it under the next epoch. A
// reservation ends (P13). Its row is locked.
func splitQueue(ctx context.Context, l *LockTx, q sizedQueue, actor string) error {
	total := l.Changes.Total(q.ID)
	delete(l.Changes, q.ID)
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	err := sqldb.Changed(l.Exec(ctx, `UPDATE schedule_queue SET queue_total = ?, epoch = epoch + 1,
		cur_since = CASE WHEN cur_server IS NULL THEN NULL ELSE {now} END, req_server = NULL, req_since = NULL,
		failing_since = NULL, reserved_for = NULL, reserved_until = NULL, plan_version = ?, gmt_modified = {now}
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
	halves := []sizedQueue{q}
	for _, part := range parts {
		halves = append(halves, sizedQueue{NamedQueue: NamedQueue{ID: part.ID}})
	}
	if err := writeQueueSettings(ctx, l, halves[1:], q.Set); err != nil {
		return err
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

// toChange returns the queues that change together with q: itself if it is to be split, or those that merge. It returns
// an error if the request does not fit them.
func (queues sizedQueues) toChange(l *LockTx, q sizedQueue) ([]sizedQueue, error) {
	switch total := l.Changes.Total(q.ID); {
	case total < 1 || total > maxTotal || q.Total < 1:
		return nil, fmt.Errorf("the total must be between 1 and %d", maxTotal)
	case total > q.Total && total%q.Total == 0:
		return []sizedQueue{q}, nil
	case total < q.Total && q.Total%total == 0:
		family := queues.family(q, total)
		for _, other := range family {
			if l.Changes.Total(other.ID) != total {
				return nil, fmt.Errorf("queue %s does not merge", other.ID)
			}
		}
		return family, mayMerge(family, total)
	}
	return nil, fmt.Errorf("the total is %d", q.Total)
}

// mergeQueues merges queues that nobody works into the first of them, which is not reserved any more (P13): it has
// items of servers that are there. Their rows are locked.
func mergeQueues(ctx context.Context, l *LockTx, family []sizedQueue, total int, actor string) error {
	first, gone := family[0], family[1:]
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return err
	}
	crashes, windowDone := first.Crashes, first.WindowDone
	var events []Event
	for _, q := range family {
		delete(l.Changes, q.ID)
		crashes = max(crashes, q.Crashes)
		if q.WindowDone.Before(windowDone) { // the zero time is before all others
			windowDone = q.WindowDone
		}
	}
	if err := l.shareBacklog(ctx, family, family[:1]); err != nil {
		return err
	}
	if err := l.deleteQueueRows(ctx, "schedule_queue", gone); err != nil {
		return err
	}
	for _, q := range gone {
		events = append(events, Event{
			Kind: EventRemoved, queue: q.ID, epoch: q.Epoch, Actor: actor, Reason: "merged into queue " + first.ID,
		})
	}
	if err := deleteLostSettings(ctx, l); err != nil {
		return err
	}
	_, err := l.Exec(ctx, `UPDATE schedule_queue SET failing_since = NULL, queue_total = ?, epoch = ?, crash_count = ?,
		window_done_at = ?, reserved_for = NULL, reserved_until = NULL, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ?`,
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
