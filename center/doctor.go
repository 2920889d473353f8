package center

import (
	"context"
	"fmt"
)

// The severity of a Finding.
const (
	FindingOK      = "OK"
	FindingNote    = "NOTE"    // worth knowing
	FindingProblem = "PROBLEM" // something is wrong
)

// Finding is one result of Diagnose, with advice.
type Finding struct {
	Status   string `json:"status"` // OK, NOTE or PROBLEM
	Check    string `json:"check"`  // the part that was checked
	TaskType string `json:"task_type"`
	Finding  string `json:"finding"`
	Hint     string `json:"hint"` // what to do
}

// Diagnose checks the database and each task type of this own_sign, or only the named task type. It changes nothing. It
// returns an error if it cannot read what it checks.
func (c *Center) Diagnose(ctx context.Context, taskType string) ([]Finding, error) {
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
