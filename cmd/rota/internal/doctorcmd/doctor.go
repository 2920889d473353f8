// Package doctorcmd is rota doctor, which looks at the roster and at the statements of a rota.yaml.
package doctorcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// New returns the command rota doctor.
func New() *cobra.Command {
	var o cli.Output
	cmd := cli.Command(&cobra.Command{
		Use:   "doctor [TASK]",
		Short: "Check the roster and its database, and say how to solve problems",
		Long: `Check the roster and its database: the privileges of the role that you connect
as, expired workers, queues without an owner, hand-overs that take too long,
failed items, settings. List problems and how to solve them. Change nothing.
With a rota.yaml, check it and its statements too: what a worker refuses, what
the database does not know, selects that read a large table without an index,
an execute that does not find its rows by their keys, and transactions that
keep a cursor back.

A PROBLEM makes the exit code 1, a NOTE does not.`,
		Example: `  rota doctor
  rota doctor settle -o json | jq '.[] | select(.status == "PROBLEM")'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := diagnose(cmd, cli.FirstArg(args))
			if err != nil {
				return err
			}
			r := cli.Result{Records: findings, Text: func(s cli.Screen) string { return findingsText(s, findings) }}
			if err := o.Write(cmd.OutOrStdout(), r); err != nil {
				return err
			}
			return problems(findings)
		},
	}, &o, cli.Names("task"))
	cli.AddDataFlags(cmd)
	verbcmd.AddVerbs(cmd, "doctor")
	return cmd
}

// diagnose returns a roster that cannot be opened as a finding.
func diagnose(cmd *cobra.Command, taskType string) (findings []condition.Condition, err error) {
	c, err := cli.OpenRoster(cmd)
	if errors.As(err, new(cli.UsageError)) {
		return nil, withFile(cmd, err)
	}
	if err != nil {
		return []condition.Condition{condition.New(condition.Database, "", err.Error(), "solve this first: "+
			"the other checks need the database")}, nil
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	findings, err = doctor.Diagnose(cmd.Context(), c, taskType)
	if err != nil {
		return nil, err
	}
	tasks, refused := fileTasks(cmd, taskType)
	findings = append(findings, refused...)
	if len(refused) == 0 { // else some settings are not read
		path := cli.ConfigPath(cmd)
		findings = append(findings, doctor.DiagnoseFile(cmd.Context(), c, path, cli.SettingsOf(tasks))...)
	}
	for _, task := range tasks {
		findings = append(findings, diagnoseStatements(cmd.Context(), c, task)...)
	}
	return findings, nil
}

// withFile returns all mistakes of a file with tasks. A command that only connects finds some of them: these are err,
// and withFile returns err where the file has no tasks.
func withFile(cmd *cobra.Command, err error) error {
	file, mistakes := config.Load(cli.ConfigPath(cmd), cmd.Flags())
	if file == nil || len(file.Tasks) == 0 || mistakes == nil {
		return err
	}
	return cli.Usage(mistakes)
}

// fileTasks returns the task type, or all, of the file. If a worker refuses the file, it returns each error as a
// finding, and the tasks whose dealers could be read. A file without tasks serves the connection only.
func fileTasks(cmd *cobra.Command, taskType string) (tasks []config.Task, refused []condition.Condition) {
	path := cli.ConfigPath(cmd)
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	file, err := config.Load(path, cmd.Flags())
	if err != nil && (file == nil || len(file.Tasks) == 0) {
		return nil, nil
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			refused = append(refused, refusal("", strings.TrimSpace(line)))
		}
	}
	return slices.DeleteFunc(file.Tasks, func(t config.Task) bool {
		return t.Unread || taskType != "" && taskType != t.Name
	}), refused
}

// refusal is the finding of what a worker refuses in the file.
func refusal(taskType, text string) condition.Condition {
	c := condition.New(condition.Statements, taskType, text, "correct the file: workers that start refuse it")
	c.Subject = text
	return c
}

func problems(findings []condition.Condition) error {
	n := doctor.Judgement{Findings: findings}.Count(condition.Problem)
	if n == 0 {
		return nil
	}
	return fmt.Errorf("doctor found %s", human.Count(n, "problem", "problems"))
}

// findingsText returns one line per finding for a pipe. On a terminal it wraps
// the lines and puts the hint below.
func findingsText(s cli.Screen, findings []condition.Condition) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, findingText(s, f))
	}
	return strings.Join(lines, "\n")
}

func findingText(s cli.Screen, f condition.Condition) string {
	head := fmt.Sprintf("%-7s  %-16s  ", f.Status, f.Kind)
	body, hint := f.Text, ""
	if f.TaskType != "" {
		body = f.TaskType + ": " + body
	}
	if f.Hint != "" {
		hint = "-> " + f.Hint
	}
	head, body, hint = escape.Text(head), escape.Text(cli.OneLine(body)), escape.Text(cli.OneLine(hint))
	if s.Width == 0 {
		return strings.TrimRight(head+body+"  "+hint, " ")
	}
	indent := strings.Repeat(" ", len(head))
	width := max(s.Width-len(indent), 20)
	body = text.WrapSoft(body, width)
	if hint != "" {
		body += "\n" + text.WrapSoft(hint, width)
	}
	return s.Paint(head, f.Status) + strings.ReplaceAll(body, "\n", "\n"+indent)
}

// heldBackAfter is the age at which a writing transaction becomes a problem for the cursors that wait for it.
const heldBackAfter = 5 * time.Minute

// holderFinding returns the finding about the transaction that holds a cursor back, or nothing.
func holderFinding(task string, h *sqldealer.Holder) []condition.Condition {
	finding := func(status, hint, format string, args ...any) []condition.Condition {
		c := condition.New(condition.Cursor, task, fmt.Sprintf(format, args...), hint)
		c.Status = status
		return []condition.Condition{c}
	}
	switch {
	case h == nil || h.Age < heldBackAfter && !h.Hidden:
		return nil
	case h.Hidden:
		return finding(condition.Note, "GRANT pg_read_all_stats to this role",
			"rows that were written after the transaction of process %d began are not read, and this role may not see when "+
				"that was", h.PID)
	}
	since := fmt.Sprintf("rows of the last %s are not read until ", h.Age.Round(time.Second))
	if h.Prepared != "" {
		name := "'" + strings.ReplaceAll(h.Prepared, "'", "''") + "'"
		return finding(condition.Problem, fmt.Sprintf("COMMIT PREPARED %s or ROLLBACK PREPARED %[1]s", name),
			"%sthe prepared transaction %s ends", since, name)
	}
	return finding(condition.Problem, fmt.Sprintf("end it: SELECT pg_terminate_backend(%d)", h.PID),
		"%sprocess %d (%s, %s) ends its transaction, which has written", since, h.PID, h.Application, h.State)
}

// diagnoseStatements checks the statements of a task in each database that has its rows. Package doctor reports a data
// database that is away.
func diagnoseStatements(ctx context.Context, c *ops.Client, task config.Task) (findings []condition.Condition) {
	kinds := sqldealer.Kinds{"": c.Dialect()}
	for _, d := range c.AllData() {
		kinds[d.Name()] = d.Dialect()
	}
	names, _ := task.Settings.WithDefaults().Databases() // config has checked them
	for _, name := range names {
		if _, open := kinds[name]; !open {
			return nil
		}
	}
	if task.Program.Selects() {
		return nil
	}
	dealer, err := sqldealer.New(task, kinds)
	if err != nil {
		for _, line := range escape.Errors(err) {
			findings = append(findings, refusal(task.Name, line))
		}
		return findings
	}
	dealer.Use(c.DB(), c.AllData()...)
	for _, at := range dealer.Places(task.Settings) {
		findings = append(findings, diagnoseIn(ctx, c, task, at)...)
	}
	return findings
}

// dataPatience is how long a check of the statements waits for a data database.
const dataPatience = 5 * time.Second

// diagnoseIn checks the statements of a task in one database.
func diagnoseIn(ctx context.Context, c *ops.Client, task config.Task, dealer *sqldealer.Dealer) []condition.Condition {
	if dealer.Name() != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dataPatience)
		defer cancel()
	}
	findings, asked := diagnoseSelect(ctx, c, task, dealer)
	if !asked {
		return findings
	}
	holder, err := dealer.FindHolder(ctx)
	if err != nil {
		return append(findings, condition.New(condition.Cursor, task.Name, err.Error(), "try again").Noted())
	}
	return append(findings, holderFinding(task.Name, holder)...)
}

// diagnoseSelect says that the database refuses the statements of a task, or else that the select scans a table. It
// reports whether the database has answered.
func diagnoseSelect(ctx context.Context, c *ops.Client, task config.Task,
	dealer *sqldealer.Dealer,
) (findings []condition.Condition, asked bool) {
	finding := func(text, hint string) []condition.Condition {
		return []condition.Condition{condition.New(condition.Statements, task.Name, text, hint)}
	}
	if err := dealer.Check(ctx); sqldealer.Refused(err) {
		for _, line := range escape.Errors(err) {
			c := finding(line, "correct the statement: workers that start refuse it")[0]
			c.Subject = line
			findings = append(findings, c)
		}
		return findings, true
	} else if err != nil {
		findings = finding(err.Error(), "the statements were not checked: try again")
		return []condition.Condition{findings[0].Noted()}, false
	}
	scan, err := dealer.ScanFirst(ctx, c.OwnSign(), task.Settings)
	switch {
	case err != nil:
		findings = finding(err.Error(), "the plan of the select was not checked: try again")
	case scan != nil:
		findings = finding(scan.Finding, scan.Hint)
	}
	for i, f := range findings {
		findings[i] = f.Noted()
	}
	return findings, true
}
