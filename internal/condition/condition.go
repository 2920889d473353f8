// Package condition has the one value for what an operator should know about a roster, and the kinds of it.
//
// A stalled call is a finding of the doctor, an alert, an event and a line on a page. Each of them is the same
// Condition, so that all name its kind, its subject and its beginning in the same way, and no reader has to learn them
// from a sentence. The package knows no SQL: center reads the conditions of a roster, and manager sees those of its own
// process.
package condition

import (
	"strings"
	"time"
)

// The status of a Condition.
const (
	OK      = "OK"
	Note    = "NOTE"    // worth knowing
	Problem = "PROBLEM" // something is wrong
)

// Condition is something that an operator should know about a roster.
type Condition struct {
	Status   string    `json:"status"`         // OK, NOTE or PROBLEM; empty in alerts, which are not graded
	Check    string    `json:"check"`          // the part of the roster that was checked
	Kind     string    `json:"kind"`           // such as STALLED: letters, digits and _
	TaskType string    `json:"task_type"`      // empty if it is about the database
	Server   string    `json:"server"`         // uuid; empty if it is about no single server
	QueueID  string    `json:"queue_id"`       // empty if it is about no single queue
	Subject  string    `json:"subject"`        // what else it is about, such as a run; empty if the fields above say it
	Since    time.Time `json:"since,omitzero"` // when it began, by the clock of this process; zero if that is not known
	Text     string    `json:"finding"`        // for people to read
	Hint     string    `json:"hint"`           // what to do
}

// New returns a condition of a kind, with the check to which it belongs.
func New(status, kind, text, hint string) Condition {
	return Condition{Status: status, Check: checkOf(kind), Kind: kind, Text: text, Hint: hint}
}

// Key identifies the condition as long as it lasts, whatever its text says meanwhile.
func (c Condition) Key() string {
	return strings.Join([]string{c.Kind, c.TaskType, c.Server, c.QueueID, c.Subject}, "\x00")
}
