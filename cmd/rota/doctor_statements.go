package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
)

// diagnoseStatements checks the statements of the file, if there is a valid one: a
// worker reports its errors.
func diagnoseStatements(cmd *cobra.Command, c *center.Center, taskType string) (findings []center.Finding) {
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
		if f := diagnoseDealer(cmd, c, task, dealer); f.Finding != "" {
			f.Check, f.TaskType = "statements", task.Name
			findings = append(findings, f)
		}
		if holder, err := dealer.FindHolder(cmd.Context(), c.DB()); err != nil {
			findings = append(findings, center.Finding{Status: center.FindingNote, Check: "cursor", TaskType: task.Name, Finding: err.Error(), Hint: "try again"})
		} else if f, ok := holderFinding(holder); ok {
			f.Check, f.TaskType = "cursor", task.Name
			findings = append(findings, f)
		}
	}
	return findings
}

// diagnoseDealer returns a finding without a text if the statements of a task are in
// order.
func diagnoseDealer(cmd *cobra.Command, c *center.Center, task config.Task, dealer *sqldealer.Dealer) center.Finding {
	if err := dealer.Check(cmd.Context(), c.DB()); sqldealer.Refused(err) {
		return center.Finding{Status: center.FindingProblem, Finding: err.Error(), Hint: "correct the statement: workers that start refuse it"}
	} else if err != nil {
		return center.Finding{Status: center.FindingNote, Finding: err.Error(), Hint: "the statements were not checked: try again"}
	}
	scan, err := findScan(cmd.Context(), c, task, dealer)
	switch {
	case err != nil:
		return center.Finding{Status: center.FindingNote, Finding: err.Error(), Hint: "the plan of the select was not checked: try again"}
	case scan == nil:
		return center.Finding{}
	}
	return center.Finding{Status: center.FindingNote, Finding: scan.Finding, Hint: scan.Hint}
}
