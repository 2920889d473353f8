package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// RebalanceOptions are the options of Rebalance.
type RebalanceOptions struct {
	// Watched is how long the actor, the server that rebalances, has observed the roster without a gap (S7). Rebalance
	// first expires each server that has been silent for its judge_dead_interval, if that interval is not longer than
	// Watched. Zero expires no server.
	Watched time.Duration
	// MaxHeartbeatAge is the greatest age of the actor's own last heartbeat with which the actor may expire servers.
	// If it is older, the actor has itself been away, and expires no server.
	MaxHeartbeatAge time.Duration
	// RepliedAt is the database's time in the heartbeat reply that Watched belongs to. The clock may have been set
	// since: a server is dead only if it was dead at that time, too. Defaults to the time under the lock.
	RepliedAt time.Time
	// Inherited says that the actor has a part of Watched from other servers. They notice a clock that was set one
	// heartbeat too late, so a server must then be silent for half as long again.
	Inherited bool

	// Ended are the locks of processes that have ended, as a witness has proved (S15). Rebalance first expires their
	// servers, whenever their last heartbeats came.
	Ended []string

	Always bool // rebalance although nothing that the planner reads has changed

	// RetrySkipped makes Rebalance write at once what an earlier plan skipped. An owner sets it when its transactions do
	// not hold the rows any more (L5). The other servers wait until the plan is due.
	RetrySkipped bool

	// SharesDue makes Rebalance grant calls in flight that are free to servers that have fewer than they are to have
	// (P10).
	SharesDue bool

	// NoWait makes Rebalance do nothing while another transaction has the lock row. A server sets it when a heartbeat
	// reply says that a plan is due. Hundreds of servers learn that at once, and most likely one of them is planning
	// already. If not, the next reply says so again. SQLite waits all the same.
	NoWait bool
}

// Rebalance plans the owners of the queues and writes the changes, in one transaction under the lock row: lock,
// clock, read the servers, expire, read the queues, plan, write (L3). Without Always it does nothing if another
// server has planned meanwhile, and mostly does not even take the lock: in a large roster many servers learn with their
// heartbeats that a plan is due, and one makes it.
func (p Planner) Rebalance(ctx context.Context, o RebalanceOptions) (done RebalanceResult, err error) {
	due, busy, err := p.rebalanceDue(ctx, o)
	if err != nil || !due {
		return RebalanceResult{Busy: busy, SkippedKnown: o.RetrySkipped && !busy && err == nil}, err
	}
	lock := p.roster.UnderLock
	if o.NoWait {
		lock = p.roster.underFreeLock
	}
	err = lock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
		_, silences, err := rebalance(ctx, l, rebalancing{RebalanceOptions: o, actor: p.actor})
		done = RebalanceResult{SkippedKnown: true, Skipped: l.versions.toMove, Silences: silences}
		return err
	})
	if errors.Is(err, sqldb.ErrBusy) {
		return RebalanceResult{Busy: true}, nil
	}
	if err != nil {
		return RebalanceResult{}, fmt.Errorf("rebalance %w", err)
	}
	return done, nil
}

// rebalanceDue reports, with one statement and without waiting, whether there is anything to do. With NoWait it also
// reports whether another transaction has the lock row. A change right after the statement comes with the next
// heartbeat reply; correctness does not depend on this check.
func (p Planner) rebalanceDue(ctx context.Context, o RebalanceOptions) (due, busy bool, err error) {
	if o.Always {
		return true, false, nil
	}
	condition := planDue
	if o.RetrySkipped {
		condition += ` OR skipped IS NOT NULL`
	}
	if o.SharesDue {
		condition += ` OR ` + sharesDue
	}
	if o.Watched > 0 {
		condition += ` OR EXISTS (SELECT 1 FROM schedule_server d WHERE d.task_type = q.task_type AND d.own_sign = q.own_sign AND ` + isDead + `)`
	}
	if len(o.Ended) > 0 {
		condition += ` OR EXISTS (SELECT 1 FROM schedule_server d WHERE d.task_type = q.task_type AND d.own_sign = q.own_sign AND d.witness IN (` + sqldb.Marks(len(o.Ended)) + `))`
	}
	query := `SELECT CASE WHEN ` + condition + ` THEN 1 ELSE 0 END FROM schedule_task_running q WHERE task_type = ? AND own_sign = ?`
	if o.NoWait {
		query += p.roster.DB.SkipLocked
	}
	var free bool
	err = p.roster.DB.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		free = false
		return true, p.roster.DB.Each(ctx, func(rows *sql.Rows) error {
			var n int
			err := rows.Scan(&n)
			free, due = true, n == 1
			return err
		}, query, append(sqldb.Args(o.Ended), p.taskType, p.roster.OwnSign)...)
	})
	if skips := o.NoWait && p.roster.DB.SkipLocked != ""; err == nil && !free && !skips {
		err = ErrUnknownTask
	}
	if err != nil {
		return false, false, fmt.Errorf("rebalance %s$%s: check whether a plan is due: %w", p.taskType, p.roster.OwnSign, err)
	}
	return due, !free, nil
}

// RebalanceResult is the result of Rebalance.
type RebalanceResult struct {
	// SkippedKnown says that Skipped is what the lock row says. Without it, Rebalance has not read the row.
	SkippedKnown bool
	// Skipped are queues that are to move while fenced transactions hold their rows. If one such transaction follows the
	// other, the rows may never be free. So the owner, which learns of them with its heartbeat, drains these queues and
	// rebalances again. That rebalance writes the request (L5).
	Skipped []string
	// Busy says that Rebalance did nothing because another transaction had the lock row (NoWait).
	Busy bool
	// Silences are how long the servers that were expired had been silent: for that time no server worked their
	// queues. If the clock was set back since, it is the judge_dead_interval.
	Silences []time.Duration
}
