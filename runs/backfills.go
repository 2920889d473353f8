package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// BackfillFilter selects backfills. Empty fields select all.
type BackfillFilter struct {
	ID       string
	TaskType string
	State    string // one of the Backfill constants
}

// BackfillRecord is a backfill and the numbers of its runs.
type BackfillRecord struct {
	Backfill

	RunsOpen      int64 `json:"runs_open"` // runs of the task type that have not ended
	RunsSuccess   int64 `json:"runs_success"`
	RunsFailed    int64 `json:"runs_failed"`
	RunsCancelled int64 `json:"runs_cancelled"`

	DependantsOpen   int64 `json:"dependants_open"`   // runs of dependants that have not ended
	DependantsFailed int64 `json:"dependants_failed"` // runs of dependants that have failed or were cancelled

	Now time.Time `json:"-" db:"database_time"` // by the database's clock, when this was read
}

// List lists the latest backfills of this own_sign that the filter selects, the newest first, at most limit. It is one
// statement.
func (bs *Backfills) List(ctx context.Context, f BackfillFilter, limit int) ([]BackfillRecord, error) {
	w := sqldb.Where{Args: []any{bs.ownSign}}
	w.Equal("backfill_id", f.ID)
	w.Equal("task_type", f.TaskType)
	w.Equal("state", f.State)
	list, err := sqldb.Records[BackfillRecord](ctx, bs.db, fmt.Sprintf(`SELECT {columns} FROM (
		SELECT b.*, t.runs_open, t.runs_success, t.runs_failed, t.runs_cancelled, t.dependants_open, t.dependants_failed,
			{now} AS database_time
		FROM schedule_backfill b JOIN (SELECT p.backfill_id,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state IN %[1]s THEN 1 END) AS runs_open,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state = 'SUCCESS' THEN 1 END) AS runs_success,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state IN %[2]s THEN 1 END) AS runs_failed,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state = 'CANCELLED' THEN 1 END) AS runs_cancelled,
				COUNT(CASE WHEN r.task_type <> p.task_type AND r.state IN %[1]s THEN 1 END) AS dependants_open,
				COUNT(CASE WHEN r.task_type <> p.task_type AND (r.state IN %[2]s OR r.state = 'CANCELLED') THEN 1 END)
					AS dependants_failed
			FROM (SELECT backfill_id, task_type FROM schedule_backfill WHERE own_sign = ?%[3]s
				ORDER BY backfill_id DESC LIMIT %[4]d) p
			LEFT JOIN schedule_run r ON r.backfill_id = p.backfill_id GROUP BY p.backfill_id) t ON t.backfill_id = b.backfill_id
		) x ORDER BY backfill_id DESC`, openStates, failedStates, w.Text, max(limit, 1)), w.Args...)
	return list, sqldb.Wrap(err, "list the backfills")
}

// Get returns the backfill with that id, or ErrUnknownBackfill if there is none.
func (bs *Backfills) Get(ctx context.Context, id string) (BackfillRecord, error) {
	if id == "" { // the filter would select any
		return BackfillRecord{}, ErrUnknownBackfill
	}
	list, err := bs.List(ctx, BackfillFilter{ID: id}, 1)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: %w", id, ErrUnknownBackfill)
	}
	if err != nil {
		return BackfillRecord{}, err
	}
	return list[0], nil
}

// Slots returns all slots of a backfill, the oldest first, each with its run if it has one.
func (bs *Backfills) Slots(ctx context.Context, id string) ([]BackfillSlot, error) {
	b, err := bs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := b.schedule()
	if err != nil {
		return nil, fmt.Errorf("read the slots of backfill %s: %w", id, err)
	}
	return bs.slotRuns(ctx, b.Backfill, firstSlots(s, b.From, b.To, false, maxBackfillSlots))
}

// BackfillQueue is a queue in the run of a slot.
type BackfillQueue struct {
	RunID   string `json:"run_id"`
	QueueID string `json:"queue_id"`
	State   string `json:"state"` // a state of a queue, such as QueueDone
}

// Queues returns the queues of the runs of slots, in the order of the slots and in natural order of the queues.
func (bs *Backfills) Queues(ctx context.Context, list []BackfillSlot) (queues []BackfillQueue, err error) {
	var ids []string
	for _, s := range list {
		if s.RunID != "" {
			ids = append(ids, s.RunID)
		}
	}
	queues, err = sqldb.RecordsIn[BackfillQueue](ctx, bs.db, ids, `SELECT {columns} FROM schedule_run_queue
		WHERE run_id IN ({ids}) ORDER BY run_id, queue_id`)
	at := map[string]int{}
	for i, id := range ids {
		at[id] = i
	}
	slices.SortStableFunc(queues, func(a, b BackfillQueue) int {
		if a.RunID != b.RunID {
			return at[a.RunID] - at[b.RunID]
		}
		return plan.CompareIDs(a.QueueID, b.QueueID)
	})
	return queues, sqldb.Wrap(err, "read the queues of the runs")
}

// Start starts a backfill and returns it. The servers of the task type make its runs with their ticks, the oldest slot
// first. After a crash of a server the others go on. Start returns ErrBackfillRange if the range or the trigger does
// not allow a backfill, and ErrUnknownTrigger if no trigger has that name.
func (bs *Backfills) Start(ctx context.Context, r BackfillRange, actor string) (b Backfill, err error) {
	t, err := bs.triggerOf(ctx, r)
	if err != nil {
		return Backfill{}, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	id := newRunID(t.Now)
	start := func() error {
		return bs.triggers.change(ctx, t.Name, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
			there, err := readBackfills(ctx, l, `b.backfill_id = ?`, id)
			if err == nil && len(there) > 0 {
				b = there[0] // the first attempt of this transaction was committed
				return nil
			}
			if err == nil {
				err = checkMode(ctx, l, l.TaskType)
			}
			if err == nil {
				b, _, err = r.plan(t, l.Now)
			}
			if err != nil {
				return err
			}
			b.ID, b.OwnSign, b.Actor, b.CreatedAt = id, l.OwnSign, actor, l.Now
			return insertBackfill(ctx, l, b)
		})
	}
	err = start()
	if errors.Is(err, sqldb.ErrUnknownCommit) && ctx.Err() == nil {
		err = start()
	}
	return b, sqldb.Wrap(err, "backfill %s", r.TaskType)
}

// triggerOf returns the trigger of a range.
func (bs *Backfills) triggerOf(ctx context.Context, r BackfillRange) (TriggerRecord, error) {
	f := TriggerFilter{Name: r.Trigger}
	if r.Trigger == "" {
		f.Target = r.TaskType
	}
	list, err := bs.triggers.List(ctx, f)
	if err == nil && len(list) != 1 && r.Trigger != "" {
		err = fmt.Errorf("trigger %s: %w", r.Trigger, ErrUnknownTrigger)
	}
	if err == nil {
		err = checkMode(ctx, bs.db, r.TaskType)
	}
	if err == nil && !r.SameWork {
		refused, failed := roster.Unsuited(ctx, bs.db, r.TaskType, bs.ownSign, sameWork)
		err = cmp.Or(refused, failed)
	}
	switch {
	case err != nil:
		return TriggerRecord{}, err
	case len(list) == 1:
		return list[0], nil
	case len(list) == 0:
		return TriggerRecord{}, badRange("the task type has no trigger, and so no slots")
	}
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return TriggerRecord{}, badRange("the task type has several triggers, name one of them: %s", strings.Join(names, ", "))
}

func insertBackfill(ctx context.Context, l *roster.LockTx, b Backfill) error {
	b.Actor = sqldb.Actor(b.Actor)
	if err := sqldb.Insert(ctx, l.Tx, "schedule_backfill", b); err != nil {
		return err
	}
	reason := fmt.Sprintf("backfill %s of trigger %s was started: %s from %s to %s",
		b.ID, b.Trigger, human.Count(b.SlotsTotal, "slot", "slots"), instant(b.From), instant(b.To))
	return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: b.Actor, Reason: reason})
}

// BackfillSlot is a slot of a backfill, and its run if it has one. A trigger, an operator or a backfill has made the
// run.
type BackfillSlot struct {
	ScheduledAt time.Time `json:"scheduled_at"` // the slot
	RunID       string    `json:"run_id"`
	State       string    `json:"state"` // of the run
	Message     string    `json:"message"`
	BackfillID  string    `json:"backfill_id"` // of the run; empty if no backfill has made or reopened it
}

// PlannedSlot is a slot and what a backfill would do with it.
type PlannedSlot struct {
	BackfillSlot
	Action string `json:"action"` // MAKE, RERUN or KEEP
}

// Preview returns what Start would write, and what the backfill would do with each slot, as of now. It changes nothing,
// and fails as Start does.
func (bs *Backfills) Preview(ctx context.Context, r BackfillRange) (b Backfill, list []PlannedSlot, err error) {
	t, err := bs.triggerOf(ctx, r)
	var planned []time.Time
	if err == nil {
		b, planned, err = r.plan(t.Trigger, t.Now)
	}
	b.OwnSign = bs.ownSign
	var found []BackfillSlot
	if err == nil {
		found, err = bs.slotRuns(ctx, b, planned)
	}
	if err != nil {
		return Backfill{}, nil, fmt.Errorf("backfill %s: %w", r.TaskType, err)
	}
	for _, s := range found {
		list = append(list, PlannedSlot{s, b.action(s.State)})
	}
	return b, list, nil
}

// slotRuns returns the slots with their runs.
func (bs *Backfills) slotRuns(ctx context.Context, b Backfill, at []time.Time) (list []BackfillSlot, err error) {
	found, err := findSlotRuns(ctx, bs.db, b, at)
	for _, slot := range at {
		s := found[b.runKey(slot)]
		s.ScheduledAt = slot
		list = append(list, s)
	}
	return list, err
}

// SetPaused pauses or resumes a backfill. While it is paused no further slot gets a run. The runs that it has made go
// on. SetPaused returns ErrBackfillState if the backfill has ended.
func (bs *Backfills) SetPaused(ctx context.Context, id string, paused bool, actor string) error {
	err := bs.operate(ctx, id, actor, func(_ context.Context, _ *roster.LockTx, b *Backfill) (string, error) {
		b.Paused = paused
		return roster.PauseVerb(paused) + "d", nil
	})
	return sqldb.Wrap(err, "%s backfill %s", roster.PauseVerb(paused), id)
}

// Cancel ends a backfill and all its open runs, also the runs of dependants. It does not matter which servers own their
// queues. Runs that have ended stay as they are. Cancel returns ErrBackfillState if the backfill has ended.
func (bs *Backfills) Cancel(ctx context.Context, id, actor string) error {
	err := bs.operate(ctx, id, actor, func(ctx context.Context, l *roster.LockTx, b *Backfill) (string, error) {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE, version = version + 1
			WHERE backfill_id = ? AND state IN `+openStates, id)
		b.State = BackfillCancelled
		b.Message = fmt.Sprintf("%d of %d slots were left, and %s open",
			b.SlotsTotal-b.SlotsMade-b.SlotsKept, b.SlotsTotal, human.Count(n, "run was", "runs were"))
		return "cancelled: " + b.Message, err
	})
	if err == nil {
		err = bs.stopRuns(ctx, id)
	}
	return sqldb.Wrap(err, "cancel backfill %s", id)
}

// stopRuns ends the runs of a cancelled backfill. Dependants end first, because otherwise they would fail with their
// upstreams. After a crash the ticks end the other runs.
func (bs *Backfills) stopRuns(ctx context.Context, id string) error {
	runs, err := sqldb.Records[string](ctx, bs.db, `SELECT run_id FROM schedule_run WHERE backfill_id = ?
		AND cancel_requested AND state IN `+openStates+` ORDER BY run_id DESC`, id)
	if err != nil {
		return err
	}
	return bs.closer.stopRuns(ctx, runs)
}

// operate runs f with an open backfill under the lock row of its task type, writes what f has changed and records an
// event of the operator. f returns what was done.
func (bs *Backfills) operate(ctx context.Context, id, actor string,
	f func(context.Context, *roster.LockTx, *Backfill) (done string, err error),
) error {
	b, err := bs.Get(ctx, id)
	if err != nil {
		return err
	}
	return bs.roster.UnderLock(ctx, b.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		list, err := readBackfills(ctx, l, `b.backfill_id = ?`, id)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return ErrUnknownBackfill
		case list[0].State != BackfillRunning:
			return fmt.Errorf("%w: it is %s", ErrBackfillState, list[0].State)
		}
		done, err := f(ctx, l, &list[0])
		if err != nil {
			return err
		}
		reason := "backfill " + id + " was " + done
		if err := l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: reason}); err != nil {
			return err
		}
		return list[0].update(ctx, l)
	})
}

// continueBackfills makes backfills RUNNING again, because a run was reopened and its dependants wait again. It also
// raises the version of open ones: a tick that has counted the runs as ended must not end the backfill.
func continueBackfills(ctx context.Context, t sqldb.Tx, runID string) error {
	ids, err := allDependants(ctx, t, runID)
	if err != nil {
		return err
	}
	return continueBackfillsOf(ctx, t, append(ids, runID))
}

// continueBackfillsOf does what continueBackfills does for runs that were reopened. It leaves out a backfill whose task
// type has no runs any more: the run may be that of a dependant, and no server would end the backfill (R14).
func continueBackfillsOf(ctx context.Context, t sqldb.Tx, ids []string) error {
	_, err := t.ExecIn(ctx, ids, `UPDATE schedule_backfill SET state = '`+BackfillRunning+`', message = '',
		ended_at = NULL, version = version + 1 WHERE state <> '`+BackfillCancelled+`'
		AND task_type IN (SELECT t.task_type FROM schedule_task_type t WHERE t.mode = '`+ModeRun+`')
		AND backfill_id IN (SELECT r.backfill_id FROM schedule_run r
			WHERE r.run_id IN ({ids}) AND r.state IN `+openStates+`)`)
	return sqldb.Wrap(err, "continue the backfill")
}

// CancelBackfills cancels the open backfills of a trigger that an operator deletes, or if the name is empty, of the
// locked task type and of its triggers, which are deleted with it. The trigger may have had another target when its
// backfill was started. CancelBackfills does not change their runs.
func CancelBackfills(ctx context.Context, l *roster.LockTx, trigger, reason string) error {
	where := `own_sign = ? AND (task_type = ? OR trigger_name IN (SELECT g.name FROM schedule_trigger g
		WHERE g.own_sign = ? AND g.target = ?))`
	args := []any{reason, l.OwnSign, l.TaskType, l.OwnSign, l.TaskType}
	if trigger != "" {
		where, args = `own_sign = ? AND trigger_name = ?`, []any{reason, l.OwnSign, trigger}
	}
	n, err := l.Exec(ctx, `UPDATE schedule_backfill SET state = '`+BackfillCancelled+`', message = ?, ended_at = {now},
		version = version + 1 WHERE `+where+` AND state = '`+BackfillRunning+`'`, args...)
	if err != nil || n == 0 {
		return err
	}
	reason = fmt.Sprintf("backfills were cancelled (%d): %s", n, reason)
	return l.Record(ctx, roster.Event{Kind: roster.EventRun, Reason: reason})
}
