package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
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
		did, err := rebalance(ctx, l, rebalancing{RebalanceOptions: o, actor: p.actor})
		done = RebalanceResult{
			SkippedKnown: true, Skipped: l.versions.toMove, Silences: did.silences, Planned: did.planned, Moves: did.moves,
		}
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
	const servers = `FROM schedule_server d WHERE d.task_type = q.task_type AND d.own_sign = q.own_sign AND `
	condition := planDue("q")
	if o.RetrySkipped {
		condition += ` OR skipped IS NOT NULL`
	}
	if o.Watched > 0 {
		condition += ` OR EXISTS (SELECT 1 ` + servers + IsDead + `)`
	}
	if len(o.Ended) > 0 {
		condition += ` OR EXISTS (SELECT 1 ` + servers + `d.witness IN (` + sqldb.Marks(len(o.Ended)) + `))`
	}
	due, busy, err = p.ask(ctx, o.NoWait, condition, sqldb.Args(o.Ended)...)
	return due, busy, sqldb.Wrap(err, "rebalance %s$%s: check whether a plan is due", p.taskType, p.roster.OwnSign)
}

// ask reports, with one statement and without waiting, whether a condition on the lock row q is true. With free it also
// reports whether another transaction has the row; then it does not know more.
func (p Planner) ask(ctx context.Context, free bool, condition string, args ...any) (yes, busy bool, err error) {
	query := `SELECT CASE WHEN ` + condition + ` THEN 1 ELSE 0 END FROM schedule_task_running q WHERE ` + ofTask
	args = append(args, p.taskType, p.roster.OwnSign)
	var rows []bool
	err = p.roster.DB.RetryRead(ctx, func(ctx context.Context) error {
		var err error
		if free {
			rows, _, err = sqldb.Free[bool](ctx, p.roster.DB, p.roster.DB.Dialect, query, args...)
		} else {
			rows, err = sqldb.Records[bool](ctx, p.roster.DB, query, args...)
		}
		return err
	})
	if skips := free && !p.roster.DB.OneWriter; err == nil && len(rows) == 0 && !skips {
		err = ErrUnknownTask
	}
	if err != nil {
		return false, false, err
	}
	if len(rows) == 0 {
		return false, true, nil
	}
	return rows[0], false, nil
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
	// Planned says that a plan was due and made. Moves are its changes that were written, by the names of their rules
	// (plan.Rule); a request that is only withdrawn has none.
	Planned bool
	Moves   map[string]int
}

// rebalancing is one rebalance under the lock row: by Rebalance, or for a server that leaves or is drained by force.
type rebalancing struct {
	RebalanceOptions
	newState newState // the state that the transaction gives to a server after the plan, which assumes it; zero for none
	actor    string   // the uuid of the server, or the name of the operator, that rebalances
	leaving  string   // the uuid of the server that is to own nothing any more; empty for none
	forced   []string // the queues that it may still have in flight: their change of owner is recorded FORCED
	reason   string   // why they are forced
}

// rebalanced is what a rebalance did: the changes that it skipped because another transaction holds their rows, how
// long the servers that it expired had been silent, and whether it planned, with the changes by rule.
type rebalanced struct {
	skipped  []plan.Change
	silences []time.Duration
	planned  bool
	moves    map[string]int
}

// planning is a plan under the lock row: what it is made from, the plan, and what is written of it.
type planning struct {
	rebalancing
	l *LockTx

	staying []ServerRow // the servers that are registered after the transaction, in the states that they have then
	in      PlanInput
	held    heldQueues // queues whose changes are not written now, because other transactions hold their rows
	result  plan.Result
	again   bool // the plan is due again, even if all of it is written
	more    bool // the changes are more than one transaction writes: another plan is due at once

	written []plan.Change
	skipped []plan.Change // because other transactions hold their rows
}

// rebalance expires dead servers, plans and writes, in the transaction l, which has the lock row and the clock. The
// steps before, review, after and last are those of the extensions.
func rebalance(ctx context.Context, l *LockTx, r rebalancing) (did rebalanced, err error) {
	if !r.due(l) && r.Watched == 0 && len(r.Ended) == 0 {
		return did, nil
	}
	servers, err := l.Reader().Servers(ctx)
	if err == nil {
		servers, did.silences, err = expire(ctx, l, servers, r)
	}
	if err != nil || !r.due(l) {
		return did, err
	}
	p := &planning{rebalancing: r, l: l, staying: servers}
	if err := inOrder(ctx, p.read, p.before); err != nil {
		return did, err
	}
	if !mayPlan(l.plannerVersion, r.actor, p.staying) {
		did.skipped, err = r.leaveUnplanned(ctx, l, p.in.Queues)
		return did, err
	}
	err = inOrder(ctx, p.plan, p.review, p.write, p.after, p.record, p.last)
	did.skipped, did.planned, did.moves = p.skipped, true, movesByRule(p.written)
	return did, err
}

// inOrder takes steps until one fails.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether a plan is due.
func (p rebalancing) due(l *LockTx) bool {
	v := l.versions
	return v.planDue || v.planned != v.membership || p.Always || p.RetrySkipped && v.skipped
}

// read reads what the plan is made from.
func (p *planning) read(ctx context.Context) (err error) {
	p.newState.assumeIn(p.staying)
	leaves := func(s ServerRow) bool { return s.UUID == p.leaving }
	may := slices.DeleteFunc(slices.Clone(p.staying), leaves)
	// A server that an operator drains by force stays: its calls are in flight until it learns of the drain.
	if p.newState.uuid != p.leaving {
		p.staying = may
	}
	p.in, err = p.l.Reader().PlanInput(ctx, may)
	return err
}

func (p *planning) plan(context.Context) error {
	p.result = p.in.Plan()
	return nil
}

// mostChanges is how many changes one plan writes, so that it holds the lock row for two seconds at most (L3). What is
// left is planned anew, as where rows were locked (L5). A server that leaves gives up everything at once.
const mostChanges = 10_000

// write writes the moves of queues, and their events.
func (p *planning) write(ctx context.Context) (err error) {
	changes := p.held.without(p.result.Changes)
	if p.more = len(changes) > mostChanges && p.leaving == ""; p.more {
		changes = changes[:mostChanges]
	}
	p.written, p.skipped, err = writePlan(ctx, p.l, changes)
	if err != nil {
		return err
	}
	v := &p.l.versions
	v.toMove = append(p.held.ids(), queuesToMove(p.skipped)...)
	p.skipped = append(p.skipped, p.held.among(p.result.Changes)...)
	v.skipped = len(p.held) > 0 || len(p.skipped) > 0 || p.again
	return p.l.Record(ctx, p.events(p.written)...)
}

// record writes the plan's versions and the changes that it skipped to the lock row. A plan that skipped changes is due
// again after skipRetryInterval, for all servers together (L5), and one with more changes than it could write at once.
func (p *planning) record(ctx context.Context) error {
	v := &p.l.versions
	v.planned, v.planDue = v.membership, false
	v.toMove = v.toMove[:min(len(v.toMove), mostSkipped)]
	if len(p.written) > 0 {
		v.plan++
	}
	list, err := v.skippedColumn()
	if err != nil {
		return err
	}
	err = p.l.setLockRow(ctx, `planned_version = ?, plan_version = ?, skipped = ?, last_assign_time = {now},
		last_assign_server = ?`, v.planned, v.plan, list, p.actor)
	if err != nil || !p.more {
		return err
	}
	return p.l.membershipChanged(ctx)
}

func (p *planning) before(ctx context.Context) error {
	return p.extend(ctx, func(e extension) planStep { return e.before })
}

func (p *planning) review(ctx context.Context) error {
	return p.extend(ctx, func(e extension) planStep { return e.review })
}

func (p *planning) after(ctx context.Context) error {
	return p.extend(ctx, func(e extension) planStep { return e.after })
}

func (p *planning) last(ctx context.Context) error {
	return p.extend(ctx, func(e extension) planStep { return e.last })
}

// extend takes a step of all extensions.
func (p *planning) extend(ctx context.Context, of func(extension) planStep) error {
	for _, e := range extensions() {
		if step := of(e); step != nil {
			if err := step(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// differsFor reports whether the plan would write something for an extension. An audit, which writes no plan, asks.
func (p *planning) differsFor(e extension) bool { return e.differs != nil && e.differs(p) }

// movesByRule counts the changes that move a queue.
func movesByRule(written []plan.Change) map[string]int {
	moves := map[string]int{}
	for _, c := range written {
		if c.Rule != plan.Stays {
			moves[c.Rule.String()]++
		}
	}
	return moves
}

// leaveUnplanned takes the queues from the server that is to own nothing any more, if there is one, and leaves the
// plan due.
func (p rebalancing) leaveUnplanned(ctx context.Context, l *LockTx,
	queues []plan.Queue,
) (skipped []plan.Change, err error) {
	if p.leaving == "" {
		return nil, nil
	}
	written, skipped, err := writePlan(ctx, l, giveUp(queues, p.leaving))
	if err != nil || len(written) == 0 {
		return skipped, err
	}
	if err := l.Record(ctx, p.events(written)...); err != nil {
		return nil, err
	}
	return skipped, l.planChanged(ctx)
}

// events returns the rows of schedule_event for the changes.
func (p rebalancing) events(changes []plan.Change) []Event {
	var events []Event
	for _, c := range changes {
		e := Event{queue: c.QueueID, from: c.OldOwner, to: c.Owner, epoch: c.OldEpoch + 1, Actor: p.actor}
		switch {
		case !c.ChangesOwner() && c.Requester == "":
			continue // the change withdraws a request
		case !c.ChangesOwner():
			e.Kind, e.to, e.epoch, e.Reason = EventRequested, c.Requester, c.OldEpoch, c.Reason
		case c.OldOwner == p.leaving && p.leaving != "" && slices.Contains(p.forced, c.QueueID):
			e.Kind, e.Reason = EventForced, p.reason
		case c.OldOwner == p.leaving && p.leaving != "" && c.Owner != "":
			e.Kind, e.Reason = EventReleased, "the owner left"
		case c.Owner == "":
			e.Kind, e.Reason = EventUnassigned, c.Reason
		case c.OldOwner == "":
			e.Kind = EventGranted
		default:
			e.Kind = EventTakenOver
		}
		events = append(events, e)
		if c.ChangesOwner() && c.Requester != "" {
			events = append(events, Event{
				Kind: EventRequested, queue: c.QueueID, from: c.Owner, to: c.Requester, epoch: c.OldEpoch + 1,
				Actor: p.actor, Reason: c.Reason,
			})
		}
	}
	return events
}

// skipRetryInterval is how long after a plan that skipped rows the servers of a roster together make the next attempt
// (L5).
const skipRetryInterval = time.Second

// mostSkipped is how many queues the lock row names at most, because each heartbeat reads them. A later plan names the
// others.
const mostSkipped = 1_000

// planDue returns a condition on the lock row, whose name or alias is given: the membership has changed since the last
// plan, or that plan skipped rows and is due for its next attempt, or an extension needs a plan. A plan that seems to
// come from the future was written before the clock was set back.
func planDue(lockRow string) string {
	due := []string{fmt.Sprintf(`membership_version <> planned_version OR skipped IS NOT NULL
		AND (last_assign_time IS NULL OR last_assign_time > {now} OR last_assign_time < {ago %d})`,
		skipRetryInterval.Milliseconds())}
	for _, e := range extensions() {
		if e.due != nil {
			due = append(due, e.due(lockRow))
		}
	}
	return `(` + strings.Join(due, ` OR `) + `)`
}

// noteSkipped makes the next attempt due, as after a plan that skipped changes (L5).
func (l *LockTx) noteSkipped(ctx context.Context) error {
	l.versions.skipped = true
	list, err := l.versions.skippedColumn()
	if err != nil {
		return err
	}
	return l.setLockRow(ctx, `skipped = ?`, list)
}

// skippedColumn returns the value of the column `skipped`: NULL if the plan skipped nothing, otherwise a JSON list of
// the queues that are to move. The owner drains the queues in the list. A queue whose request the plan withdraws is not
// in it, because this queue stays where it is.
func (v versions) skippedColumn() (any, error) {
	if !v.skipped {
		return nil, nil
	}
	return sqldb.JSON(append([]string{}, v.toMove...))
}

// queuesToMove returns the queues of the changes that move a queue.
func queuesToMove(changes []plan.Change) []string {
	ids := []string{}
	for _, c := range changes {
		if c.ChangesOwner() || c.Requester != "" {
			ids = append(ids, c.QueueID)
		}
	}
	return ids
}

// mayPlan reports whether a program plans while these servers live (P11): no other one than its own knows older rules.
// By newer ones it would undo the plans of that server, and that server would undo its own. It does not read the
// version in the row of its own server: if that was edited by hand, it would wait for itself.
func mayPlan(version int, actor string, servers []ServerRow) bool {
	return !slices.ContainsFunc(servers, func(s ServerRow) bool { return s.UUID != actor && s.PlannerVersion < version })
}

// giveUp returns the changes that leave the queues of a server without an owner. A server that leaves makes them if
// it does not know the rules of the oldest server: that plans with its next heartbeat.
func giveUp(queues []plan.Queue, uuid string) (changes []plan.Change) {
	for _, q := range queues {
		switch uuid {
		case q.Owner:
			changes = append(changes, plan.Change{QueueID: q.ID, OldOwner: uuid, OldRequester: q.Requester, OldEpoch: q.Epoch})
		case q.Requester:
			changes = append(changes, plan.Change{
				QueueID: q.ID, OldOwner: q.Owner, OldRequester: uuid, OldEpoch: q.Epoch, Owner: q.Owner,
			})
		}
	}
	return changes
}
