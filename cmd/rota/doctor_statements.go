package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/ops"
)

// diagnoseStatements checks the statements of the file, if there is a valid one: a
// worker reports its errors.
func diagnoseStatements(cmd *cobra.Command, c *ops.Client, taskType string) (findings []condition.Condition) {
	path := configPath(cmd)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	file, err := config.Load(path, cmd.Flags())
	if err != nil {
		return nil
	}
	for _, task := range file.Tasks {
		dealer, err := sqldealer.New(task, c.Dialect())
		if err != nil || taskType != "" && taskType != task.Name {
			continue
		}
		found := diagnoseDealer(cmd, c, task, dealer)
		if holder, err := dealer.FindHolder(cmd.Context(), c.DB()); err != nil {
			found = append(found, condition.New(condition.Cursor, task.Name, err.Error(), "try again").Noted())
		} else {
			found = append(found, holderFinding(holder)...)
		}
		for _, f := range found {
			f.TaskType = task.Name
			findings = append(findings, f)
		}
	}
	return findings
}

// diagnoseDealer returns what is wrong with the statements of a task, or nothing.
func diagnoseDealer(cmd *cobra.Command, c *ops.Client, task config.Task,
	dealer *sqldealer.Dealer,
) []condition.Condition {
	finding := func(text, hint string) condition.Condition {
		return condition.New(condition.Statements, task.Name, text, hint)
	}
	if err := dealer.Check(cmd.Context(), c.DB()); sqldealer.Refused(err) {
		return []condition.Condition{finding(err.Error(), "correct the statement: workers that start refuse it")}
	} else if err != nil {
		return []condition.Condition{finding(err.Error(), "the statements were not checked: try again").Noted()}
	}
	scan, err := findScan(cmd.Context(), c.Center, task, dealer)
	switch {
	case err != nil:
		return []condition.Condition{finding(err.Error(), "the plan of the select was not checked: try again").Noted()}
	case scan == nil:
		return nil
	}
	return []condition.Condition{finding(scan.Finding, scan.Hint).Noted()}
}
