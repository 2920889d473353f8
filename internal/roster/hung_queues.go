package roster

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ClearHungQueues takes queues off the server's list of hung queues, because nothing of a former session is in flight for
// them any more, and rebalances: from now on the server may get them (P9). It returns ErrGone if the server's row is gone.
func (s Server) ClearHungQueues(ctx context.Context, queues []string) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		var hung sqldb.List
		err := l.QueryRow(ctx, `SELECT hung_queues FROM schedule_server WHERE uuid = ?`, s.uuid).Scan(&hung)
		if sqldb.NoRows(err) {
			return ErrGone
		}
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(hung), func(id string) bool { return slices.Contains(queues, id) })
		if len(left) == len(hung) {
			return nil
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_server SET hung_queues = ? WHERE uuid = ?`, left, s.uuid)
		return err
	})
	if err != nil {
		return fmt.Errorf("clear the hung queues of %s of %w", s.uuid, err)
	}
	return nil
}
