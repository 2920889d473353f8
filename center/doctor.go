package center

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	for _, look := range []func(context.Context) error{
		d.version, d.transactions, d.cluster, d.clockSkew, d.schemaVersion, d.privileges,
		func(ctx context.Context) error { return d.rosters(ctx, taskType) },
	} {
		if err := look(ctx); err != nil {
			return d.findings, fmt.Errorf("diagnose: %w", err)
		}
	}
	return d.findings, nil
}

// diagnosis collects the findings of Diagnose.
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

// rosters checks each task type. It reads the rows of all task types together, so that it takes few statements.
func (d *diagnosis) rosters(ctx context.Context, taskType string) error {
	tasks, err := d.c.Tasks().List(ctx, taskType)
	if err != nil {
		return err
	}
	servers, err := d.c.Servers().List(ctx, ServerFilter{}) // of all task types, to know which names are ambiguous
	if err != nil {
		return err
	}
	d.names = map[string]int{}
	for _, s := range servers {
		d.names[ServerName(s.UUID)]++
	}
	queues, err := d.c.Queues().List(ctx, QueueFilter{TaskType: taskType})
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		d.note("tasks", "start a worker, or: rota task apply -f rota.yaml", "there are no task types")
	}
	for _, task := range tasks {
		r := rosterRows{task: task}
		for _, s := range servers {
			if s.TaskType == task.TaskType {
				r.servers = append(r.servers, s)
			}
		}
		for _, q := range queues {
			if q.TaskType == task.TaskType {
				r.queues = append(r.queues, q)
			}
		}
		if err := d.roster(ctx, r); err != nil {
			return err
		}
	}
	d.task = ""
	return nil
}

// roster checks one task type, and adds an OK if there is no other finding.
func (d *diagnosis) roster(ctx context.Context, r rosterRows) error {
	d.task = r.task.TaskType
	before := len(d.findings)
	settings, err := d.settings(ctx, r)
	if err != nil {
		return err
	}
	d.availability(r)
	d.overdueServers(r)
	d.queues(r)
	d.pendingHandovers(r)
	d.stalledCalls(r, settings.StallAfter)
	d.errors(r)
	d.items(r.task)
	d.pendingQueueChanges(r)
	if len(d.findings) == before {
		d.ok("roster", "%s, %s", plural(r.task.QueueTotal, "queue", "queues"), plural(len(r.servers), "server", "servers"))
	}
	return nil
}

// settings checks whether workers can use the row, and whether their programs give other settings.
func (d *diagnosis) settings(ctx context.Context, r rosterRows) (Settings, error) {
	s, err := d.c.Tasks().Settings(ctx, r.task.TaskType)
	if errors.Is(err, ErrUnknownTask) {
		d.problem("settings", "rota task apply -f rota.yaml creates it again", "the row in schedule_task_type is gone; workers cannot start")
		return Settings{StallAfter: time.Hour}, nil
	}
	if err != nil {
		return s, err
	}
	d.givenSettings(r, s)
	if s.Queues == 0 && len(s.QueueNames) == 0 {
		s.Queues = 1 // availability reports it
	}
	if err := s.Validate(); err != nil {
		d.problem("settings", "correct the row: rota task apply -f rota.yaml", "workers refuse the row in schedule_task_type and keep their last valid settings: %s", oneLine(err))
	}
	return s, nil
}
