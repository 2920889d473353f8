package roster

import (
	"context"
	"maps"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// waitingExtension writes why queues have no owner.
func waitingExtension() extension { return extension{after: writeWaiting} }

// writeWaiting writes why queues have no owner after the plan, for people: waits_for names the rule that no server
// meets. It skips rows that another transaction holds (L5). A queue that gets an owner loses its waits_for with that
// write.
func writeWaiting(ctx context.Context, p *planning) error {
	owners := make(map[string]string, len(p.in.Queues))
	for _, q := range p.in.Queues {
		owners[q.ID] = q.Owner
	}
	for _, c := range p.written {
		owners[c.QueueID] = c.Owner
	}
	maps.DeleteFunc(owners, func(_, owner string) bool { return owner != "" })
	if len(owners) == 0 {
		return nil
	}
	byReason := map[string][]string{}
	for id := range owners {
		if reason := p.result.Waiting[id].Text; reason != p.in.waiting[id] {
			byReason[reason] = append(byReason[reason], id)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		if err := writeReason(ctx, p.l, reason, slices.Sorted(slices.Values(byReason[reason]))); err != nil {
			return err
		}
	}
	return nil
}

// writeReason writes one reason, or none, into the rows of these queues.
func writeReason(ctx context.Context, l *LockTx, reason string, ids []string) error {
	free, err := lockQueueRows(ctx, l, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !free[id] })
	_, err = l.ExecIn(ctx, ids, `UPDATE schedule_queue SET waits_for = ?
		WHERE `+ofTask+` AND cur_server IS NULL AND queue_id IN ({ids})`, sqldb.Null(reason), l.TaskType, l.OwnSign)
	return err
}
