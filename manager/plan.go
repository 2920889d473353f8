package manager

import (
	"context"

	"github.com/dutyrota/rota/internal/roster"
)

// planner makes the calls that change the whole roster, not only this server's queues: it rebalances, changes the number of
// queues, and audits.
type planner struct {
	*base
	view *ownView

	busy    int             // consecutive attempts that found the lock row busy
	blocked map[string]bool // queues that must move while this server's own transactions hold their rows (L5)
}

// follow rebalances, or changes the number of queues, if a heartbeat's reply says that this is due.
func (p *planner) follow(ctx context.Context, r heartbeatReply, barrierPassed bool) error {
	if r.MembershipVersion == r.PlannedVersion {
		p.blocked = nil // this server or another has written the plan
	}
	if r.AnyDead && r.watched > 0 || r.MembershipVersion != r.PlannedVersion {
		if err := p.rebalance(ctx, r, false); err != nil {
			return err
		}
	}
	if barrierPassed {
		return p.finishRepartition(ctx)
	}
	return nil
}

// maxBusy is the number of consecutive attempts after which a server that sees a dead one waits for the lock row (S3).
const maxBusy = 3

// rebalance plans which server should own which queue, and writes the plan. It expires dead servers first if the reply says
// that this server has watched for long enough. With the zero reply it expires none.
//
// Unless mustPlan is set, it backs off when the lock row is busy: most likely another server makes the same plan, and the
// next heartbeat tells whether a plan is still due. But if the lock row is never free, for instance because runs are
// submitted without a pause, dead servers would stay in the roster for ever (S3). So a server that sees a dead one waits
// for the lock row after maxBusy attempts. All other plans can wait for the next audit.
func (p *planner) rebalance(ctx context.Context, r heartbeatReply, mustPlan bool) error {
	call, cancel := p.withTimeout(ctx)
	defer cancel()
	done, err := p.roster.Roster().Planner(p.taskType, p.uuid).Rebalance(call, roster.RebalanceOptions{
		MaxHeartbeatAge: 2 * p.settings.HeartbeatInterval,
		Watched:         r.watched, RepliedAt: r.Now, Inherited: r.inherited,
		NoWait: !mustPlan && (!r.AnyDead || p.busy < maxBusy),
	})
	if err == nil && done.Busy {
		p.busy++
		return nil // the reply after the other server's plan tells what has changed
	}
	p.busy = 0
	p.view.invalidate()
	if err != nil {
		return err
	}
	p.blocked = map[string]bool{}
	for _, id := range done.Blocked {
		p.blocked[id] = true
	}
	if p.cfg.Observer != nil {
		for _, silent := range done.Silences {
			p.cfg.Observer.Expired(p.taskType, silent)
		}
	}
	return nil
}

// replan rebalances again, after the server has drained the queues whose rows its own transactions held (L5). It reports
// whether fewer queues are blocked now.
func (p *planner) replan(ctx context.Context) (fewer bool, err error) {
	before := len(p.blocked)
	err = p.rebalance(ctx, heartbeatReply{}, true)
	return len(p.blocked) < before, err
}

// finishRepartition changes the number of queues after all servers have drained (N1).
func (p *planner) finishRepartition(ctx context.Context) error {
	return p.view.change(ctx, func(ctx context.Context) error {
		done, err := p.roster.Roster().Planner(p.taskType, p.uuid).FinishRepartition(ctx)
		if done {
			p.log.Info("number of queues changed")
		}
		return err
	})
}

// audit repairs rows that were edited by hand, and deletes old rows. One server per roster and audit interval does it (S4).
func (p *planner) audit(ctx context.Context, r heartbeatReply) error {
	ctx, cancel := p.withTimeout(ctx)
	defer cancel()
	turn, err := p.roster.Roster().Planner(p.taskType, p.uuid).Audit(ctx)
	if err != nil || !turn {
		return err
	}
	p.view.invalidate()
	if _, err = p.roster.Clean(ctx, p.cfg.Retention); err != nil || r.watched == 0 {
		return err
	}
	expired, err := p.roster.ExpireOwnSigns(ctx, p.taskType, p.uuid, r.Now, 2*p.settings.HeartbeatInterval)
	for _, sign := range expired {
		p.log.Infof("environment %s deleted: no server has served it for %s", sign, p.settings.ExpireOwnSignInterval)
	}
	return err
}
