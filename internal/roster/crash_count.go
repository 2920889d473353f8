package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// crashed returns the queues that the plan takes from owners that are not in the roster any more: a server has expired
// them, and they have not handed the queues over (S14). servers are the servers of the plan, without the server that
// leaves.
func (p rebalancing) crashed(written []plan.Change, servers []ServerRow) (queues []string) {
	live := map[string]bool{"": true, p.leaving: true}
	for _, s := range servers {
		live[s.UUID] = true
	}
	for _, c := range written {
		if c.ChangesOwner() && !live[c.OldOwner] {
			queues = append(queues, c.QueueID)
		}
	}
	return queues
}

// countCrashes adds a crash to queues whose rows the plan has just written. It does not ask whether the server had
// items in flight: the server's row is as old as its last heartbeat, and an item may end a process within milliseconds.
func countCrashes(ctx context.Context, l *LockTx, queues []string) error {
	for part := range slices.Chunk(queues, InsertRows) {
		_, err := l.Exec(ctx, `UPDATE schedule_queue SET crash_count = crash_count + 1
			WHERE task_type = ? AND own_sign = ? AND queue_id IN (`+sqldb.Marks(len(part))+`)`,
			append([]any{l.TaskType, l.OwnSign}, sqldb.Args(part)...)...)
		if err != nil {
			return fmt.Errorf("count the crashes of queues: %w", err)
		}
	}
	return nil
}

// queuesPerReset is how many queues one statement of ResetCrashes changes.
const queuesPerReset = 100

// ResetCrashes sets the crash counts of queues to 0 that the server owns under these epochs, and ends the alerts about
// them. The server has executed a page of each and is still alive (S14). ResetCrashes skips queues that the server does
// not own any more.
func (s Server) ResetCrashes(ctx context.Context, queues []QueueEpoch) error {
	for part := range slices.Chunk(queues, queuesPerReset) {
		args := []any{s.taskType, s.roster.OwnSign, s.uuid}
		for _, q := range part {
			args = append(args, q.ID, q.Epoch)
		}
		own := strings.TrimSuffix(strings.Repeat(`queue_id = ? AND epoch = ? OR `, len(part)), ` OR `)
		reset := false
		err := s.roster.DB.Retry(ctx, func() (bool, error) {
			n, err := s.roster.DB.Exec(ctx, `UPDATE schedule_queue SET crash_count = 0
				WHERE task_type = ? AND own_sign = ? AND cur_server = ? AND crash_count > 0 AND (`+own+`)`, args...)
			reset = reset || n > 0
			return true, err
		})
		for _, q := range part {
			if err == nil && reset {
				err = s.roster.EndAlert(ctx, condition.Condition{Kind: condition.Crashes, TaskType: s.taskType, QueueID: q.ID}, 0)
			}
		}
		if err != nil {
			return fmt.Errorf("reset the crash counts of %d queues of %s$%s: %w", len(part), s.taskType, s.roster.OwnSign, err)
		}
	}
	return nil
}
