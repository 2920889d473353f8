package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/plural"
)

func newDoctorCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "doctor [TASK]",
		Short: "Check the roster and its database; list problems and how to solve them",
		Long: `Check the roster and its database: the privileges of the role that you connect
as, expired servers, queues without an owner, hand-overs that take too long,
failed items, settings. List problems and how to solve them. Change nothing.
With a rota.yaml, check its statements too: what the database does not know,
selects that read a large table without an index, and transactions that keep a
cursor back.

A PROBLEM makes the exit code 1, a NOTE does not.`,
		Example: `  rota doctor
  rota doctor settle -o json | jq '.[] | select(.status == "PROBLEM")'`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := diagnose(cmd, firstArg(args))
			if err != nil {
				return err
			}
			r := result{records: findings, text: func(s screen) string { return findingsText(s, findings) }}
			if err := o.write(cmd.OutOrStdout(), r); err != nil {
				return err
			}
			return problems(findings)
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

// diagnose returns a roster that cannot be opened as a finding.
func diagnose(cmd *cobra.Command, taskType string) (findings []condition.Condition, err error) {
	c, err := openRoster(cmd.Context(), cmd)
	if errors.As(err, new(usageError)) {
		return nil, err
	}
	if err != nil {
		return []condition.Condition{condition.New(condition.Database, "", err.Error(), "solve this first: "+
			"the other checks need the database")}, nil
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	findings, err = c.Diagnose(cmd.Context(), taskType)
	if err != nil {
		return nil, err
	}
	findings = append(findings, c.DiagnoseFile(cmd.Context(), configPath(cmd), fileSettings(cmd, taskType))...)
	return append(findings, diagnoseStatements(cmd, c, taskType)...), nil
}

// fileSettings returns the settings of the task type, or of all, in the file.
// It returns none if there is no valid file: the file may serve the connection
// only, and a worker reports its errors.
func fileSettings(cmd *cobra.Command, taskType string) (tasks []ops.TaskSettings) {
	path := configPath(cmd)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	file, err := config.Load(path, cmd.Flags())
	if err != nil {
		return nil
	}
	for _, t := range settingsOf(file) {
		if taskType == "" || taskType == t.Name {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func problems(findings []condition.Condition) error {
	n := 0
	for _, f := range findings {
		if f.Status == condition.Problem {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("doctor found %s", plural.Of(n, "problem", "problems"))
}

// findingsText returns one line per finding for a pipe. On a terminal it wraps
// the lines and puts the hint below.
func findingsText(s screen, findings []condition.Condition) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, findingText(s, f))
	}
	return strings.Join(lines, "\n")
}

func findingText(s screen, f condition.Condition) string {
	head := fmt.Sprintf("%-7s  %-11s  ", f.Status, f.Check)
	body, hint := f.Text, ""
	if f.TaskType != "" {
		body = f.TaskType + ": " + body
	}
	if f.Hint != "" {
		hint = "-> " + f.Hint
	}
	head, body, hint = escape.Text(head), escape.Text(oneLine(body)), escape.Text(oneLine(hint))
	if s.width == 0 {
		return strings.TrimRight(head+body+"  "+hint, " ")
	}
	indent := strings.Repeat(" ", len(head))
	width := max(s.width-len(indent), 20)
	body = text.WrapSoft(body, width)
	if hint != "" {
		body += "\n" + text.WrapSoft(hint, width)
	}
	if s.color {
		head = byMeaning(f, f.Status) + head[len(f.Status):]
	}
	return head + strings.ReplaceAll(body, "\n", "\n"+indent)
}
