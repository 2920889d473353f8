// Package condition has the one value for what an operator should know about a roster, and the list of its kinds.
//
// A stalled call is a finding of the doctor, an alert, an event and a line on a page. Each of them is the same
// Condition, so that all name its kind, its subject and its beginning in the same way, and no reader has to learn them
// from a sentence. The package knows no SQL: center reads the conditions of a roster, and manager sees those of its own
// process.
package condition

import (
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
)

// The status of a Condition.
const (
	OK      = "OK"
	Note    = "NOTE"    // worth knowing
	Problem = "PROBLEM" // something is wrong
)

// Condition is something that an operator should know about a roster.
type Condition struct {
	Status   string    `json:"status"`         // OK, NOTE or PROBLEM
	Check    string    `json:"check"`          // the part of the roster that was checked
	Kind     string    `json:"kind"`           // such as STALLED: letters, digits and _
	TaskType string    `json:"task_type"`      // empty if it is about the database; in an alert the server's own if empty
	Server   string    `json:"server"`         // uuid; empty if it is about no single server
	QueueID  string    `json:"queue_id"`       // empty if it is about no single queue
	Subject  string    `json:"subject"`        // what else it is about, such as a run; empty if the fields above say it
	Since    time.Time `json:"since,omitzero"` // when it began, by the clock of this process; zero if that is not known
	Text     string    `json:"finding"`        // for people to read
	Hint     string    `json:"hint"`           // what to do
}

// Kind is what is the same for all conditions of a kind.
type Kind struct {
	Name    string
	Check   string // the part of the roster to which it belongs
	Status  string // of its gravest conditions
	Alert   Alert
	Meaning string
	// Remedy says what to do, where that does not depend on the condition. {task} stands for the task type, as a word of
	// a shell.
	Remedy string
}

// Alert says whether the servers raise alerts about the conditions of a kind, and how they learn of one.
type Alert int

// How the servers learn of the conditions of a kind.
const (
	Silent  Alert = iota // no alerts: only the doctor finds it
	Watched              // servers see it again and again, for as long as it lasts
	Told                 // a server is told once, or seldom
	Each                 // it is over at once: each one is an alert of its own
)

// Gap is for how long an episode counts as lasting after a server has last seen the condition, if servers look for it
// once per look (S16).
func (a Alert) Gap(look time.Duration) time.Duration {
	switch a {
	case Each:
		return 0
	case Told:
		return 70 * time.Minute
	}
	return max(2*time.Minute, 3*look)
}

// alerts is the check of conditions that only the process that raises the alert can see. The doctor knows them from the
// events.
const alerts = "alerts"

// ShownByAlerts reports whether the doctor reads the events of the kind's alerts, because no other row shows all of its
// conditions.
func (k Kind) ShownByAlerts() bool { return k.Check == alerts }

// Kinds returns all kinds of conditions.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf returns a kind by its name. A program may raise alerts of kinds of its own.
func KindOf(name string) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Name: name, Check: alerts, Status: Note, Alert: Watched}
}

// New returns a condition of a kind. An empty hint stands for the remedy of the kind.
func New(kind Kind, taskType, text, hint string) Condition {
	return Condition{Kind: kind.Name, TaskType: taskType, Text: text, Hint: hint}.Complete()
}

// Complete returns the condition with what is the same for all of its kind.
func (c Condition) Complete() Condition {
	k := KindOf(c.Kind)
	c.Status, c.Check = k.Status, k.Check
	if c.Hint == "" {
		inSQL := "'" + strings.ReplaceAll(c.TaskType, "'", "''") + "'"
		c.Hint = strings.NewReplacer("'{task}'", inSQL, "{task}", human.ShellWord(c.TaskType)).Replace(k.Remedy)
	}
	return c
}

// Noted returns the condition as a note: it is less grave than most of its kind.
func (c Condition) Noted() Condition {
	c.Status = Note
	return c
}

// Key identifies the condition as long as it lasts, whatever its text says meanwhile.
func (c Condition) Key() string {
	return strings.Join([]string{c.Kind, c.TaskType, c.Server, c.QueueID, c.Subject}, "\x00")
}
