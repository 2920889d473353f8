package center

import (
	"fmt"
	"strings"
)

// diagnosis collects the findings of Diagnose. Each type of check adds the findings about one subject: databaseCheck,
// clusterCheck, rosterCheck, serverCheck, queueCheck and runCheck.
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
