package center

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/condition"
)

// diagnosis collects the findings of Diagnose. Each type of check adds the findings about one subject: databaseCheck,
// clusterCheck, rosterCheck, serverCheck, queueCheck and runCheck.
type diagnosis struct {
	c        *Center
	task     string         // the task type being checked
	names    map[string]int // number of servers by short name
	findings []Condition
}

// add adds a finding and returns it, so that the check can say what it is about and since when.
func (d *diagnosis) add(status, kind, hint, format string, args ...any) *Condition {
	c := condition.New(status, kind, fmt.Sprintf(format, args...), hint)
	c.TaskType = d.task
	d.findings = append(d.findings, c)
	return &d.findings[len(d.findings)-1]
}

func (d *diagnosis) ok(kind, format string, args ...any) {
	d.add(StatusOK, kind, "", format, args...)
}

func (d *diagnosis) note(kind, hint, format string, args ...any) *Condition {
	return d.add(StatusNote, kind, hint, format, args...)
}

func (d *diagnosis) problem(kind, hint, format string, args ...any) *Condition {
	return d.add(StatusProblem, kind, hint, format, args...)
}

// commandName returns the argument by which a command finds a server: the uuid if the process has several servers.
func (d *diagnosis) commandName(s ServerRecord) string {
	if name := ServerName(s.UUID); d.names[name] == 1 {
		return name
	}
	return s.UUID
}

// firstFive lists the first five ids.
func firstFive(ids []string) string {
	if len(ids) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:5], ", "), len(ids)-5)
	}
	return strings.Join(ids, ", ")
}

// rosterRows holds what Diagnose has read about one task type.
type rosterRows struct {
	task    TaskRecord
	servers []ServerRecord
	queues  []QueueRecord
	alerts  []EventRecord // that no other check reports, the newest first
}

// eligible returns the number of eligible servers.
func (r rosterRows) eligible() (n int) {
	for _, s := range r.servers {
		if s.Eligible() {
			n++
		}
	}
	return n
}
