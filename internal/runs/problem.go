package runs

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/plural"
)

// The kinds of problems. They are also the kinds of the alerts about them.
const (
	ProblemFailed  = condition.RunFailed    // a run is FAILED or DEPENDENT_FAILED, and no later run of its trigger has succeeded; a submitted run has none
	ProblemOverdue = condition.RunOverdue   // an open run has used 90 % of run_timeout
	ProblemStalled = condition.RunStalled   // no item of an open run has ended for half an hour
	ProblemMissed  = condition.SlotMissed   // a slot of a trigger never fires, and no run of a later slot has succeeded
	ProblemSkipped = condition.SlotSkipped  // three slots of a trigger in a row were skipped, or all slots of a day
	ProblemLate    = condition.TriggerLate  // a trigger is due, and no server fires it
	ProblemInvalid = condition.TriggerError // a trigger cannot fire, because its row is invalid
)

// NoteCancelled is the kind of the records of [Runs.Cancelled].
const NoteCancelled = condition.RunCancelled

// Problem is something about the runs of a task type that an operator should look after (R19). It lasts until its cause
// is gone, a later run succeeds, or an operator acknowledges it.
type Problem struct {
	Kind     string `json:"kind"` // one of the Problem constants
	TaskType string `json:"task_type"`
	Trigger  string `json:"trigger_name"` // empty for submitted runs
	Backfill string `json:"backfill_id"`  // of failed runs, if a backfill made them
	RunID    string `json:"run_id"`       // the last run that failed, or the open run; empty for a problem of a trigger
	FirstID  string `json:"first_run_id"` // the first run that failed since the last success
	Count    int64  `json:"count"`        // of failed runs, or of missed or skipped slots
	State    string `json:"state"`        // of the run or the trigger
	Message  string `json:"message"`      // of the run or the trigger: the cause

	// Since is when the first run failed, the open run began to wait or was opened, or the slot was due.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // when the last run failed; the deadline of an open run
}

// Condition returns the problem as the doctor and the alerts know it.
func (p Problem) Condition() condition.Condition {
	c := condition.New(p.Kind, p.TaskType, p.Text(), p.hint())
	c.Subject, c.Since = p.Subject(), p.Since
	return c
}

// Subject returns what the problem is about: one run or one trigger. It stays the same while the problem lasts.
func (p Problem) Subject() string {
	if p.FirstID != "" {
		return "run " + p.FirstID
	}
	return "trigger " + p.Trigger
}

// Text describes the problem in one sentence for people. The subject is not part of it.
func (p Problem) Text() string {
	switch p.Kind {
	case ProblemFailed, NoteCancelled:
		return p.failedText()
	case ProblemOverdue:
		if p.Until.Equal(p.Since) {
			return fmt.Sprintf("it has been %s since %s, for nearly as long as run_timeout, and was not opened", p.State, instant(p.Since))
		}
		return fmt.Sprintf("it is %s since %s; its deadline is %s", p.State, instant(p.Since), instant(p.Until))
	case ProblemStalled:
		text := fmt.Sprintf("it is %s since %s, and nothing of it has ended since %s", p.State, instant(p.Since), instant(p.Until))
		if p.Message != "" {
			text += ": " + p.Message
		}
		return text
	case ProblemMissed:
		return fmt.Sprintf("the slot %s was missed and never fires (slots missed so far: %d)", instant(p.Since), p.Count)
	case ProblemSkipped:
		return skippedText(p.Count, p.Since)
	case ProblemLate:
		return fmt.Sprintf("it has been due since %s, and no server has fired it", instant(p.Since))
	case ProblemInvalid:
		return "it does not fire, because its row is invalid: " + p.Message
	}
	return p.Message
}

// SkippedText says how many slots of a trigger were skipped since the last one that fired.
func (t Trigger) SkippedText() string { return skippedText(t.Skipped, t.SkippedSince) }

// SkippedTooLong reports whether the skipped slots of the trigger are a problem (R19).
func (t Trigger) SkippedTooLong(now time.Time) bool {
	return t.Skipped >= skippedSlots || t.Skipped > 0 && now.Sub(t.SkippedSince) > skippedFor
}

func skippedText(slots int64, since time.Time) string {
	return fmt.Sprintf("%s skipped in a row since the slot %s, because other runs of the task type were open", plural.Of(slots, "slot was", "slots were"), instant(since))
}

// failedText describes a failed run, or several in succession.
func (p Problem) failedText() string {
	source := "submitted runs"
	if p.Trigger != "" {
		source = "runs of trigger " + p.Trigger
	}
	if p.Backfill != "" {
		source = "runs of backfill " + p.Backfill + " of trigger " + p.Trigger
	}
	if p.Count == 1 {
		return fmt.Sprintf("%s at %s (one of the %s): %s", p.State, instant(p.Until), source, p.Message)
	}
	verb := "have failed"
	if p.Kind == NoteCancelled {
		verb = "were cancelled"
	}
	return fmt.Sprintf("%d %s %s since %s, the last one (%s) %s at %s: %s", p.Count, source, verb, instant(p.Since), p.RunID, p.State, instant(p.Until), p.Message)
}

// instant formats a time for people, in UTC.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hint says what an operator can do.
func (p Problem) hint() string {
	switch p.Kind {
	case ProblemFailed:
		if p.Backfill != "" {
			return "rota run backfill show " + p.Backfill + "; then rota run rerun " + p.RunID + " or rota run ack " + p.RunID
		}
		if p.Trigger == "" {
			return "rota run show " + p.RunID + "; then rota run rerun or rota run ack; rota run ack " + p.TaskType + " acknowledges all"
		}
		return "rota run show " + p.RunID + "; then rota run rerun or rota run ack; the next success of the trigger also ends this"
	case ProblemOverdue:
		if p.State == RunReady {
			return "rota run show " + p.RunID + " says what it waits for"
		}
		return "rota run show " + p.RunID + "; it fails at its deadline; run_timeout sets the deadline of the next run"
	case ProblemStalled:
		return "rota run show " + p.RunID + " names its queues and failed items; rota run cancel " + p.RunID + " lets the next run begin"
	case ProblemMissed:
		return "the next success of the trigger ends this, or rota run ack " + p.TaskType + "; misfire of the trigger decides what late slots do"
	case ProblemSkipped:
		return "rota run list " + p.TaskType + " shows the open run; overlap WAIT of the trigger lets one slot wait; the next slot that fires ends this, or rota run ack " + p.TaskType
	case ProblemLate:
		return "start a worker: rota worker -c rota.yaml; a live worker logs why it cannot tick"
	case ProblemInvalid:
		return "correct it: rota trigger apply; then rota trigger resume " + p.Trigger
	}
	return ""
}
