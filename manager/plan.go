package manager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// planner makes the jobs that change the whole roster and not only this server's queues: it rebalances and audits.
type planner struct {
	*base

	planned bool // this server has planned
	begins  bool // it has done so for the first time, and the session is to send a heartbeat

	busy    int             // how often in succession the lock row was busy
	blocked map[string]bool // queues that are to move while transactions hold their rows (L5)
	retried map[string]bool // queues among them that this server has drained and rebalanced for
}

// block notes which queues are to move while transactions hold their rows.
func (p *planner) block(queues []string) {
	p.blocked = make(map[string]bool, len(queues))
	for _, id := range queues {
		p.blocked[id] = true
	}
	maps.DeleteFunc(p.retried, func(id string, _ bool) bool { return !p.blocked[id] })
}

// maxBusy is the number of consecutive attempts after which a server that sees a dead one waits for the lock row (S3).
const maxBusy = 3

// rebalance returns the job that deals the queues. It expires dead servers first if the reply says that this server has
// watched for long enough; the zero reply expires none.
//
// Unless mustPlan is set, it backs off when the lock row is busy: most likely another server makes the same plan, and
// the next heartbeat's reply says whether it is still due. A lock row that is never free, as when runs are submitted
// without a pause, would then keep dead servers alive for ever (S7). So a server that sees a dead one waits for the
// lock row in the end. The next audit makes every other plan.
func (p *planner) rebalance(r heartbeatReply, mustPlan bool) *job {
	options := roster.RebalanceOptions{
		MaxHeartbeatAge: 2 * p.settings.HeartbeatInterval,
		Watched:         r.watched, RepliedAt: r.Now, Inherited: r.inherited,
		NoWait: !mustPlan && (!r.Watch.AnyDead || p.busy < maxBusy), RetrySkipped: mustPlan,
	}
	blocked := len(p.blocked)
	var done roster.RebalanceResult
	var began, ended time.Time
	return &job{
		name: "rebalance",
		call: func(ctx context.Context) (err error) {
			began = time.Now()
			done, err = p.ownPlanner().Rebalance(ctx, options)
			ended = time.Now()
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			p.observe(began, ended, done, err)
			p.rebalanced(done, err)
			return err == nil && !done.Busy && (!mustPlan || len(p.blocked) < blocked)
		},
	}
}

// rebalanced notes the outcome of a rebalance.
func (p *planner) rebalanced(done roster.RebalanceResult, err error) {
	if err == nil && done.Busy {
		p.busy++
		return // the reply after the other server's plan reports what has changed
	}
	p.busy = 0
	p.view.invalidate()
	if err != nil {
		return
	}
	if !p.planned {
		p.planned, p.begins = true, true
	}
	if done.SkippedKnown {
		p.block(done.Skipped)
	}
}

// observe tells the observers about a rebalance that has planned, expired servers or failed.
func (p *planner) observe(began, ended time.Time, done roster.RebalanceResult, err error) {
	if err == nil && !done.Planned && len(done.Silences) == 0 {
		return
	}
	for _, o := range p.cfg.Observers {
		o.Planned(Plan{
			TaskType: p.taskType, OwnSign: p.roster.OwnSign(), Server: p.uuid, Began: began, Ended: ended, Err: err,
			Moves: done.Moves, Expired: done.Silences, Skipped: len(done.Skipped),
		})
	}
}

// replan returns the job that rebalances again after this server has drained queues whose rows its own transactions
// held. Each queue causes this once. If another session still holds the row, all servers together make the next
// attempts (L5).
func (p *planner) replan(drained []action) *job {
	if p.retried == nil {
		p.retried = map[string]bool{}
	}
	for _, a := range drained {
		p.retried[a.id] = true
	}
	return p.rebalance(heartbeatReply{}, true)
}

// unservedText is the text of the alert UNSERVED.
const unservedText = "no worker has served the task type for longer than judge_dead_interval: its queues wait. " +
	"Start a worker, or pause or delete the task type"

// auditPause is how long an audit waits while the process audits another task type.
const auditPause = 100 * time.Millisecond

// cleanFor is how long an audit begins steps of the clean-up.
const cleanFor = 500 * time.Millisecond

// clean deletes what is older than the retention, step by step. One step for each audit is not enough: a trigger that
// fires each second lets a task type of 32 queues write more rows than that.
func (p *planner) clean(ctx context.Context) error {
	for begin := time.Now(); ; {
		deleted, err := ops.New(p.roster).Clean(ctx, p.cfg.Retention)
		if err != nil || deleted < fullStep || time.Since(begin) > cleanFor {
			return err
		}
	}
}

// fullStep is how many rows a step of the clean-up deletes at least that leaves others: a hundred runs have as many
// queues.
const fullStep = 100

// audit returns the job that repairs rows that were edited by hand or written while the clock was ahead (S17), deletes
// old rows, reminds of lost history (H8), and looks for task types that have no server, once per audit interval and
// roster (S4).
func (p *planner) audit(r heartbeatReply) *job {
	if !offer(p.auditing, struct{}{}) { // another task type's; to wait in the job would hold up hand-overs
		p.agenda.add(time.Now().Add(auditPause), audit)
		return nil
	}
	maxAge := 2 * p.settings.HeartbeatInterval
	expireAfter := p.settings.ExpireOwnSignInterval
	var turn bool
	var unserved, expired []string
	var loss roster.Loss
	var lost bool
	return &job{
		name: "audit",
		call: func(ctx context.Context) (err error) {
			defer func() { <-p.auditing }()
			planner := p.ownPlanner()
			if turn, err = planner.Audit(ctx); err != nil || !turn {
				return err
			}
			if _, err = p.roster.Engine().Scheduler.CorrectTriggers(ctx, p.taskType); err != nil {
				return err
			}
			if loss, lost, err = p.roster.Roster().Loss(ctx); err != nil {
				return err
			}
			if err = p.clean(ctx); err != nil {
				return err
			}
			if _, err = ops.New(p.roster).Items().Clean(ctx, p.cfg.ItemRetention); err != nil || r.watched == 0 {
				return err
			}
			if unserved, err = p.roster.Roster().Unserved(ctx); err != nil {
				return err
			}
			expired, err = ops.New(p.roster).ExpireOwnSigns(ctx, p.taskType, p.uuid, r.Now, maxAge)
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			if lost {
				p.alerter.report(roster.LossCondition(loss))
			}
			for _, taskType := range unserved {
				p.alerter.report(condition.Condition{Kind: condition.Unserved.Name, TaskType: taskType, Text: unservedText})
			}
			for _, sign := range expired {
				p.log.LogAttrs(ctx, slog.LevelInfo,
					fmt.Sprintf("environment %s deleted: no worker has served it for %s", sign, expireAfter))
			}
			if turn {
				p.view.invalidate()
			}
			return turn
		},
	}
}
