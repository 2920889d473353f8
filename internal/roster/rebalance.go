package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// RebalanceOptions is one planning.
type RebalanceOptions struct {
	Actor string // the uuid of who plans

	// Watched is for how long the actor has watched without a gap (S7): it buries, first of all, those
	// whose judge_dead_interval is not longer and has passed. Zero buries nobody.
	Watched time.Duration
	// MaxHeartbeatAge is how old the actor's own last heartbeat may be for that: if it is older, the actor
	// has itself been away, and buries nobody.
	MaxHeartbeatAge time.Duration
	// RepliedAt is the database's time of the pulse that Watched was told with. The clock may have been set
	// since: a server is dead only if it was so then, too. Defaults to the time under the lock.
	RepliedAt time.Time
	// Inherited says that part of Watched was others'. They tell of a clock that was set a beat too
	// late, and so the actor waits for half as long again.
	Inherited bool

	Always bool // plan although nothing that the planner reads has changed

	// NoWait does nothing while another has the lock row, as whoever learns from a pulse that a plan is due does:
	// hundreds may, and most likely it is being made. If it is not, the next pulse tells. SQLite waits all the same.
	NoWait bool
}

// Rebalance plans and writes who owns what, in one transaction under the lock row: lock, clock,
// expire, read servers, read queues, plan, write (L3). Without Always it does nothing when
// another has planned meanwhile, and then, most of the time, without taking the lock: in a large roster many learn
// with their heartbeats that a plan is due, and one makes it.
func (r *Roster) Rebalance(ctx context.Context, taskType string, a RebalanceOptions) (done RebalanceResult, err error) {
	due, busy, err := r.rebalanceDue(ctx, taskType, a)
	if err != nil || !due {
		return RebalanceResult{Busy: busy}, err
	}
	lock := r.UnderLock
	if a.NoWait {
		lock = r.underFreeLock
	}
	err = lock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		done = RebalanceResult{}
		skipped, err := l.rebalance(ctx, rebalancing{RebalanceOptions: a})
		done.Silences = l.silences
		for _, change := range skipped {
			if change.OldOwner == a.Actor && change.Requester != "" {
				done.Blocked = append(done.Blocked, change.QueueID)
			}
		}
		return err
	})
	if errors.Is(err, sqldb.ErrBusy) {
		return RebalanceResult{Busy: true}, nil
	}
	if err != nil {
		return RebalanceResult{}, fmt.Errorf("assign %w", err)
	}
	return done, nil
}

// rebalanceDue looks in one statement, and without waiting, whether there is anything to do, and if the actor does not
// wait, whether another has the lock row. What changes right after is told by the next pulse; nothing rests on this look.
func (r *Roster) rebalanceDue(ctx context.Context, taskType string, a RebalanceOptions) (yes, busy bool, err error) {
	if a.Always {
		return true, false, nil
	}
	due := `membership_version <> planned_version`
	if a.Watched > 0 {
		due += ` OR EXISTS (SELECT 1 FROM schedule_server d WHERE d.task_type = q.task_type AND d.own_sign = q.own_sign AND ` + isDead + `)`
	}
	query := `SELECT CASE WHEN ` + due + ` THEN 1 ELSE 0 END FROM schedule_task_running q WHERE task_type = ? AND own_sign = ?`
	if a.NoWait {
		query += r.DB.SkipLocked
	}
	var free bool
	err = r.DB.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		free = false
		return true, r.DB.Each(ctx, func(rows *sql.Rows) error {
			var n int
			err := rows.Scan(&n)
			free, yes = true, n == 1
			return err
		}, query, taskType, r.OwnSign)
	})
	if skips := a.NoWait && r.DB.SkipLocked != ""; err == nil && !free && !skips {
		err = ErrUnknownTask
	}
	if err != nil {
		return false, false, fmt.Errorf("assign %s$%s: look whether a plan is due: %w", taskType, r.OwnSign, err)
	}
	return yes, !free, nil
}

// RebalanceResult is what a planning came to.
type RebalanceResult struct {
	// Blocked are the actor's queues that shall move while the actor's own fenced transactions hold their
	// rows. With one transaction after the other they might never be free: the actor drains these queues
	// and assigns again, and the request is written.
	Blocked []string
	// Busy says that nothing was done because another had the lock row (NoWait).
	Busy bool
	// SilentFor is for how long the servers had been silent that this planning buried: how long their queues
	// were worked by nobody. Where the clock was set back since, it is the judge_dead_interval.
	Silences []time.Duration
}

// auditInterval is how often some server of a roster checks that the rows are as planned.
const auditInterval = 30 * time.Second

// Audit plans from unlocked reads, once per audit interval and roster (S4), and repairs what is
// wrong, whoever made it: a row that was edited by hand, say. It tells whether it was this
// server's turn.
func (r *Roster) Audit(ctx context.Context, taskType, actor string) (turn bool, err error) {
	n, err := r.DB.Exec(ctx, `UPDATE schedule_task_running SET audited_at = {now}
		WHERE task_type = ? AND own_sign = ? AND (audited_at IS NULL OR audited_at > {now} OR audited_at < {ago `+fmt.Sprint(auditInterval.Milliseconds())+`})`+r.DB.Limits, taskType, r.OwnSign)
	if err != nil || n == 0 {
		return false, err
	}
	l := Reader{DB: r.DB.Store, Dialect: r.DB.Dialect, TaskType: taskType, OwnSign: r.OwnSign}
	servers, err := l.Servers(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", taskType, r.OwnSign, err)
	}
	removing, err := l.Removing(ctx)
	if err != nil {
		return true, fmt.Errorf("audit %s$%s: %w", taskType, r.OwnSign, err)
	}
	changes, err := l.plan(ctx, servers, removing)
	if err != nil || len(changes) == 0 {
		return true, err
	}
	_, err = r.Rebalance(ctx, taskType, RebalanceOptions{Actor: actor, Always: true})
	return true, err
}

// rebalancing is an RebalanceOptions, or the one of a server that leaves.
type rebalancing struct {
	RebalanceOptions
	leaving string   // who is to own nothing any more; its queues are handed over in order,
	forced  []string // but for these,
	reason  string   // for a reason
}

// actorIsCurrent looks at the actor's own heartbeat by the clock that was read after the lock, and compares it
// with the pulse: if they are apart, the clock was set meanwhile, or this was long on its way.
func (p rebalancing) actorIsCurrent(servers []ServerRow, now time.Time) bool {
	own := slices.IndexFunc(servers, func(s ServerRow) bool { return s.UUID == p.Actor })
	if own < 0 {
		return false
	}
	beat := servers[own].Heartbeat
	return now.Sub(beat).Abs() <= p.MaxHeartbeatAge && (p.RepliedAt.IsZero() || beat.Sub(p.RepliedAt).Abs() <= p.MaxHeartbeatAge)
}

// rebalancing returns the changes that had to wait, because their rows are held.
func (l *LockTx) rebalance(ctx context.Context, p rebalancing) (skipped []plan.Change, err error) {
	due := func() bool { return l.plannedVersion != l.membershipVersion || p.Always }
	if !due() && p.Watched == 0 {
		return nil, nil
	}
	r := Reader{DB: l.Raw, Dialect: l.Dialect, TaskType: l.TaskType, OwnSign: l.OwnSign}
	servers, err := r.Servers(ctx)
	if err != nil {
		return nil, err
	}
	if p.Watched > 0 && p.actorIsCurrent(servers, l.Now) {
		if servers, err = l.Expire(ctx, servers, p.RebalanceOptions); err != nil {
			return nil, err
		}
	}
	if !due() {
		return nil, nil
	}
	servers = slices.DeleteFunc(servers, func(s ServerRow) bool { return s.UUID == p.leaving })
	changes, err := r.plan(ctx, servers, l.removing)
	if err != nil {
		return nil, err
	}
	written, skipped, err := l.WritePlan(ctx, changes)
	if err != nil {
		return nil, err
	}
	if err := l.Record(ctx, p.events(written)...); err != nil {
		return nil, err
	}
	if len(l.removing) > 0 {
		if err := l.deleteRemovedQueues(ctx, p.Actor); err != nil {
			return nil, err
		}
	}
	return skipped, l.recordPlanned(ctx, p.Actor, len(written) > 0, len(skipped) == 0)
}

// recordPlanned notes on the lock row what was done. A plan of which a part had to wait stays due.
func (l *LockTx) recordPlanned(ctx context.Context, actor string, changed, complete bool) error {
	if complete {
		l.plannedVersion = l.membershipVersion
	}
	if changed {
		l.planVersion++
	}
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET planned_version = ?, plan_version = ?, last_assign_time = {now}, last_assign_server = ?
		WHERE task_type = ? AND own_sign = ?`, l.plannedVersion, l.planVersion, actor, l.TaskType, l.OwnSign)
	return err
}

// events tells of each change in the words of schedule_event.
func (p rebalancing) events(changes []plan.Change) []Event {
	var events []Event
	for _, c := range changes {
		e := Event{queue: c.QueueID, from: c.OldOwner, to: c.Owner, epoch: c.OldEpoch + 1, Actor: p.Actor}
		switch {
		case !c.ChangesOwner() && c.Requester == "":
			continue // a request was withdrawn
		case !c.ChangesOwner():
			e.Kind, e.to, e.epoch = EventRequested, c.Requester, c.OldEpoch
		case c.OldOwner == p.leaving && p.leaving != "" && slices.Contains(p.forced, c.QueueID):
			e.Kind, e.Reason = EventForced, p.reason
		case c.OldOwner == p.leaving && p.leaving != "" && c.Owner != "":
			e.Kind, e.Reason = EventReleased, "the owner left"
		case c.Owner == "":
			e.Kind = EventUnassigned
		case c.OldOwner == "":
			e.Kind = EventGranted
		default:
			e.Kind = EventTakenOver
		}
		events = append(events, e)
		if c.ChangesOwner() && c.Requester != "" {
			events = append(events, Event{Kind: EventRequested, queue: c.QueueID, from: c.Owner, to: c.Requester, epoch: c.OldEpoch + 1, Actor: p.Actor})
		}
	}
	return events
}
