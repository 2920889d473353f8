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
	e := &diagnosis{c: c}
	for _, look := range []func(context.Context) error{
		e.version, e.transactions, e.clockSkew, e.schemaVersion, e.privileges,
		func(ctx context.Context) error { return e.rosters(ctx, taskType) },
	} {
		if err := look(ctx); err != nil {
			return e.findings, fmt.Errorf("diagnose: %w", err)
		}
	}
	return e.findings, nil
}

// diagnosis collects the findings of Diagnose.
type diagnosis struct {
	c        *Center
	task     string         // the task type being checked
	names    map[string]int // number of servers by short name
	findings []Finding
}

func (e *diagnosis) add(status, check, hint, format string, args ...any) {
	e.findings = append(e.findings, Finding{Status: status, Check: check, TaskType: e.task, Finding: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *diagnosis) ok(check, format string, args ...any) {
	e.add(FindingOK, check, "", format, args...)
}

func (e *diagnosis) note(check, hint, format string, args ...any) {
	e.add(FindingNote, check, hint, format, args...)
}

func (e *diagnosis) problem(check, hint, format string, args ...any) {
	e.add(FindingProblem, check, hint, format, args...)
}

// handle returns the argument by which a command finds a server: the uuid if the process has several servers.
func (e *diagnosis) handle(s ServerRecord) string {
	if name := ServerName(s.UUID); e.names[name] == 1 {
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
func (e *diagnosis) rosters(ctx context.Context, taskType string) error {
	tasks, err := e.c.Tasks().List(ctx, taskType)
	if err != nil {
		return err
	}
	servers, err := e.c.Servers().List(ctx, ServerFilter{}) // of all task types, to know which names are ambiguous
	if err != nil {
		return err
	}
	e.names = map[string]int{}
	for _, s := range servers {
		e.names[ServerName(s.UUID)]++
	}
	queues, err := e.c.Queues().List(ctx, QueueFilter{TaskType: taskType})
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		e.note("tasks", "start a worker, or: rota task apply -f rota.yaml", "there are no task types")
	}
	for _, task := range tasks {
		r := rosterReading{task: task}
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
		if err := e.roster(ctx, r); err != nil {
			return err
		}
	}
	e.task = ""
	return nil
}

// roster checks one task type, and adds an OK if there is no other finding.
func (e *diagnosis) roster(ctx context.Context, r rosterReading) error {
	e.task = r.task.TaskType
	before := len(e.findings)
	settings, err := e.settings(ctx, r)
	if err != nil {
		return err
	}
	e.served(r)
	e.deadServers(r)
	e.queues(r)
	e.requests(r)
	e.stalls(r, settings.StallAfter)
	e.errors(r)
	e.items(r.task)
	e.waitsForAll(r)
	if len(e.findings) == before {
		e.ok("roster", "%s, %s", plural(r.task.QueueTotal, "queue", "queues"), plural(len(r.servers), "server", "servers"))
	}
	return nil
}

// settings checks whether workers can use the row, and whether their programs give other settings.
func (e *diagnosis) settings(ctx context.Context, r rosterReading) (Settings, error) {
	s, err := e.c.Tasks().Settings(ctx, r.task.TaskType)
	if errors.Is(err, ErrUnknownTask) {
		e.problem("settings", "rota task apply -f rota.yaml creates it again", "the row in schedule_task_type is gone; workers cannot start")
		return Settings{StallAfter: time.Hour}, nil
	}
	if err != nil {
		return s, err
	}
	e.given(r, s)
	if s.Queues == 0 && len(s.QueueNames) == 0 {
		s.Queues = 1 // served reports it
	}
	if err := s.Validate(); err != nil {
		e.problem("settings", "correct the row: rota task apply -f rota.yaml", "workers refuse the row in schedule_task_type and keep their last valid settings: %s", oneLine(err))
	}
	return s, nil
}
