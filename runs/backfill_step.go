package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	backfillPage  = 500 // slots that a backfill passes in one transaction
	backfillSteps = 10  // backfills of a task type that one tick moves on
)

// openSlots is the number of slots of a backfill b that are in progress: a run of the slot, its own or that of a
// dependant, has not ended.
const openSlots = `(SELECT COUNT(DISTINCT o.root_run_id) FROM schedule_run o
	WHERE o.backfill_id = b.backfill_id AND o.state IN ` + openStates + `)`

// backfillDue is the condition that a tick can move a backfill b on: the tick may make a run, or end the backfill.
const backfillDue = `(b.state = '` + BackfillRunning + `' AND (NOT b.paused OR b.next_slot_at IS NULL)
	AND ` + openSlots + ` < CASE WHEN b.next_slot_at IS NULL THEN 1 ELSE b.parallel END)`

// moveBackfills makes the runs of the next slots of the backfills of a task type, and ends the backfills that are done
// (R20).
func (s *Scheduler) moveBackfills(ctx context.Context, taskType string) error {
	err := s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		list, err := readBackfills(ctx, l, fmt.Sprintf(`b.task_type = ? AND b.own_sign = ? AND `+backfillDue+`
			ORDER BY b.backfill_id LIMIT %d`, backfillSteps), l.TaskType, l.OwnSign)
		if err != nil {
			return err
		}
		began := time.Now()
		for i, b := range list {
			if i > 0 && time.Since(began) > stepTime {
				break
			}
			if err := b.move(ctx, l, began); err != nil {
				return fmt.Errorf("backfill %s: %w", b.ID, err)
			}
		}
		return nil
	})
	return sqldb.Prefix(err, "move the backfills of")
}

// move makes the runs of the next slots, or ends the backfill. The transaction that makes a run also moves next_slot_at
// on, so that the backfill passes each slot once, although servers crash. It reopens as many runs as begin within
// stepTime from began on, and one at least.
func (b Backfill) move(ctx context.Context, l *roster.LockTx, began time.Time) error {
	if b.NextSlotAt.IsZero() {
		return b.end(ctx, l)
	}
	list, err := b.next(backfillPage + 1)
	if err != nil {
		b.State, b.Message = BackfillFailed, "its row is invalid: "+err.Error()
		return b.finish(ctx, l)
	}
	open, err := sqldb.Value[int](ctx, l, `SELECT `+openSlots+` FROM schedule_backfill b WHERE b.backfill_id = ?`, b.ID)
	if err != nil {
		return err
	}
	there, err := findSlotRuns(ctx, l, b, list)
	if err != nil {
		return err
	}
	var made []Run
	reopened := 0
	b.NextSlotAt = time.Time{}
	for i, at := range list {
		run := there[b.runKey(at)]
		action := b.action(run.State)
		late := action == SlotRerun && reopened > 0 && time.Since(began) > stepTime
		if i == backfillPage || late || action != SlotKeep && open >= b.Parallel {
			b.NextSlotAt = at
			break
		}
		switch action {
		case SlotKeep:
			b.SlotsKept++
			continue
		case SlotMake:
			made = append(made, b.newRun(l, at))
		case SlotRerun:
			reopened++
			err = b.reopen(ctx, l, run.RunID)
		}
		if err != nil {
			return err
		}
		b.SlotsMade++
		open++
	}
	if err := b.insert(ctx, l, made); err != nil {
		return err
	}
	return b.update(ctx, l)
}

// newRun returns the run of a slot. It is READY although other runs may be open: it waits for them and is never
// SKIPPED.
func (b Backfill) newRun(l *roster.LockTx, slot time.Time) Run {
	r := Run{Key: b.runKey(slot), Trigger: b.Trigger, Backfill: b.ID, Priority: b.Priority, Params: b.Params}
	r.TimeZone = b.TimeZone
	if s, err := b.schedule(); err == nil { // move has parsed it already
		r.SlotEnd = s.Next(slot)
	}
	return newRun(l, r, slot)
}

// insert inserts runs, with the runs of their dependants unless the backfill has none.
func (b Backfill) insert(ctx context.Context, l *roster.LockTx, made []Run) error {
	if len(made) == 0 {
		return nil
	}
	if !b.Dependants {
		return insertRunRows(ctx, l, made)
	}
	return insertRuns(ctx, l, made, nil)
}

// reopen reopens the run of a slot. From now on it and the dependants that wait for it belong to this backfill.
func (b Backfill) reopen(ctx context.Context, l *roster.LockTx, runID string) error {
	ended, err := lockRun(ctx, l.Tx, runID, reopenable...)
	if err == nil && !ended {
		err = sqldb.ErrRaced
	}
	if err == nil {
		err = b.adopt(ctx, l, runID, reopenable)
	}
	if err == nil {
		err = reopen(ctx, l, runID, b.Dependants)
	}
	if err != nil || !b.Dependants {
		return err
	}
	dependants, err := allDependants(ctx, l.Tx, runID)
	for _, id := range dependants {
		if err == nil {
			err = b.adopt(ctx, l, id, []string{Waiting})
		}
	}
	return err
}

// adopt makes a run that is in one of the states a run of this backfill.
func (b Backfill) adopt(ctx context.Context, l *roster.LockTx, runID string, states []string) error {
	_, err := l.ExecIn(ctx, states, `UPDATE schedule_run SET backfill_id = ?, priority = ?
		WHERE run_id = ? AND state IN ({ids})`, b.ID, b.Priority, runID)
	return err
}

// end ends a backfill whose runs have all ended. A run of a dependant that is SKIPPED is no failure: another run does
// its work.
func (b Backfill) end(ctx context.Context, l *roster.LockTx) error {
	type ends struct{ Own, Failed, Dependants int }
	n, _, err := sqldb.Record[ends](ctx, l, `SELECT COUNT(CASE WHEN task_type = ? THEN 1 END),
		COUNT(CASE WHEN task_type = ? AND state <> '`+Success+`' THEN 1 END),
		COUNT(CASE WHEN task_type <> ? AND state NOT IN ('`+Success+`', '`+Skipped+`') THEN 1 END)
		FROM schedule_run WHERE backfill_id = ?`, b.TaskType, b.TaskType, b.TaskType, b.ID)
	if err != nil {
		return err
	}
	b.State, b.Message = BackfillSuccess, ""
	if n.Failed+n.Dependants > 0 {
		b.State, b.Message = BackfillFailed, fmt.Sprintf("%d of %d runs did not succeed", n.Failed, n.Own)
		if n.Dependants > 0 {
			b.Message += fmt.Sprintf(", and %s of dependants did not", human.Count(n.Dependants, "run", "runs"))
		}
	}
	return b.finish(ctx, l)
}

// finish writes the end of a backfill, and an event.
func (b Backfill) finish(ctx context.Context, l *roster.LockTx) error {
	reason := fmt.Sprintf("backfill %s of trigger %s ended %s: %s, %d kept theirs", b.ID, b.Trigger, b.State,
		human.Count(b.SlotsMade, "slot got a run", "slots got runs"), b.SlotsKept)
	if b.Message != "" {
		reason += "; " + b.Message
	}
	if err := l.Record(ctx, roster.Event{Kind: roster.EventRun, Reason: reason}); err != nil {
		return err
	}
	return b.update(ctx, l)
}

// findSlotRuns returns the runs of slots by their keys.
func findSlotRuns(ctx context.Context, db sqldb.Eacher, b Backfill, at []time.Time) (map[string]BackfillSlot, error) {
	var keys []string
	for _, slot := range at {
		keys = append(keys, b.runKey(slot))
	}
	type keyed struct {
		BackfillSlot
		Key string `json:"run_key"`
	}
	list, err := sqldb.RecordsIn[keyed](ctx, db, keys, `SELECT {columns} FROM schedule_run
		WHERE task_type = ? AND own_sign = ? AND run_key IN ({ids}) ORDER BY run_key`, b.TaskType, b.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("find the runs of slots: %w", err)
	}
	found := map[string]BackfillSlot{}
	for _, s := range list {
		found[s.Key] = s.BackfillSlot
	}
	return found, nil
}
