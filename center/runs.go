package center

import "github.com/dutyrota/rota/internal/runs"

// Engine returns the engine of runs: tick, claim, save, finish. It is for package manager, and its type is internal.
func (c *Center) Engine() *runs.Engine { return c.runs }

// The records of runs and triggers. Their fields are the columns of the tables, see docs/tables.md.
type (
	// Run is one sweep of all queues of a task type, a row of schedule_run.
	Run = runs.Run
	// RunQueue is a queue of a run, a row of schedule_run_queue.
	RunQueue = runs.RunQueue
	// RunDep is an edge of a graph of runs: Run waits for Upstream (R5).
	RunDep = runs.RunDep
	// RunRecord is a run and its progress.
	RunRecord = runs.RunRecord
	// RunFilter selects runs. Empty fields select all.
	RunFilter = runs.RunFilter
	// RunEnd is how runs of a task type ended.
	RunEnd = runs.RunEnd
	// Trigger is when runs of a task type begin by themselves, a row of schedule_trigger.
	Trigger = runs.Trigger
	// TriggerRecord is a trigger as operators see it.
	TriggerRecord = runs.TriggerRecord
	// TriggerFilter selects triggers. Empty fields select all.
	TriggerFilter = runs.TriggerFilter
	// TriggerDiff is a trigger beside the row that it replaces.
	TriggerDiff = runs.TriggerDiff
	// After is an upstream of a task type, with the rule for its end.
	After = runs.After
	// Difference is a setting for which a program or a file gives another value than the row has.
	Difference = runs.Difference
)

// The states of a run (R1). The first three are open: the run has not ended.
const (
	RunWaiting         = runs.RunWaiting         // for its upstreams
	RunReady           = runs.RunReady           // to be opened, when no other run of the task type is RUNNING
	RunRunning         = runs.RunRunning         // its queues are being swept
	RunSuccess         = runs.RunSuccess         // every queue is drained
	RunFailed          = runs.RunFailed          // a queue has failed, or the deadline has passed
	RunDependentFailed = runs.RunDependentFailed // an upstream did not succeed
	RunCancelled       = runs.RunCancelled       // by an operator
	RunSkipped         = runs.RunSkipped         // other runs of the task type were open
)

// The states of a queue of a run.
const (
	RunQueuePending   = runs.RunQueuePending   // to be claimed, from next_attempt_at on
	RunQueueRunning   = runs.RunQueueRunning   // claimed
	RunQueueDone      = runs.RunQueueDone      // drained
	RunQueueFailed    = runs.RunQueueFailed    // too often, or the deadline has passed
	RunQueueCancelled = runs.RunQueueCancelled // the run was cancelled, or the queue was removed
)

// The kinds of triggers.
const (
	TriggerCron  = runs.TriggerCron  // a cron expression with seconds, in Quartz's syntax
	TriggerEvery = runs.TriggerEvery // a Go duration, counted from StartAt
	TriggerOnce  = runs.TriggerOnce  // a time in RFC 3339
)

// The states of a trigger.
const (
	TriggerActive = runs.TriggerActive
	TriggerPaused = runs.TriggerPaused // it misses its slots; after a resume its misfire policy decides about them
	TriggerDone   = runs.TriggerDone   // it has no more slots
	TriggerError  = runs.TriggerError  // its row makes no sense; the message says why
)

// What fires of the slots that are due when they are several or old, because no worker was there, or the trigger was
// paused.
const (
	MisfireOne  = runs.MisfireOne  // the newest
	MisfireSkip = runs.MisfireSkip // the newest, if it is younger than MisfireAfter
	MisfireAll  = runs.MisfireAll  // each, up to CatchupMax: then the newest
)

// What becomes of a slot while runs of its target are open (R4).
const (
	OverlapSkip = runs.OverlapSkip // its run is SKIPPED
	OverlapWait = runs.OverlapWait // its run waits, if no other run waits already; else it is SKIPPED
)

// When a run may begin after one of its upstreams (R5).
const (
	RuleSuccess  = runs.RuleSuccess  // the upstream succeeded
	RuleFinished = runs.RuleFinished // the upstream ended in any state
)

// What a caller may branch on with errors.Is.
var (
	ErrUnknownRun     = runs.ErrUnknownRun     // no run of that id in this own_sign
	ErrRunState       = runs.ErrRunState       // the run is in a state in which that cannot be done to it
	ErrRunOver        = runs.ErrRunOver        // the queue of the run does not belong to this sweep any more
	ErrUnknownTrigger = runs.ErrUnknownTrigger // no trigger of that name in this own_sign
)
