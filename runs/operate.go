package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// operation is what an operator does to a run, or to each run of a graph.
type operation struct {
	name, past string
	states     []string // of the runs to which it can be done
	// isDone, if not nil, reports whether there is nothing to do for a run of a graph.
	isDone func(Run) bool
	// do does it under the lock row of the run's task type. It returns ErrRunState if the run is in another state.
	do func(ctx context.Context, l *roster.LockTx, runID string, graph bool) error
	// settle, if not nil, does what is left to do for the runs of a graph, in the same transaction.
	settle func(ctx context.Context, t sqldb.Tx, runIDs []string) error
	// after, if not nil, goes on with the runs after the commit. If the process ends before, a tick does it.
	after func(c *closer, ctx context.Context, list []taskRun) error
}

var stillOpen = []string{Waiting, Ready, Running}

var cancelling = operation{
	name: "cancel", past: "cancelled", states: stillOpen,
	do: func(ctx context.Context, l *roster.LockTx, runID string, _ bool) error {
		return changeOpen(ctx, l, runID, `cancel_requested = TRUE`)
	},
	after: func(c *closer, ctx context.Context, list []taskRun) error { return c.stopRuns(ctx, idsOf(list)) },
}

func pausing(paused bool) operation {
	verb := roster.PauseVerb(paused)
	return operation{
		name: verb, past: verb + "d", states: stillOpen,
		isDone: func(r Run) bool { return r.Paused == paused },
		do: func(ctx context.Context, l *roster.LockTx, runID string, _ bool) error {
			set := `paused = TRUE`
			if !paused {
				set = `paused = FALSE, waiting_since = {now}` // the pause was no stall
			}
			return changeOpen(ctx, l, runID, set)
		},
	}
}

var rerunning = operation{
	name: "rerun", past: "started again", states: reopenable, do: rerun, settle: settleGraph,
	after: (*closer).resolveAll,
}

// Cancel ends an open run at once: its unfinished queues are CANCELLED, also if other servers own them. A server with a
// sweep notices it at its next tick or [Sweeps.Save]; its calls in flight may still take effect. Dependants under rule
// SUCCESS fail. Cancel returns ErrRunState if the run has ended.
func (rs *Runs) Cancel(ctx context.Context, runID, actor string) error {
	_, err := rs.operate(ctx, cancelling, runID, false, actor)
	return err
}

// CancelGraph is Cancel for all open runs of the graph of a run, and returns their ids. One transaction marks all of
// them (R22), and then each is ended. It returns ErrRunState if all have ended, and ErrGraphTooLarge for a graph of
// more than 1,000 runs.
func (rs *Runs) CancelGraph(ctx context.Context, runID, actor string) ([]string, error) {
	return rs.operate(ctx, cancelling, runID, true, actor)
}

// SetPaused pauses or resumes an open run. A paused run is not opened, servers claim none of its queues, and they
// suspend its sweeps. Its deadline does not change. SetPaused returns ErrRunState if the run has ended.
func (rs *Runs) SetPaused(ctx context.Context, runID string, paused bool, actor string) error {
	_, err := rs.operate(ctx, pausing(paused), runID, false, actor)
	return err
}

// SetGraphPaused is SetPaused for all open runs of the graph of a run, in one transaction (R22). It returns the ids
// of the runs that it has changed. It does not pause a run that joins the graph later. It returns the errors of
// CancelGraph.
func (rs *Runs) SetGraphPaused(ctx context.Context, runID string, paused bool, actor string) ([]string, error) {
	return rs.operate(ctx, pausing(paused), runID, true, actor)
}

// Rerun reopens a run that is FAILED, CANCELLED, DEPENDENT_FAILED or SKIPPED (R11). Its failed and cancelled queues
// start again, each at its cursor, and know which items have failed. Queues that are DONE stay so, unless the number
// of queues has changed or retention has begun to delete the run. The run is opened like any other READY run, and gets
// a new deadline. Its dependants that failed or were skipped because of it wait again; a dependant that is RUNNING or
// has succeeded does not change. A SKIPPED root gets the dependants that it did not get before. If an upstream of the
// run itself has failed, the run fails again. A backfill that has ended goes on until the run has ended. Rerun returns
// ErrRunState if the run is in any other state, and ErrNoRuns if its task type has become CONTINUOUS since. A dependant
// whose task type has become CONTINUOUS stays as it is, and so do the runs that wait only for that one.
func (rs *Runs) Rerun(ctx context.Context, runID, actor string) error {
	_, err := rs.operate(ctx, rerunning, runID, false, actor)
	return err
}

// RerunGraph is Rerun for all runs of the graph of a run that can be reopened, in one transaction (R22), and returns
// their ids. It returns the errors of CancelGraph.
func (rs *Runs) RerunGraph(ctx context.Context, runID, actor string) ([]string, error) {
	return rs.operate(ctx, rerunning, runID, true, actor)
}

// operate does something to a run, or to all runs of its graph to which it can be done, in one transaction under the
// lock rows of their task types. It records an event of the operator for each of them, and returns their ids.
func (rs *Runs) operate(ctx context.Context, op operation, runID string, graph bool, actor string) ([]string, error) {
	var changed []taskRun
	what := "run " + runID
	f := func(ctx context.Context, l *roster.LockTx, list []Run, _ []Dep) (err error) {
		changed, err = op.all(ctx, l, list, graph, actor)
		return err
	}
	var err error
	if graph {
		what = "the graph of " + what
		if _, err = rs.readRun(ctx, runID); err == nil { // edges may name a run that retention has deleted
			err = rs.underGraph(ctx, []string{runID}, f)
		}
	} else {
		err = rs.underRun(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
			return f(ctx, l, []Run{{ID: runID, TaskType: l.TaskType}}, nil)
		})
	}
	if err == nil && op.after != nil {
		err = op.after(rs.closer, ctx, changed)
	}
	return idsOf(changed), sqldb.Wrap(err, "%s %s", op.name, what)
}

// all does it to a run or to the runs of a graph to which it can be done, and returns these.
func (op operation) all(ctx context.Context, l *roster.LockTx, list []Run, graph bool, actor string,
) (changed []taskRun, err error) {
	isDone := false
	for _, r := range list {
		if graph && !slices.Contains(op.states, r.State) {
			continue
		}
		if graph && op.isDone != nil && op.isDone(r) {
			isDone = true
			continue
		}
		of := l.Of(r.TaskType)
		err := op.do(ctx, of, r.ID, graph)
		if graph && (errors.Is(err, ErrRunState) || errors.Is(err, ErrNoRuns)) {
			continue // it has ended meanwhile, or its task type has no runs any more (R14)
		}
		if err == nil {
			reason := "run " + r.ID + " was " + op.past
			err = of.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: reason})
		}
		if err != nil {
			return nil, err
		}
		changed = append(changed, taskRun{r.ID, r.TaskType})
	}
	switch {
	case len(changed) == 0 && !isDone:
		return nil, fmt.Errorf("%w: no run of the graph can be %s", ErrRunState, op.past)
	case graph && op.settle != nil:
		err = op.settle(ctx, l.Tx, idsOf(changed))
	}
	return changed, err
}

func idsOf(list []taskRun) []string {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

// changeOpen writes columns of an open run.
func changeOpen(ctx context.Context, l *roster.LockTx, runID, set string) error {
	n, err := l.Exec(ctx, `UPDATE schedule_run SET `+set+`, version = version + 1
		WHERE run_id = ? AND state IN `+openStates, runID)
	return inState(ctx, l.Tx, runID, n > 0, err)
}

// rerun reopens a run, and without graph its dependants. The other runs of a graph are reopened by themselves.
func rerun(ctx context.Context, l *roster.LockTx, runID string, graph bool) error {
	if err := checkMode(ctx, l, l.TaskType); err != nil { // no server would open the run (R14)
		return err
	}
	ended, err := lockRun(ctx, l.Tx, runID, reopenable...)
	if err := inState(ctx, l.Tx, runID, ended, err); err != nil {
		return err
	}
	r, err := runRow(ctx, l, runID)
	if err != nil {
		return err
	}
	if err := reopen(ctx, l, runID, !graph || r.skippedSlot()); err != nil || graph {
		return err
	}
	return continueBackfills(ctx, l.Tx, runID)
}

// settleGraph makes the reopened runs of a graph wait that depend on another one of them: a run under rule FINISHED may
// have been reopened before its upstream.
func settleGraph(ctx context.Context, t sqldb.Tx, ids []string) error {
	marks := sqldb.Marks(len(ids))
	_, err := t.Exec(ctx, `UPDATE schedule_run SET state = '`+Waiting+`' WHERE run_id IN (`+marks+`)
		AND state = '`+Ready+`'
		AND run_id IN (SELECT d.run_id FROM schedule_run_dep d WHERE d.upstream_run_id IN (`+marks+`))`,
		append(sqldb.Args(ids), sqldb.Args(ids)...)...)
	if err != nil {
		return err
	}
	return continueBackfillsOf(ctx, t, ids)
}

// underRun runs f under the lock row of a run's task type.
func (rs *Runs) underRun(ctx context.Context, runID string, f func(context.Context, *roster.LockTx) error) error {
	r, err := rs.readRun(ctx, runID)
	if err != nil {
		return err
	}
	return rs.roster.UnderLock(ctx, r.TaskType, f)
}

// reopenable are the states of the runs that a rerun reopens.
var reopenable = []string{Failed, Cancelled, DependentFailed, Skipped}

// reopen reopens a run whose row is locked and, with dependants, lets its dependants wait again. The run of a slot that
// was SKIPPED has none yet but the runs that were submitted after it: it gets them now. A submitted run had its
// dependants before one of its upstreams was SKIPPED.
func reopen(ctx context.Context, l *roster.LockTx, runID string, dependants bool) error {
	r, err := runRow(ctx, l, runID)
	if err != nil {
		return err
	}
	skippedSlot := r.skippedSlot()
	if skippedSlot {
		if _, err := forgetSkipped(ctx, l, r.Trigger); err != nil {
			return err
		}
	}
	if err := reopenQueues(ctx, l.Tx, runID); err != nil {
		return err
	}
	if r.State, err = reopenRun(ctx, l.Tx, runID); err != nil {
		return err
	}
	if !dependants {
		return nil
	}
	if skippedSlot {
		if err := insertDependants(ctx, l, r); err != nil {
			return err
		}
	}
	return resetDependants(ctx, l, runID)
}

// skippedSlot reports whether the run is that of a slot that was SKIPPED: it has no dependants yet.
func (r Run) skippedSlot() bool { return r.State == Skipped && r.RootID == r.ID && r.Trigger != "" }

// reopenQueues lets the queues begin again that failed or were cancelled. Their failed items, and the number of these,
// stay until a sweep has been through the whole queue, so that the next sweep need not find out again which items fail.
func reopenQueues(ctx context.Context, t sqldb.Tx, runID string) error {
	_, err := t.Exec(ctx, `UPDATE schedule_run_queue SET state = '`+QueuePending+`', attempt = 0, recoveries = 0,
		next_attempt_at = NULL, last_error = '', finished_at = NULL
		WHERE run_id = ? AND state IN ('`+QueueFailed+`', '`+QueueCancelled+`')`, runID)
	return err
}

// reopenRun makes a run that has ended READY, or WAITING if not all of its upstreams have succeeded.
func reopenRun(ctx context.Context, t sqldb.Tx, runID string) (state string, err error) {
	if state, _, err = upstreamState(ctx, t, runID); err != nil {
		return "", err
	}
	if state != Ready {
		state = Waiting
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET state = ?, message = '', cancel_requested = FALSE, paused = FALSE,
		waiting_since = {now}, finished_at = NULL, acked_at = NULL, acked_by = '' WHERE run_id = ?`, state, runID)
	if err != nil {
		return "", err
	}
	return state, restartLimit(ctx, t, runID)
}

// resetDependants makes the DEPENDENT_FAILED and SKIPPED runs among the direct and indirect dependants of a run WAITING
// again. It locks each dependant before it reads the state: if another transaction is resolving the dependant, its
// commit comes first. It leaves out the dependants whose task type has no runs any more, because no server would end
// them (R14). It reads the modes under the lock rows of the task types, because a change of a mode looks for open runs
// under them.
func resetDependants(ctx context.Context, l *roster.LockTx, runID string) error {
	t := l.Tx
	ids, err := allDependants(ctx, t, runID)
	if err != nil {
		return err
	}
	names, err := sqldb.RecordsIn[string](ctx, t, ids, `SELECT DISTINCT task_type FROM schedule_run
		WHERE run_id IN ({ids}) ORDER BY task_type`)
	if err != nil {
		return fmt.Errorf("read the task types of the dependants: %w", err)
	}
	slices.Sort(names) // the ids may come in several statements
	for _, name := range slices.Compact(names) {
		if err := lockTask(ctx, l, name); err != nil {
			return fmt.Errorf("lock %s: %w", name, err)
		}
	}
	dependants, err := dependantsOf(ctx, t, runID, ` AND EXISTS (SELECT 1 FROM schedule_run r
		JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.run_id = schedule_run_dep.run_id AND t.mode = '`+ModeRun+`')`)
	if err != nil {
		return err
	}
	for _, id := range dependants {
		if err := resetDependant(ctx, t, id); err != nil {
			return fmt.Errorf("let run %s wait again: %w", id, err)
		}
	}
	return nil
}

// allDependants returns the direct and indirect dependants of a run, in the order in which every transaction locks
// runs.
func allDependants(ctx context.Context, t sqldb.Tx, runID string) ([]string, error) {
	return dependantsOf(ctx, t, runID, "")
}

// dependantsOf returns those of allDependants that edges with a condition lead to.
func dependantsOf(ctx context.Context, t sqldb.Tx, runID, condition string) ([]string, error) {
	seen := []string{runID}
	for i := 0; i < len(seen) && len(seen) < maxGraphRuns; i++ {
		ids, err := sqldb.Records[string](ctx, t, `SELECT run_id FROM schedule_run_dep WHERE upstream_run_id = ?`+condition+
			` ORDER BY run_id`, seen[i])
		if err != nil {
			return nil, fmt.Errorf("read the dependants: %w", err)
		}
		for _, id := range ids {
			if !slices.Contains(seen, id) {
				seen = append(seen, id)
			}
		}
	}
	dependants := seen[1:]
	slices.Sort(dependants)
	return dependants, nil
}

func resetDependant(ctx context.Context, t sqldb.Tx, runID string) error {
	if _, err := t.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ?`, runID); err != nil {
		return err
	}
	n, err := t.Exec(ctx, `UPDATE schedule_run SET state = '`+Waiting+`', message = '', waiting_since = {now},
		finished_at = NULL, acked_at = NULL, acked_by = ''
		WHERE run_id = ? AND state IN ('`+DependentFailed+`', '`+Skipped+`')`, runID)
	if err != nil || n == 0 {
		return err
	}
	return restartLimit(ctx, t, runID)
}

// ErrNoProblem means that there is nothing to acknowledge.
var ErrNoProblem = errors.New("there is nothing to acknowledge")

// Ack acknowledges that a run is FAILED, DEPENDENT_FAILED or CANCELLED: from now on this is no problem (R19). Ack also
// acknowledges the earlier failures of the same trigger or backfill, and the dependants that failed because of this
// run. Other submitted runs stay as they are. A rerun undoes it. Ack returns ErrRunState if the run is in any other
// state, and ErrNoProblem if it is acknowledged already.
func (rs *Runs) Ack(ctx context.Context, runID, actor string) error {
	return rs.ack(ctx, runID, actor, false)
}

// ack is Ack, and with all it also acknowledges the earlier submitted runs.
func (rs *Runs) ack(ctx context.Context, runID, actor string, all bool) error {
	err := rs.underRun(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		failed, err := lockRun(ctx, l.Tx, runID, Failed, DependentFailed, Cancelled)
		if err := inState(ctx, l.Tx, runID, failed, err); err != nil {
			return err
		}
		n, err := ackEarlier(ctx, l, runID, actor, all)
		if err != nil {
			return err
		}
		more, err := ackDependants(ctx, l.Tx, runID, actor)
		if err == nil && n+more == 0 {
			err = ErrNoProblem
		}
		if err != nil {
			return err
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "acknowledged: " + runID})
	})
	return sqldb.Wrap(err, "acknowledge run %s", runID)
}

// ackEarlier acknowledges a failed run and the earlier failures of its trigger or backfill, and returns their number.
// The earlier failures of submitted runs are other work, so that they count only with all. It reads the run first:
// MySQL reads no table that the same statement updates.
func ackEarlier(ctx context.Context, l *roster.LockTx, runID, actor string, all bool) (int, error) {
	r, err := runRow(ctx, l, runID)
	if err != nil {
		return 0, err
	}
	same, args := `backfill_id IS NULL AND trigger_name IS NULL`, []any{sqldb.Actor(actor), l.TaskType, l.OwnSign, runID}
	switch {
	case r.Backfill != "":
		same, args = `backfill_id = ?`, append(args, r.Backfill)
	case r.Trigger != "":
		same, args = `backfill_id IS NULL AND trigger_name = ?`, append(args, r.Trigger)
	case !all:
		same, args = `run_id = ?`, append(args, runID)
	}
	return l.Exec(ctx, ackRuns+`task_type = ? AND own_sign = ? AND run_id <= ? AND `+same, args...)
}

// ackRuns begins a statement that acknowledges the failed and cancelled runs under a condition.
const ackRuns = `UPDATE schedule_run SET acked_at = {now}, acked_by = ?, version = version + 1
	WHERE state IN ` + failedOrCancelled + ` AND acked_at IS NULL AND `

// ackDependants acknowledges the direct and indirect dependants of a run that failed because of it.
func ackDependants(ctx context.Context, t sqldb.Tx, runID, actor string) (acked int, err error) {
	dependants, err := allDependants(ctx, t, runID)
	if err != nil {
		return 0, err
	}
	for _, id := range dependants {
		n, err := t.Exec(ctx, ackRuns+`run_id = ? AND state = '`+DependentFailed+`'`, sqldb.Actor(actor), id)
		if err != nil {
			return acked, err
		}
		acked += n
	}
	return acked, nil
}

// AckTask acknowledges all problems of a task type that can be acknowledged: its failed and cancelled runs, and the
// missed and skipped slots of its triggers. It returns the problems. It returns ErrNoProblem if there are none, and
// ErrUnknownTask if the task type has no lock row.
func (rs *Runs) AckTask(ctx context.Context, taskType, actor string) (acked []Problem, err error) {
	list, err := rs.Acknowledgeable(ctx, taskType)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.RunID != "" {
			err = rs.ack(ctx, p.RunID, actor, true)
		} else {
			err = rs.ackSlots(ctx, p, actor)
		}
		// With one of these errors another operator has acknowledged it already.
		if err != nil && !errors.Is(err, ErrNoProblem) && !errors.Is(err, ErrRunState) {
			return acked, err
		}
		acked = append(acked, p)
	}
	return acked, nil
}

// Acknowledgeable returns the problems of a task type that AckTask would acknowledge. It returns ErrNoProblem if there
// are none.
func (rs *Runs) Acknowledgeable(ctx context.Context, taskType string) ([]Problem, error) {
	list, err := rs.Problems(ctx, taskType)
	if err != nil {
		return nil, err
	}
	cancelled, err := rs.Cancelled(ctx, taskType)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(append(list, cancelled...), func(p Problem) bool { return !p.acknowledgeable() })
	if len(list) == 0 {
		return nil, fmt.Errorf("acknowledge the problems of %s$%s: %w", taskType, rs.ownSign, ErrNoProblem)
	}
	return list, nil
}

// acknowledgeable reports whether the problem is about the past, so that an operator can end it without a change.
func (p Problem) acknowledgeable() bool {
	return p.Kind == condition.RunFailed.Name || p.Kind == condition.RunCancelled.Name ||
		p.Kind == condition.SlotMissed.Name || p.Kind == condition.SlotSkipped.Name
}

// ackSlots acknowledges the missed or skipped slots of a trigger that the caller has seen.
func (rs *Runs) ackSlots(ctx context.Context, p Problem, actor string) error {
	slots := "missed"
	if p.Kind == condition.SlotSkipped.Name {
		slots = "skipped"
	}
	err := rs.roster.UnderLock(ctx, p.TaskType, func(ctx context.Context, l *roster.LockTx) (err error) {
		var n int
		if p.Kind == condition.SlotSkipped.Name {
			n, err = forgetSkipped(ctx, l, p.Trigger)
		} else {
			n, err = l.Exec(ctx, `UPDATE schedule_trigger SET missed_at = NULL, version = version + 1
				WHERE own_sign = ? AND name = ? AND missed_at <= ?`, l.OwnSign, p.Trigger, l.Dialect.Time(p.Since))
		}
		if err != nil || n == 0 {
			return err
		}
		return recordTrigger(ctx, l, actor, slots+" slots acknowledged: "+p.Trigger)
	})
	return sqldb.Wrap(err, "acknowledge the %s slots of trigger %s", slots, p.Trigger)
}
