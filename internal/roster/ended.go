package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// endedAttempts bounds the attempts to expire a server whose heartbeat was still under way when its process ended.
const endedAttempts = 3

// The pauses of ExpireEnded, each eight times the one before.
const (
	firstEndedPause = 20 * time.Millisecond
	lastEndedPause  = 1280 * time.Millisecond
)

// ExpireEnded expires the servers of the task type whose processes held these locks and have ended (S15), and gives their
// queues to other servers. The result is that of Rebalance. It takes no lock if there is no such server. All processes of
// a host call it at the same moment: one of them expires the servers and plans, and the others see that it is done.
//
// The database may not have noticed yet that the process's connections are gone: their fenced transactions hold the rows of
// their queues, which the plan skips (L5). So the process that has expired the servers plans three times more in one and a
// half seconds. From then on it is a plan that is due, as after any other that skipped rows.
func (p Planner) ExpireEnded(ctx context.Context, locks []string) (done RebalanceResult, err error) {
	for range endedAttempts { // the last one usually finds nothing left: a heartbeat may arrive between read and write (L3)
		next, err := p.expireEnded(ctx, locks)
		if err != nil {
			return done, err
		}
		done.Silences = append(done.Silences, next.Silences...)
		if next.SkippedKnown {
			done.Skipped, done.SkippedKnown = next.Skipped, true
		}
	}
	for pause := firstEndedPause; len(done.Silences) > 0 && len(done.Skipped) > 0 && pause <= lastEndedPause; pause *= 8 {
		if !sleep(ctx, pause) {
			return done, nil
		}
		next, err := p.Rebalance(ctx, RebalanceOptions{RetrySkipped: true})
		if err != nil {
			return done, err
		}
		done.Skipped = next.Skipped
	}
	return done, nil
}

// expireEnded expires the servers in one transaction. While another one has the lock row, it only looks again: most
// likely another process of the host does the same. In the end it waits in the line.
func (p Planner) expireEnded(ctx context.Context, locks []string) (done RebalanceResult, err error) {
	for pause := firstEndedPause; ; pause *= 8 {
		done, err = p.Rebalance(ctx, RebalanceOptions{Ended: locks, NoWait: pause <= lastEndedPause})
		if err != nil || !done.Busy || !sleep(ctx, pause) {
			return done, err
		}
	}
}

// sleep waits, and reports false if ctx has ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// ExpireEnded does what Planner.ExpireEnded does, for the servers of all task types and environments in the database. It
// returns how many it has expired.
func (r *Roster) ExpireEnded(ctx context.Context, locks []string, actor string) (expired int, err error) {
	type key struct{ TaskType, OwnSign string }
	var rosters []key
	if len(locks) > 0 {
		rosters, err = sqldb.Records[key](ctx, r.DB, `SELECT DISTINCT task_type, own_sign FROM schedule_server WHERE witness IN (`+sqldb.Marks(len(locks))+`) ORDER BY task_type, own_sign`, sqldb.Args(locks)...)
	}
	if err != nil {
		return 0, fmt.Errorf("look for servers whose processes have ended: %w", err)
	}
	for _, k := range rosters {
		done, err := r.In(k.OwnSign).Planner(k.TaskType, actor).ExpireEnded(ctx, locks)
		if expired += len(done.Silences); err != nil {
			return expired, err
		}
	}
	return expired, nil
}
