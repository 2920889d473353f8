package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	maxRunID     = 36  // bytes
	maxRunKey    = 200 // bytes; the column also holds the keys of triggers, which append a slot to an id
	maxGraphName = 100 // bytes
	maxAttempts  = 1_000
)

// Submission is what a caller of Submit asks for. The zero value asks for a run without a key, which begins as soon
// as it can.
type Submission struct {
	Key string `json:"-"` // there is one run per key; without a key each call makes a run
	// Name is a name for the graph of the run, which its dependants have, too (R22). Several graphs may have one name,
	// such as those of each night. Defaults to the name of the runs in After.
	Name   string `json:"name,omitempty"`
	Params string `json:"params,omitempty"` // for the dealer
	// TraceParent is the trace context of the caller, as the header traceparent of W3C Trace Context has it. The span of
	// the run is its child, and the batches of the run link to it. Defaults to none.
	TraceParent string   `json:"trace_parent,omitempty"`
	After       []string `json:"after,omitempty"` // the ids of runs that must succeed first

	Priority int `json:"priority,omitempty"` // the READY run with the highest priority is opened first
	// NotBefore is the earliest time at which the run is opened. Defaults to no bound.
	NotBefore time.Time `json:"not_before,omitzero"`
	// EndBefore makes the run fail if it has not ended by then. Defaults to run_timeout from its opening on.
	EndBefore   time.Time `json:"end_before,omitzero"`
	MaxAttempts int       `json:"max_attempts,omitempty"` // of each queue. Default: queue_max_attempts.

	Actor string `json:"actor,omitempty"` // the operator that an event names. Defaults to no event.
}

var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Validate checks a submission as far as that needs no database. It does not look at After.
func (s Submission) Validate() error {
	if s.Key != "" {
		if err := roster.ValidName("key", s.Key, maxRunKey); err != nil {
			return err
		}
	}
	switch {
	case s.MaxAttempts < 0 || s.MaxAttempts > maxAttempts:
		return fmt.Errorf("max_attempts (%d) must be from 0 to %d", s.MaxAttempts, maxAttempts)
	case !s.EndBefore.IsZero() && !s.EndBefore.After(s.NotBefore):
		return fmt.Errorf("end_before (%s) must be after not_before (%s)", instant(s.EndBefore), instant(s.NotBefore))
	}
	err := cmp.Or(validPriority(s.Priority), validTime("not_before", s.NotBefore), validTime("end_before", s.EndBefore))
	if err != nil {
		return err
	}
	if s.Name != "" {
		if err := roster.ValidName("name", s.Name, maxGraphName); err != nil {
			return err
		}
	}
	if s.TraceParent != "" && !traceParent.MatchString(s.TraceParent) {
		return fmt.Errorf("trace_parent (%.60q) must be a traceparent: version, trace id, parent id and flags in "+
			"lower-case hexadecimal digits, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", s.TraceParent)
	}
	return validParams(s.Params)
}

// run returns the run that is asked for, with its times at the database's resolution.
func (s Submission) run() Run {
	return Run{
		Key: s.Key, Name: s.Name, Params: s.Params, TraceParent: s.TraceParent, Priority: s.Priority,
		MaxAttempts: s.MaxAttempts,
		NotBefore:   s.NotBefore.UTC().Truncate(time.Microsecond), EndBefore: s.EndBefore.UTC().Truncate(time.Microsecond),
	}
}

// Submit makes a run of a task type of mode RUN, and the runs of its dependants, and returns its id. A task type has
// one run per key. If the key has a run already, Submit ignores the other fields, records no event and returns the id
// of that run, and existed is true. A run that is SKIPPED is then reopened, as Rerun does. After a commit whose reply
// was lost, Submit cannot know this, and existed is false.
//
// The run is opened when the runs in After have succeeded and no other run of the task type is RUNNING. It never
// overlaps and is never skipped. If one of the runs in After does not succeed, it ends DEPENDENT_FAILED.
//
// The dependants get its key, params, trace context and priority. A join has its run when each of its upstreams has a
// run of the key (R18). If a dependant already has a run of that key, Submit makes no second one: the existing run also
// waits for this one, if it still waits.
//
// It returns ErrUnknownTask for an unknown task type and ErrUnknownRun for an unknown run in After.
func (rs *Runs) Submit(ctx context.Context, taskType string, s Submission) (runID string, existed bool, err error) {
	if s.Key == "" {
		s.Key = uuid.NewString()
	}
	submit := func() error {
		return rs.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			after, err := checkUpstreams(ctx, l, l.OwnSign, s.After)
			if err == nil {
				runID, existed, err = submitRun(ctx, l, s.run(), after, s.Actor)
			}
			return err
		})
	}
	if err = s.Validate(); err == nil {
		err = ensureLockRow(ctx, rs.roster, taskType)
	}
	if err == nil {
		err = submit()
	}
	if errors.Is(err, sqldb.ErrUnknownCommit) && ctx.Err() == nil {
		err = submit() // if the first try was committed, the key finds its run
		existed = false
	}
	if err == nil && (len(s.After) > 0 || existed) {
		err = rs.closer.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	if err != nil {
		return "", false, fmt.Errorf("submit %s: %w", taskType, err)
	}
	return runID, existed, nil
}

func validParams(params string) error {
	return sqldb.CheckText("params", params, sqldb.MaxText)
}

// maxPriority bounds priorities in both directions, as the constraints of their columns do.
const maxPriority = 1_000_000_000_000_000_000

func validPriority(priority int) error {
	if priority < -maxPriority || priority > maxPriority {
		return fmt.Errorf("priority (%d) must be between -%d and %[2]d", priority, maxPriority)
	}
	return nil
}

// validTime checks a time from outside, which may be zero. The columns hold the years 1000 to 9999, and a limit or a
// jitter of at most ten years may be added.
func validTime(name string, at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1000 || year > 9899) {
		return fmt.Errorf("%s (%s) must be in the years 1000 to 9899", name, instant(at))
	}
	return nil
}

// ensureLockRow checks that a task type can have runs, and makes its lock row, which is missing in an own_sign in which
// no server of the task type has started yet.
func ensureLockRow(ctx context.Context, r *roster.Roster, taskType string) error {
	if err := checkMode(ctx, r.DB, taskType); err != nil {
		return err
	}
	return r.InsertLockRow(ctx, taskType)
}

// checkMode returns ErrUnknownTask if the task type has no row, and ErrNoRuns if its mode is not RUN.
func checkMode(ctx context.Context, q sqldb.Eacher, taskType string) error {
	mode, found, err := sqldb.Record[string](ctx, q, `SELECT mode FROM schedule_task_type WHERE task_type = ?`, taskType)
	switch {
	case err == nil && !found:
		return roster.ErrUnknownTask
	case err == nil && mode != ModeRun:
		return ErrNoRuns
	}
	return err
}

// submitRun completes a run that waits for others and inserts it, unless a run of its key exists. It records an event
// if an operator submits it.
func submitRun(ctx context.Context, l *roster.LockTx, r Run, after []string, actor string,
) (runID string, there bool, err error) {
	if err := checkMode(ctx, l, l.TaskType); err != nil { // it may have changed since ensureLockRow (R14)
		return "", false, err
	}
	known, err := runsOfKeys(ctx, l, []string{l.TaskType}, []string{r.Key})
	if err != nil {
		return "", false, err
	}
	if id := known[taskKey{l.TaskType, r.Key}]; id != "" {
		return id, true, reopenSkipped(ctx, l, id)
	}
	r = newRun(l, r, l.Now)
	if len(after) > 0 {
		r.State = Waiting
	}
	if r.Name == "" {
		if r.Name, err = nameOf(ctx, l, after); err != nil {
			return "", false, err
		}
	}
	if err := insertRuns(ctx, l, []Run{r}, after); err != nil || actor == "" {
		return r.ID, false, err
	}
	reason := "run " + r.ID + " was submitted"
	return r.ID, false, l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: reason})
}

// nameOf returns the name of the graph of some runs: that of the first of them that has one.
func nameOf(ctx context.Context, l *roster.LockTx, runIDs []string) (string, error) {
	names, err := sqldb.RecordsIn[string](ctx, l, runIDs, `SELECT graph_name FROM schedule_run
		WHERE run_id IN ({ids}) AND graph_name <> '' ORDER BY run_id`)
	if err != nil || len(names) == 0 {
		return "", sqldb.Wrap(err, "read the names of the graphs")
	}
	return names[0], nil
}

// reopenSkipped reopens a run if it is SKIPPED: its slot gets a run after all.
func reopenSkipped(ctx context.Context, l *roster.LockTx, runID string) error {
	if skipped, err := lockRun(ctx, l.Tx, runID, Skipped); err != nil || !skipped {
		return err
	}
	if err := reopen(ctx, l, runID, true); err != nil {
		return err
	}
	return continueBackfills(ctx, l.Tx, runID)
}

// checkUpstreams checks that the runs exist, and returns each of them once.
func checkUpstreams(ctx context.Context, q sqldb.Eacher, ownSign string, after []string) ([]string, error) {
	after = slices.Compact(slices.Sorted(slices.Values(after)))
	for _, id := range after {
		if _, err := readUpstream(ctx, q, ownSign, id); err != nil {
			return nil, err
		}
	}
	return after, nil
}

func readUpstream(ctx context.Context, q sqldb.Eacher, ownSign, id string) (r Run, err error) {
	if err = sqldb.CheckText("the id", id, maxRunID); err == nil {
		r, err = runRow(ctx, q, id)
	}
	if err == nil && r.OwnSign != ownSign {
		err = ErrUnknownRun
	}
	return r, sqldb.Wrap(err, "after %.60q", id)
}
