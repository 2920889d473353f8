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
		func(ctx context.Context) error { return rosterCheck{d}.all(ctx, taskType) },
	} {
		if err := check(ctx); err != nil {
			return d.findings, fmt.Errorf("diagnose: %w", err)
		}
	}
	return d.findings, nil
}

// diagnosis collects the findings of Diagnose. What is checked is cut by subject: databaseCheck, clusterCheck, rosterCheck,
// serverCheck and queueCheck add their findings to it.
type diagnosis struct {
	c        *Center
	task     string         // the task type being checked
	names    map[string]int // number of servers by short name
	findings []Finding
}

func (d *diagnosis) add(status, check, hint, format string, args ...any) {
	d.findings = append(d.findings, Finding{Status: status, Check: check, TaskType: d.task, Finding: fmt.Sprintf(format, args...), Hint: hint})
}

func (d *diagnosis) ok(check, format string, args ...any) {
	d.add(FindingOK, check, "", format, args...)
}

func (d *diagnosis) note(check, hint, format string, args ...any) {
	d.add(FindingNote, check, hint, format, args...)
}

func (d *diagnosis) problem(check, hint, format string, args ...any) {
	d.add(FindingProblem, check, hint, format, args...)
}

// commandName returns the argument by which a command finds a server: the uuid if the process has several servers.
func (d *diagnosis) commandName(s ServerRecord) string {
	if name := ServerName(s.UUID); d.names[name] == 1 {
		return name
	}
	return s.UUID
}

// plural returns a number with its noun.
func plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
