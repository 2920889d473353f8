package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

func newDoctorCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "doctor [TASK]",
		Short: "Look for everything that goes wrong with rosters, and say what to do about it",
		Long: `Look for everything that goes wrong with rosters, and say what to do about it:
the database, the rights of the role that you connect as, dead servers, queues
without owner, hand-overs that hang, failed items, settings. It changes nothing.

Exit 0 if nothing is wrong; notes are worth knowing, problems make it exit 1.`,
		Example: `  rota doctor
  rota doctor settle -o json | jq '.[] | select(.status == "PROBLEM")'`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := examine(cmd, first(args))
			if err != nil {
				return err
			}
			if err := o.write(cmd.OutOrStdout(), reply{findings, func(s screen) string { return findingsText(s, findings) }}); err != nil {
				return err
			}
			return problems(findings)
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, false)
	return cmd
}

// examine tells also of a roster that cannot be opened.
func examine(cmd *cobra.Command, task string) (findings []finding, err error) {
	c, err := openRoster(cmd.Context(), cmd)
	if errors.As(err, new(usageError)) {
		return nil, err
	}
	if err != nil {
		return []finding{{Status: center.FindingProblem, Check: "database", Finding: err.Error(), Hint: "mend this first: nothing else could be looked at"}}, nil
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	findings, err = c.Examine(cmd.Context(), task)
	if err != nil {
		return nil, err
	}
	return append(findings, compareFile(cmd.Context(), cmd, c, task)...), nil
}

// compareFile tells in what the file's settings are not those of the rows, which win.
func compareFile(ctx context.Context, cmd *cobra.Command, c *center.Center, task string) (findings []finding) {
	path := configPath(cmd)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	file, err := config.Load(path, cmd.Flags())
	if err != nil {
		return nil // it is for the connection only, or a worker tells
	}
	for _, t := range file.Tasks {
		a, err := c.CompareSettings(ctx, t.Name, t.Settings)
		if err != nil || a.Same() || task != "" && task != t.Name {
			continue
		}
		what := path + " says something else than the database, which is in force"
		if !a.Exists {
			what = "it is in " + path + " and not in the database"
		}
		findings = append(findings, finding{
			Status: center.FindingNote, Check: "settings", TaskType: t.Name, Finding: what, Hint: "rota task apply --dry-run -f " + path,
		})
	}
	return findings
}

func problems(findings []finding) error {
	n := 0
	for _, f := range findings {
		if f.Status == center.FindingProblem {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return errors.New("there is a problem")
	}
	return fmt.Errorf("there are %d problems", n)
}

type finding = center.Finding

// findingsText is a line for each finding in a pipe; on a terminal nothing is cut, and the advice stands below.
func findingsText(s screen, findings []finding) string {
	var lines []string
	for _, f := range findings {
		head := fmt.Sprintf("%-7s  %-11s  ", f.Status, f.Check)
		what := f.Finding
		if f.TaskType != "" {
			what = f.TaskType + ": " + what
		}
		advice := "-> " + f.Hint
		if f.Hint == "" {
			advice = ""
		}
		indent := strings.Repeat(" ", len(head))
		if s.color {
			head = byMeaning(f, f.Status) + head[len(f.Status):]
		}
		if s.width == 0 {
			lines = append(lines, strings.TrimRight(head+what+"  "+advice, " "))
			continue
		}
		what = text.WrapSoft(what, max(s.width-len(indent), 20))
		if advice != "" {
			what += "\n" + text.WrapSoft(advice, max(s.width-len(indent), 20))
		}
		lines = append(lines, head+strings.ReplaceAll(what, "\n", "\n"+indent))
	}
	return strings.Join(lines, "\n")
}
