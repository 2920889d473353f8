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
		d.note(condition.LoadUnknown, "let the dealer count its backlog (a Backlogger, or backlog: of the sql dealer), or set balance to QUEUES",
			"balance is LOAD, but no queue has a measured load: all queues count alike")
		return nil
	case err != nil:
		return err
	}
	if p.Incomplete {
		d.note(condition.LoadIncomplete, "wait until their owners have counted twice; if counts fail, the log of the workers and the alert BACKLOG say why",
			"no queue moves to even the load: the loads of %d of %d queues are not known", p.Queues-p.Measured, p.Queues)
	}
	if len(p.TooLarge) > 0 {
		d.note(condition.LoadTooLarge, "divide the items into more queues", "queues with more load than a server should have, which no plan can even: %s", firstFive(p.TooLarge))
	}
	if len(p.Moves) > p.Budget {
		d.note(condition.LoadBudget, "wait, or raise load_moves_per_hour; rota plan "+d.task+" --by-load shows the moves",
			"the load is uneven: %d queues would have to move, and load_moves_per_hour lets %d move now", len(p.Moves), p.Budget)
	}
	return nil
}
