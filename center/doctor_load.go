package center

import (
	"context"
	"errors"

	"github.com/dutyrota/rota/internal/condition"
)

// load reports what keeps the load of a task type with balance LOAD from being even (P16).
func (d queueCheck) load(ctx context.Context, balance string) error {
	if balance != BalanceLoad {
		return nil
	}
	p, err := d.c.Queues().PlanByLoad(ctx, d.task)
	switch {
	case errors.Is(err, ErrNoLoad):
		d.add(condition.LoadUnknown, "balance is LOAD, but no queue has a measured load: all queues count alike")
		return nil
	case err != nil:
		return err
	}
	if p.Incomplete {
		d.add(condition.LoadIncomplete, "no queue moves to even the load: the loads of %d of %d queues are not known", p.Queues-p.Measured, p.Queues)
	}
	if len(p.TooLarge) > 0 {
		d.add(condition.LoadTooLarge, "queues with more load than a server should have, which no plan can even: %s", firstFive(p.TooLarge))
	}
	if len(p.Moves) > p.Budget {
		d.add(condition.LoadBudget, "the load is uneven: %d queues would have to move, and load_moves_per_hour lets %d move now", len(p.Moves), p.Budget)
	}
	return nil
}
