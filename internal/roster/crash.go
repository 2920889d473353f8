package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// crashExtension counts the owners of a queue that die one after the other (S14).
func crashExtension() extension {
	return extension{after: func(ctx context.Context, p *planning) error { return countCrashes(ctx, p.l, p.crashed()) }}
}

// crashed returns the queues that the plan takes from owners that are not in the roster any more: a server has expired
// them, and they have not handed the queues over.
func (p *planning) crashed() (queues []string) {
	live := map[string]bool{"": true, p.leaving: true}
	for _, s := range p.staying {
		live[s.UUID] = true
	}
	for _, c := range p.written {
		if c.ChangesOwner() && !live[c.OldOwner] {
			queues = append(queues, c.QueueID)
		}
	}
	return queues
}

// countCrashes adds a crash to queues whose rows the plan has just written. It does not ask whether the server had
// items in flight: the server's row is as old as its last heartbeat, and an item may end a process within milliseconds.
func countCrashes(ctx context.Context, l *LockTx, queues []string) error {
	_, err := l.ExecIn(ctx, queues, `UPDATE schedule_queue SET crash_count = crash_count + 1
		WHERE `+ofTask+` AND queue_id IN ({ids})`, l.TaskType, l.OwnSign)
	return sqldb.Wrap(err, "count the crashes of queues")
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
				ended := condition.Condition{Kind: condition.Crashes.Name, TaskType: s.taskType, QueueID: q.ID}
				err = s.roster.EndAlert(ctx, ended, 0)
			}
		}
		if err != nil {
			return fmt.Errorf("reset the crash counts of %d queues of %s$%s: %w", len(part), s.taskType, s.roster.OwnSign, err)
		}
	}
	return nil
}
