package verbs

import (
	"context"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// AckLoss acknowledges that the database has lost history.
type AckLoss struct{}

var ackLoss = verb[AckLoss](Verb{
	Name: "doctor ack", Right: RightOperate,
	Short: "Acknowledge that the database has lost history",
	Help: `Acknowledge that the database has lost commits that it had confirmed, for
example because a lagging standby was promoted, or a backup was restored. From
then on, "rota doctor" does not report this loss.

When workers find a loss, they raise the epochs of all queues. If they find
another one within ten minutes, they wait for the acknowledgement before they
raise the epochs again.`,
	Example: "  rota doctor ack",
	NoPage:  "it is about the environment, and each page with buttons is about a task type",
})

// Prepare implements Operation.
func (AckLoss) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	loss, found, err := c.Roster().Loss(ctx)
	if err == nil && !found {
		err = roster.ErrNoLoss
	}
	if err != nil {
		return nil, err
	}
	return &Change{
		Title: "Acknowledge the loss of history", TaskTypes: []string{loss.TaskType},
		Says: []string{"The loss is no problem any more: " + loss.Report},
		Objects: []Object{{
			Name: "the loss of history in " + c.OwnSign(), Past: "acknowledged",
			do: done(func(ctx context.Context, actor string) error {
				return c.Roster().Operator(actor).AcknowledgeLoss(ctx)
			}),
		}},
	}, nil
}
