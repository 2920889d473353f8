package roster

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// endedAttempts bounds the attempts to expire a server whose heartbeat was still under way when its process ended.
const endedAttempts = 3

// The pauses before the attempts to take over queues whose rows transactions of the ended process hold.
const (
	firstEndedPause = 20 * time.Millisecond
	lastEndedPause  = 1280 * time.Millisecond
)

// ExpireEnded expires the servers of the task type whose processes held these locks and have ended (S15), and gives their
// queues to other servers. The result is that of Rebalance. It takes no lock if there is no such server.
//
// The database may not have noticed yet that the process's connections are gone: their fenced transactions hold the rows of
// their queues, which the plan skips (L5). So ExpireEnded plans again, after pauses that double, for two and a half seconds
// at most. Then the heartbeats of the servers go on with it. It does so, too, if another server has expired the servers and
// skipped the rows: when it returns, the caller can read which queues it has got.
func (p Planner) ExpireEnded(ctx context.Context, locks []string) (done RebalanceResult, err error) {
	for range endedAttempts { // the last one usually finds nothing left: a heartbeat may arrive between read and write (L3)
		next, err := p.Rebalance(ctx, RebalanceOptions{Ended: locks, RetrySkipped: true})
		if err != nil {
			return done, err
		}
		next.Silences = append(done.Silences, next.Silences...)
		done = next
	}
	for pause := firstEndedPause; len(done.Skipped) > 0 && pause <= lastEndedPause; pause *= 2 {
		select {
		case <-ctx.Done():
			return done, nil
		case <-time.After(pause):
		}
		next, err := p.Rebalance(ctx, RebalanceOptions{RetrySkipped: true})
		if err != nil {
			return done, err
		}
		done.Skipped = next.Skipped
	}
	return done, nil
}

// ExpireEnded does what Planner.ExpireEnded does, for the servers of all task types and environments in the database. It
// returns how many it has expired.
func (r *Roster) ExpireEnded(ctx context.Context, locks []string, actor string) (expired int, err error) {
	type key struct{ taskType, ownSign string }
	var rosters []key
	if len(locks) > 0 {
		err = r.DB.Each(ctx, func(rows *sql.Rows) error {
			var k key
			err := rows.Scan(&k.taskType, &k.ownSign)
			rosters = append(rosters, k)
			return err
		}, `SELECT DISTINCT task_type, own_sign FROM schedule_server WHERE witness IN (`+sqldb.Marks(len(locks))+`) ORDER BY task_type, own_sign`, sqldb.Args(locks)...)
	}
	if err != nil {
		return 0, fmt.Errorf("look for servers whose processes have ended: %w", err)
	}
	for _, k := range rosters {
		done, err := r.In(k.ownSign).Planner(k.taskType, actor).ExpireEnded(ctx, locks)
		if expired += len(done.Silences); err != nil {
			return expired, err
		}
	}
	return expired, nil
}
