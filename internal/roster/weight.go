package roster

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/plan"
)

// MaxWeight is the greatest weight of a server.
const MaxWeight = plan.MaxWeight

// CheckWeight returns an error if the weight breaks its rule.
func CheckWeight(weight int) error {
	if weight < 0 || weight > MaxWeight {
		return fmt.Errorf("weight (%d) must be between 0 and %d", weight, MaxWeight)
	}
	return nil
}

// SetWeight gives a server another part of the queues (P2) until it leaves. The servers plan with their next heartbeats.
// The server's row is written last, as in setState. SetWeight returns ErrGone if there is no such server.
func (o Operator) SetWeight(ctx context.Context, uuid string, weight int) error {
	err := CheckWeight(weight)
	if err == nil {
		err = o.underServerLock(ctx, uuid, func(ctx context.Context, l *LockTx, _ string) error {
			if err := l.membershipChanged(ctx); err != nil {
				return err
			}
			if err := l.Record(ctx, Event{Kind: EventWeight, to: uuid, Actor: o.actor, Reason: fmt.Sprintf("its weight is %d", weight)}); err != nil {
				return err
			}
			rows, err := l.Exec(ctx, `UPDATE schedule_server SET weight = ? WHERE uuid = ?`, weight, uuid)
			if err == nil && rows == 0 {
				err = ErrGone // deleted by hand
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("set the weight of %s: %w", uuid, err)
	}
	return nil
}
