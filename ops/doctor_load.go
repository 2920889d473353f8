package ops

import (
	"context"
	"errors"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
)

// load reports what keeps the load of a task type with balance LOAD from being even (P16).
func (d queueCheck) load(ctx context.Context, balance string) error {
	if balance != center.BalanceLoad {
		return nil
	}
	p, err := d.c.Queues().Plan(ctx, d.task, Scenario{ByLoad: true})
	switch {
	case errors.Is(err, ErrNoLoad):
		d.add(condition.LoadUnknown, "balance is LOAD, but no queue has a measured load: all queues count alike")
		return nil
	case err != nil:
		return err
	}
	if p.Load.Incomplete {
		d.add(condition.LoadIncomplete, "no queue moves to even the load: the loads of %d of %d queues are not known", p.Load.Queues-p.Load.Measured, p.Load.Queues)
	}
	if len(p.Load.TooLarge) > 0 {
		d.add(condition.LoadTooLarge, "queues with more load than a server should have, which no plan can even: %s", firstFive(p.Load.TooLarge))
	}
	if n := p.LoadMoves(); n > p.Load.Budget {
		d.add(condition.LoadBudget, "the load is uneven: %d queues would have to move, and load_moves_per_hour lets %d move now", n, p.Load.Budget)
	}
	return nil
}
