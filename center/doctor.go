package center

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/condition"
)

// Condition is something that an operator should know about a roster: a finding of Diagnose, or an alert.
type Condition = condition.Condition

// The status of a Condition.
const (
	StatusOK      = condition.OK
	StatusNote    = condition.Note    // worth knowing
	StatusProblem = condition.Problem // something is wrong
)

// Diagnose checks the database and each task type of this own_sign, or only the named task type. It changes nothing. It
// returns an error if it cannot read what it checks.
func (c *Center) Diagnose(ctx context.Context, taskType string) ([]Condition, error) {
	d := &diagnosis{c: c}
	database := databaseCheck{d}
	for _, check := range []func(context.Context) error{
		database.version, database.transactions, clusterCheck{d}.nodes, database.clockSkew, database.schemaVersion, database.privileges,
		func(ctx context.Context) error { return runCheck{d}.triggers(ctx, taskType) },
		func(ctx context.Context) error { return rosterCheck{d}.all(ctx, taskType) },
	} {
		if err := check(ctx); err != nil {
			return d.findings, fmt.Errorf("diagnose: %w", err)
		}
	}
	return d.findings, nil
}
