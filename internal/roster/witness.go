package roster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ended reports whether a witness has proved that the process of a server has ended (S15).
func (o RebalanceOptions) ended(s ServerRow) bool {
	return s.Witness != "" && slices.Contains(o.Ended, s.Witness)
}

// endedReads is how often an attempt to expire a server looks whether a heartbeat was still under way when the
// server's process ended. The last one usually finds nothing left: a heartbeat may arrive between read and write (L3).
const endedReads = 3

// The pauses between the attempts of an Ending. Each is four times the one before.
const (
	firstEndedPause = 20 * time.Millisecond
	busyEndedPause  = 80 * time.Millisecond // after it, the next attempt waits for the lock row
	lastEndedPause  = 1280 * time.Millisecond
)

// Ending expires the servers of a task type whose processes have ended (S15), and gives their queues to other servers.
// It makes attempts with pauses between them, because two things may still be in the way.
//
// All processes of a host notice the end at the same moment: one of them expires the servers and plans. While that one
// has the lock row, the others only look again later whether it is done. In the end they wait in the line.
//
// The database may not have noticed yet that the process's connections are gone: their fenced transactions hold the
// rows of their queues, which the plan skips (L5). So the process that has expired the servers plans four times more
// within two seconds. From then on it is a plan that is due, as after any other that skipped rows.
//
// The caller waits between two attempts, because it may have work of its own: the first plan may have given it queues.
// The zero value is an Ending before its first attempt.
type Ending struct {
	pause   time.Duration // before the next attempt
	skipped bool          // this process has expired the servers, and a plan skipped rows
}

// Attempt makes the next attempt for the processes that held these locks. It takes no lock row if they have no server.
// The result is that of Rebalance. again is the pause before the next attempt, or 0 if there is nothing left to do.
func (e *Ending) Attempt(ctx context.Context, p Planner, locks []string) (
	done RebalanceResult, again time.Duration, err error,
) {
	o := RebalanceOptions{Ended: locks, NoWait: e.pause < busyEndedPause && !e.skipped, RetrySkipped: e.skipped}
	for range endedReads {
		next, err := p.Rebalance(ctx, o)
		if err != nil {
			return done, 0, err
		}
		next.Silences = append(done.Silences, next.Silences...)
		if !next.SkippedKnown {
			next.Skipped, next.SkippedKnown = done.Skipped, done.SkippedKnown
		}
		if done = next; done.Busy {
			break
		}
		o.RetrySkipped = false
	}
	if len(done.Silences) > 0 {
		*e = Ending{skipped: true}
	}
	if done.Busy || e.skipped && len(done.Skipped) > 0 && e.pause < lastEndedPause {
		e.pause = max(firstEndedPause, 4*e.pause)
		return done, e.pause, nil
	}
	return done, 0, nil
}

// ExpireEnded makes the attempts of an Ending, and waits between them.
func (p Planner) ExpireEnded(ctx context.Context, locks []string) (done RebalanceResult, err error) {
	for e := (&Ending{}); ; {
		next, again, err := e.Attempt(ctx, p, locks)
		next.Silences = append(done.Silences, next.Silences...)
		if done = next; err != nil || again == 0 || !sleep(ctx, again) {
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

// ExpireEnded does what Planner.ExpireEnded does, for the servers of all task types and environments in the database.
// It returns how many it has expired.
func (r *Roster) ExpireEnded(ctx context.Context, locks []string, actor string) (expired int, err error) {
	type key struct{ TaskType, OwnSign string }
	var rosters []key
	if len(locks) > 0 {
		rosters, err = sqldb.Records[key](ctx, r.DB, `SELECT DISTINCT task_type, own_sign FROM schedule_server
			WHERE witness IN (`+sqldb.Marks(len(locks))+`) ORDER BY task_type, own_sign`, sqldb.Args(locks)...)
	}
	if err != nil {
		return 0, fmt.Errorf("look for workers whose processes have ended: %w", err)
	}
	for _, k := range rosters {
		done, err := r.In(k.OwnSign).Planner(k.TaskType, actor).ExpireEnded(ctx, locks)
		if expired += len(done.Silences); err != nil {
			return expired, err
		}
	}
	return expired, nil
}
