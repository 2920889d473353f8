package runs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a run (R1). In the first three the run is open: it has not ended. Whether a run is blocked or
// recovering follows from its queues and is not stored.
const (
	Waiting         = "WAITING"          // its upstreams have not ended
	Ready           = "READY"            // to be opened, when no other run of the task type is RUNNING
	Running         = "RUNNING"          // its queues are being swept
	Success         = "SUCCESS"          // every queue is drained
	Failed          = "FAILED"           // a queue has failed, or the deadline has passed
	DependentFailed = "DEPENDENT_FAILED" // an upstream did not succeed
	Cancelled       = "CANCELLED"        // an operator has cancelled it
	Skipped         = "SKIPPED"          // an earlier run of its trigger was open; a rerun opens it
)

// States lists the states of a run.
func States() []string {
	return []string{Waiting, Ready, Running, Success, Failed, DependentFailed, Cancelled, Skipped}
}

// The states of a queue of a run.
const (
	QueuePending   = "PENDING"   // its owner may claim it, from next_attempt_at on
	QueueRunning   = "RUNNING"   // a server has claimed it
	QueueDone      = "DONE"      // drained
	QueueFailed    = "FAILED"    // its attempts are used up, or the deadline has passed
	QueueCancelled = "CANCELLED" // the run was cancelled, or the queue was removed
)

// openStates are the states of a run that has not ended. unfinished are the states of a queue of a run that is not
// finished.
const (
	openStates = `('` + Waiting + `', '` + Ready + `', '` + Running + `')`
	unfinished = `('` + QueuePending + `', '` + QueueRunning + `')`
)

// succeeded is the condition that a run has succeeded, and that its slot has come. If the clock was ahead when a
// trigger fired, the success of its slot says nothing about the slots before it (S17).
const succeeded = `(state = '` + Success + `' AND scheduled_at <= {now})`

// ErrUnknownRun means that no run in this own_sign has that id.
var ErrUnknownRun = errors.New("unknown run")

// The errors of Runs.Find.
var (
	ErrNoRunOrTask = errors.New("neither a run nor a task type has this name")
	ErrNoRunYet    = errors.New("the task type has had no run")
)

// ErrRunState means that the state of the run does not allow the operation.
var ErrRunState = errors.New("the run is in the wrong state")

// Run is one sweep of all queues of a task type, a row of schedule_run. Its JSON names are the columns. Times are by
// the database's clock; a time that is not set yet is zero.
type Run struct {
	ID       string `json:"run_id"` // UUIDv7: sorts by time
	TaskType string `json:"task_type"`
	OwnSign  string `json:"own_sign"`
	Key      string `json:"run_key"`     // a task type has one run per key
	RootID   string `json:"root_run_id"` // the run for which this one was made as a dependant; or its own ID
	// Name is the name of its graph. A dependant has that of the run for which it was made; a submission without a name
	// has that of the runs that it waits for. Empty if none was given.
	Name string `json:"graph_name"`
	// Trigger is the name of the trigger that fired it or its root; empty if it was submitted.
	Trigger string `json:"trigger_name" db:",null"`
	// Backfill is the id of the backfill that made it or its root, or reopened it last (R20); empty if there is none.
	Backfill string `json:"backfill_id" db:",null"`
	State    string `json:"state"`
	Message  string `json:"message"` // why it is in that state: the error of the queue or upstream that failed first

	Paused          bool   `json:"paused"` // it is not opened, and no server claims its queues
	CancelRequested bool   `json:"cancel_requested"`
	Priority        int    `json:"priority"` // the READY run with the highest priority is opened first
	Params          string `json:"params"`
	TraceParent     string `json:"trace_parent"` // see Submission.TraceParent

	// Of a submitted run. It is not opened before NotBefore, and fails if it has not ended by EndBefore; zero is no bound.
	// MaxAttempts bounds the attempts of each of its queues; 0 is queue_max_attempts of the task type. Its dependants have
	// none of these.
	NotBefore   time.Time `json:"not_before,omitzero"`
	EndBefore   time.Time `json:"end_before,omitzero"`
	MaxAttempts int       `json:"max_attempts"`

	// QueueTotal is the number of queues when it was opened.
	QueueTotal  int   `json:"queue_total"`
	ItemsDone   int64 `json:"items_done"` // the sum over all queues, set when the run ends
	ItemsFailed int64 `json:"items_failed"`
	// ItemsAtLeast means that ItemsDone and ItemsFailed are lower bounds: a sweep ended without recording its end, because
	// its process died or the run was cancelled (R15).
	ItemsAtLeast bool `json:"items_at_least"`

	ScheduledAt time.Time `json:"scheduled_at"` // the trigger's slot, or when it was submitted
	// SlotEnd is the next slot of the trigger, as the schedule was when it fired. A periodic run works the time from its
	// slot to SlotEnd. Zero if there is none, also for a run that was submitted or fired by hand.
	SlotEnd   time.Time `json:"slot_end_at,omitzero"`
	TimeZone  string    `json:"time_zone"` // of the trigger. Defaults to UTC.
	CreatedAt time.Time `json:"created_at"`
	// WaitingSince is when it was made, reopened, opened or resumed, or became READY, whichever is last.
	WaitingSince time.Time `json:"waiting_since"`
	StartedAt    time.Time `json:"started_at,omitzero"`  // when it was opened; newer rows belong to the next run (R9)
	DeadlineAt   time.Time `json:"deadline_at,omitzero"` // when it fails by itself; never zero while it is RUNNING
	FinishedAt   time.Time `json:"finished_at,omitzero"`
	FailedAt     time.Time `json:"failed_at,omitzero"`  // when it last became FAILED or DEPENDENT_FAILED; a rerun keeps it
	AlertedAt    time.Time `json:"alerted_at,omitzero"` // when a server raised the alert of that failure
	AckedAt      time.Time `json:"acked_at,omitzero"`   // when an operator acknowledged its failure (R19)
	AckedBy      string    `json:"acked_by"`
	Version      int64     `json:"version"`
}

// Ended reports whether the run has ended. After that, only a rerun changes it, or a submission of the key of a SKIPPED
// run.
func (r Run) Ended() bool {
	return r.State != Waiting && r.State != Ready && r.State != Running
}

// Queue is a queue of a run, a row of schedule_run_queue.
type Queue struct {
	QueueID     string `json:"queue_id"`
	State       string `json:"state"`
	Server      string `json:"server"`     // the uuid of the server that claimed it last
	Epoch       int64  `json:"epoch"`      // the queue's epoch at that claim
	Attempt     int    `json:"attempt"`    // the number of the current or last attempt, from 1
	Recoveries  int    `json:"recoveries"` // takeovers since the last progress
	Cursor      string `json:"cursor_value"`
	ItemsDone   int64  `json:"items_done"`
	ItemsFailed int64  `json:"items_failed"`
	LastError   string `json:"last_error"`

	ItemsAtLeast bool `json:"items_at_least"` // ItemsDone and ItemsFailed are lower bounds (R15)

	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	StartedAt     time.Time `json:"started_at,omitzero"`
	ProgressAt    time.Time `json:"progress_at,omitzero"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
}

// Dep is an edge between two runs: Run waits for Upstream (R5).
type Dep struct {
	Run      string `json:"run_id"`
	Upstream string `json:"upstream_run_id"`
	Rule     string `json:"rule"` // SUCCESS or FINISHED
}

// newRunID returns a UUIDv7 of the database's time. The ids sort runs, and the local clock must not decide their order.
func newRunID(now time.Time) string {
	id := uuid.New()
	us := uint64(now.UnixMicro())
	binary.BigEndian.PutUint64(id[:8], us/1000<<16|7<<12|us%1000<<2)
	return id.String()
}

// readRun returns the run with that id. It returns ErrUnknownRun if it does not exist.
func (c core) readRun(ctx context.Context, runID string) (Run, error) {
	r, err := runRow(ctx, c.db, runID)
	if err == nil && r.OwnSign != c.ownSign {
		err = ErrUnknownRun
	}
	return r, sqldb.Wrap(err, "read run %s", runID)
}

// runRow reads the row of a run. It returns ErrUnknownRun if there is none.
func runRow(ctx context.Context, q sqldb.Eacher, runID string) (Run, error) {
	r, found, err := sqldb.Record[Run](ctx, q, `SELECT {columns} FROM schedule_run WHERE run_id = ?`, runID)
	if err == nil && !found {
		err = ErrUnknownRun
	}
	return r, err
}

// lockRun locks the row of a run by writing it, and reports whether the run is in one of the states.
func lockRun(ctx context.Context, t sqldb.Tx, runID string, states ...string) (bool, error) {
	n, err := t.ExecIn(ctx, states, `UPDATE schedule_run SET version = version + 1
		WHERE run_id = ? AND state IN ({ids})`, runID)
	return n > 0, err
}

// lockRunning share-locks the row of a run and reports whether the run is RUNNING: it stays so until the transaction
// ends. Without this lock a server could claim a PENDING queue of a run that was rerun and is not opened yet.
func lockRunning(ctx context.Context, t sqldb.Tx, runID string) (bool, error) {
	state, err := sqldb.Value[string](ctx, t, `SELECT q.state FROM schedule_run q WHERE q.run_id = ?`+t.Dialect.Share,
		runID)
	return state == Running, err
}

// moveRun changes the state of a run whose row is locked. If the run fails or is skipped, moveRun also records an
// event. If it fails, moveRun notes that no alert has been raised (R19): a later success may end the problem before a
// server looks for problems.
func moveRun(ctx context.Context, t sqldb.Tx, runID, from, to, message string) error {
	set, fails := ``, to == Failed || to == DependentFailed
	switch {
	case to == Ready:
		set = `, waiting_since = {now}`
	case fails:
		set = `, finished_at = {now}, failed_at = {now}, alerted_at = NULL`
	case (Run{State: to}).Ended():
		set = `, finished_at = {now}`
	}
	err := sqldb.Changed(t.Exec(ctx, `UPDATE schedule_run SET state = ?, message = ?`+set+`
		WHERE run_id = ? AND state = ?`, to, sqldb.Clean(message), runID, from))
	if err != nil || !fails && to != Skipped {
		return err
	}
	r, err := runRow(ctx, t, runID)
	if err != nil {
		return err
	}
	return roster.RecordEvents(ctx, t, r.TaskType, r.OwnSign, r.endEvent())
}

// endEvent is the event of a run that has ended without its work.
func (r Run) endEvent() roster.Event {
	return roster.Event{Kind: roster.EventRun, Reason: strings.TrimSuffix("run "+r.ID+" is "+r.State+": "+r.Message, ": ")}
}

// inState returns ErrRunState with the present state of a run if a statement has not found the run in a state that
// allows it.
func inState(ctx context.Context, t sqldb.Tx, runID string, found bool, err error) error {
	if err != nil || found {
		return err
	}
	r, err := runRow(ctx, t, runID)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it is %s", ErrRunState, r.State)
}

// taskRun is the id of a run and its task type, which names the lock row.
type taskRun struct{ ID, TaskType string }

// DisplayState returns the state of the run, or PAUSED for an open run that an operator has paused.
func (r Run) DisplayState() string {
	if r.Paused && !r.Ended() {
		return TriggerPaused
	}
	return r.State
}

// DisplayState returns the state of the backfill, or PAUSED for an open one that an operator has paused.
func (b Backfill) DisplayState() string {
	if b.Paused && b.State == BackfillRunning {
		return TriggerPaused
	}
	return b.State
}
