package roster

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ServerColumns are the columns of a server that its history keeps.
const ServerColumns = serverColumns

// BeginLocked begins a transaction and takes the lock row in one attempt: by waiting for it or, with checkOnly, by
// checking that it is free. The caller rolls the transaction back.
func (r *Roster) BeginLocked(t testing.TB, taskType string, checkOnly bool) (*sql.Tx, error) {
	t.Helper()
	tx, err := r.DB.Begin(t.Context(), r.DB.Store)
	if err != nil {
		t.Fatal(err)
	}
	l := &LockTx{Tx: tx, TaskType: taskType, OwnSign: r.OwnSign}
	if checkOnly {
		return tx.Raw, l.checkFree(t.Context())
	}
	return tx.Raw, l.lockForPlanChange(t.Context())
}

// WritePlan writes a plan under the lock row, as Rebalance does.
func (r *Roster) WritePlan(ctx context.Context, taskType string, changes []plan.Change) error {
	return r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		_, _, err := writePlan(ctx, l, changes)
		return err
	})
}

// ExpireStaleRead lets another server expire a server whose heartbeat was old at an earlier read, and returns how
// many live.
func (r *Roster) ExpireStaleRead(ctx context.Context, taskType, uuid string) (alive int, err error) {
	err = r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		old := ServerRow{UUID: uuid, Heartbeat: l.Now.Add(-time.Hour), JudgeDeadInterval: time.Minute}
		actor := ServerRow{UUID: "actor", Heartbeat: l.Now, JudgeDeadInterval: time.Minute}
		servers, _, err := expire(ctx, l, []ServerRow{actor, old},
			rebalancing{actor: actor.UUID, RebalanceOptions: RebalanceOptions{Watched: time.Hour}})
		alive = len(servers)
		return err
	})
	return alive, err
}

// PlanAsOf plans as a transaction does that has read the clock so long ago, and has been under way since.
func (r *Roster) PlanAsOf(ctx context.Context, taskType, actor string, ago time.Duration) error {
	return r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		l.Now = l.Now.Add(-ago)
		_, err := rebalance(ctx, l, rebalancing{RebalanceOptions: RebalanceOptions{Always: true}, actor: actor})
		return err
	})
}

// RaiseFloorFrom raises the epoch_floor of the environment as a server does that has read this one.
func (r *Roster) RaiseFloorFrom(ctx context.Context, taskType string, floor int64) error {
	if err := r.insertEnvironment(ctx); err != nil {
		return err
	}
	return r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		return r.Planner(taskType, "A").raiseFloor(ctx, l, environment{Floor: floor}, 0, "heartbeats are lost")
	})
}

// Texts returns the two statements of a heartbeat.
func (b Heartbeat) Texts(d *sqldb.Dialect) (update, query string, err error) {
	if update, _, err = b.update(d); err == nil {
		query, _, err = b.query(d)
	}
	return update, query, err
}

// PlanFrom plans as a server does that has read what the processes of these servers have of other task types. It
// returns the changes.
func (r *Roster) PlanFrom(ctx context.Context, taskType string, elsewhere map[string]int) (changes []plan.Change, err error) {
	if err := r.insertEnvironment(ctx); err != nil {
		return nil, err
	}
	err = r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		servers, err := l.Reader().Servers(ctx)
		if err != nil {
			return err
		}
		p := &planning{l: l, staying: servers}
		if err := p.read(ctx); err != nil {
			return err
		}
		for i, s := range p.in.Servers {
			p.in.Servers[i].Elsewhere = elsewhere[s.UUID]
		}
		err = inOrder(ctx, p.plan, p.review)
		changes = p.result.Changes
		return err
	})
	return changes, err
}
