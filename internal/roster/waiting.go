package roster

import (
	"context"
	"maps"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// writeWaiting writes why queues have no owner after the plan, for people: waits_for names the rule that no server meets. It
// skips rows that another transaction holds (L5). A queue that gets an owner loses its waits_for with that write.
func writeWaiting(ctx context.Context, l *LockTx, in PlanInput, waiting map[string]plan.Waiting, written []plan.Change) error {
	owners := make(map[string]string, len(in.Queues))
	for _, q := range in.Queues {
		owners[q.ID] = q.Owner
	}
	for _, c := range written {
		owners[c.QueueID] = c.Owner
	}
	maps.DeleteFunc(owners, func(_, owner string) bool { return owner != "" })
	if len(owners) == 0 {
		return nil
	}
	byReason := map[string][]string{}
	for id := range owners {
		if reason := waiting[id].Text; reason != in.waiting[id] {
			byReason[reason] = append(byReason[reason], id)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		if err := writeReason(ctx, l, reason, slices.Sorted(slices.Values(byReason[reason]))); err != nil {
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
	for part := range slices.Chunk(ids, InsertRows) {
		_, err := l.Exec(ctx, `UPDATE schedule_queue SET waits_for = ? WHERE task_type = ? AND own_sign = ? AND cur_server IS NULL AND queue_id IN (`+sqldb.Marks(len(part))+`)`,
			append([]any{sqldb.Null(reason), l.TaskType, l.OwnSign}, sqldb.Args(part)...)...)
		if err != nil {
			return err
		}
	}
	return nil
}
