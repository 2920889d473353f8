package doctor

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// Diagnose checks the database and each task type of this own_sign, or only the named task type. It changes nothing. It
// returns an error if it cannot read what it checks.
func Diagnose(ctx context.Context, c *ops.Client, taskType string) ([]condition.Condition, error) {
	d := &diagnosis{c: c, db: c.Roster().DB}
	database := databaseCheck{d}
	for _, check := range []func(context.Context) error{
		database.version, database.transactions, clusterCheck{d}.nodes, database.clockSkew, database.schemaVersion,
		database.privileges, database.history, dataCheck{d}.all,
		func(ctx context.Context) error { return runCheck{d}.triggers(ctx, taskType) },
		func(ctx context.Context) error { return runCheck{d}.unmade(ctx, taskType) },
		func(ctx context.Context) error { return rosterCheck{d}.all(ctx, taskType) },
	} {
		if err := check(ctx); err != nil {
			return inEnvironment(c, d.findings), fmt.Errorf("diagnose: %w", err)
		}
	}
	return inEnvironment(c, d.findings), nil
}

// inEnvironment returns findings whose hints have command lines for the environment of c.
func inEnvironment(c *ops.Client, findings []condition.Condition) []condition.Condition {
	for i := range findings {
		findings[i].Hint = c.CommandLines(findings[i].Hint)
	}
	return findings
}
