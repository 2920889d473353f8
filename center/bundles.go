package center

import (
	"context"

	"github.com/dutyrota/rota/internal/runs"
)

// What users and operators read and change comes in bundles, one for each kind of thing. A bundle is made anew by each
// call, holds nothing of its own and may be used concurrently.

// Tasks are the task types and their settings.
type Tasks struct{ c *Center }

// Tasks returns the task types and their settings.
func (c *Center) Tasks() *Tasks { return &Tasks{c} }

// Pause stops a task type: every server drains its queues and keeps them, until Resume.
func (t *Tasks) Pause(ctx context.Context, taskType, actor string) error {
	return t.c.roster.Pause(ctx, taskType, true, actor)
}

// Resume ends a Pause.
func (t *Tasks) Resume(ctx context.Context, taskType, actor string) error {
	return t.c.roster.Pause(ctx, taskType, false, actor)
}

// Queues are the queues of all task types, with their owners.
type Queues struct{ c *Center }

// Queues returns the queues with their owners.
func (c *Center) Queues() *Queues { return &Queues{c} }

// Add adds a named queue, which a server owns at once (N2), or keeps a queue that is being removed. Repartition changes
// the number of numbered queues.
func (q *Queues) Add(ctx context.Context, taskType, queueID, parameter, actor string) error {
	return q.c.roster.AddQueue(ctx, taskType, queueID, parameter, actor)
}

// Remove removes a named queue (N2). Its owner drains it first; then the row goes, at once if there is no owner. List of
// that name are not processed any more. The last queue stays.
func (q *Queues) Remove(ctx context.Context, taskType, queueID, actor string) error {
	return q.c.roster.RemoveQueue(ctx, taskType, queueID, actor)
}

// Repartition requests another number of numbered queues. Nothing changes at once: every server drains everything, and
// then one transaction changes the number (N1). The number that is in force withdraws the request.
func (q *Queues) Repartition(ctx context.Context, taskType string, total int, actor string) error {
	return q.c.roster.Repartition(ctx, taskType, total, actor)
}

// Servers are the live servers and those that are gone.
type Servers struct{ c *Center }

// Servers returns the servers.
func (c *Center) Servers() *Servers { return &Servers{c} }

// Pause stops one server: it drains its queues, and others take them over. While there are no others, the queues wait.
// ErrGone if there is no such server.
func (s *Servers) Pause(ctx context.Context, uuid, actor string) error {
	return s.c.roster.PauseServer(ctx, uuid, true, actor)
}

// Resume ends a Pause or a Drain. ErrGone if there is no such server.
func (s *Servers) Resume(ctx context.Context, uuid, actor string) error {
	return s.c.roster.PauseServer(ctx, uuid, false, actor)
}

// Drain takes all queues from a server for good: the others request its queues, and it hands over each as soon as nothing
// of it is in flight. While there are no others, it works on. It stays alive and owns nothing until Resume. ErrGone if
// there is no such server.
//
// With force, Drain does not wait: the queues go to others at once, or to nobody, recorded FORCED, even with calls in
// flight. The server learns of it with its next heartbeat and cancels them. Its fenced writes are rejected; e-mails and
// HTTP calls cannot be undone. Drain returns the queues whose rows a transaction of the server locks: end its session in
// the database, or the process.
func (s *Servers) Drain(ctx context.Context, uuid string, force bool, actor string) (held []string, err error) {
	return s.c.roster.DrainServer(ctx, uuid, force, actor)
}

// Items are the items that failed.
type Items struct{ c *Center }

// Items returns the items that failed.
func (c *Center) Items() *Items { return &Items{c} }

// Runs are the runs of task types of mode RUN.
type Runs struct {
	e       *runs.Engine
	ownSign string
}

// Runs returns the runs.
func (c *Center) Runs() *Runs { return &Runs{c.runs, c.ownSign} }

// List lists the latest runs of this own_sign that the filter selects, the newest first, at most limit.
func (r *Runs) List(ctx context.Context, f RunFilter, limit int) ([]RunRecord, error) {
	return r.e.RunRecords(ctx, f, limit)
}

// Queues returns the queues of a run in natural order. There are none before the run is opened.
func (r *Runs) Queues(ctx context.Context, runID string) ([]RunQueue, error) {
	return r.e.RunQueues(ctx, runID)
}

// Graph returns a run with its upstreams and dependants, direct and indirect, in the order in which they were made, and
// the edges between them. ErrUnknownRun if there is no such run.
func (r *Runs) Graph(ctx context.Context, runID string) ([]Run, []RunDep, error) {
	return r.e.RunGraph(ctx, runID)
}

// Submit makes a run of a task type of mode RUN, and the runs of its dependants, and returns its id. There is one run of
// a key: to submit the key again returns the id of the first run, and existed is true. Without a key each call makes a
// run. The run is opened when the runs in after have succeeded and no other run of the task type is RUNNING. If one of
// the runs in after does not succeed, the run ends DEPENDENT_FAILED.
//
// The dependants get the key and the params. ErrUnknownTask; ErrUnknownRun for a run in after that does not exist. After a
// commit whose reply was lost, existed is false.
func (r *Runs) Submit(ctx context.Context, taskType, key, params string, after ...string) (runID string, existed bool, err error) {
	return r.e.SubmitOnce(ctx, taskType, key, params, after...)
}

// Cancel ends an open run at once: its queues are CANCELLED, whichever servers own them. A server at work learns of it
// within two seconds; what it has started may still take effect. Dependants under rule SUCCESS fail. ErrRunState if the
// run has ended.
func (r *Runs) Cancel(ctx context.Context, runID, actor string) error {
	return r.e.CancelRun(ctx, runID, actor)
}

// Pause stops an open run: it is not opened, its queues are not claimed, and its sweeps are suspended, until Resume. Its
// deadline does not change. ErrRunState if the run has ended.
func (r *Runs) Pause(ctx context.Context, runID, actor string) error {
	return r.e.PauseRun(ctx, runID, true, actor)
}

// Resume ends a Pause.
func (r *Runs) Resume(ctx context.Context, runID, actor string) error {
	return r.e.PauseRun(ctx, runID, false, actor)
}

// Rerun lets a run that failed or was cancelled go on (R11): its failed and cancelled queues begin again, each from its
// cursor. List that are done stay done, unless the number of queues has changed. Its dependants that failed because of
// it wait again. ErrRunState if the run is in any other state.
func (r *Runs) Rerun(ctx context.Context, runID, actor string) error {
	return r.e.Rerun(ctx, runID, actor)
}

// Triggers are what begins runs.
type Triggers struct{ e *runs.Engine }

// Triggers returns what begins runs.
func (c *Center) Triggers() *Triggers { return &Triggers{c.runs} }

// List lists the triggers of this own_sign by name.
func (t *Triggers) List(ctx context.Context, f TriggerFilter) ([]TriggerRecord, error) {
	return t.e.TriggerRecords(ctx, f)
}

// Define makes a trigger unless one of its name exists, and returns the one that is in force.
func (t *Triggers) Define(ctx context.Context, trigger Trigger) (Trigger, error) {
	return t.e.DefineTrigger(ctx, trigger)
}

// Compare returns what would change if the trigger were applied, and its next n slots.
func (t *Triggers) Compare(ctx context.Context, trigger Trigger, n int) (TriggerDiff, error) {
	return t.e.CompareTrigger(ctx, trigger, n)
}

// Apply makes a trigger what the argument says: what the argument leaves open gets its default.
func (t *Triggers) Apply(ctx context.Context, trigger Trigger, actor string) (Trigger, error) {
	return t.e.ApplyTrigger(ctx, trigger, actor)
}

// Pause stops a trigger. It misses its slots; after Resume its misfire policy decides about them.
func (t *Triggers) Pause(ctx context.Context, name, actor string) error {
	return t.e.PauseTrigger(ctx, name, true, actor)
}

// Resume ends a Pause.
func (t *Triggers) Resume(ctx context.Context, name, actor string) error {
	return t.e.PauseTrigger(ctx, name, false, actor)
}

// Fire makes a run at once, beside the slots of the trigger, and returns its id.
func (t *Triggers) Fire(ctx context.Context, name, actor string) (runID string, err error) {
	return t.e.FireTrigger(ctx, name, actor)
}

// Delete deletes a trigger. Its runs stay.
func (t *Triggers) Delete(ctx context.Context, name, actor string) error {
	return t.e.DeleteTrigger(ctx, name, actor)
}

// Events are what happened to queues, servers and settings.
type Events struct{ c *Center }

// Events returns what happened.
func (c *Center) Events() *Events { return &Events{c} }
