package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/slots"
	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	firePage  = 100 // triggers that fire in one transaction
	firePages = 5   // transactions of one tick
)

// fireDue fires the triggers of a task type that are due, one page per transaction. The next tick fires what is left
// after firePages pages.
func (s *Scheduler) fireDue(ctx context.Context, taskType string) error {
	for range firePages {
		var n, skipped int
		err := s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
			firings, err := dueTriggers(ctx, l)
			if n = len(firings); err == nil {
				skipped, err = fireTriggers(ctx, l, firings)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("fire the triggers of %w", err)
		}
		s.closer.ends.add(End{taskType, Skipped}, int64(skipped))
		if n < firePage {
			return nil
		}
	}
	return nil
}

// firing is a due trigger as it is after its slots have fired, and these slots.
type firing struct {
	Trigger
	slots    []time.Time
	schedule slots.Schedule
}

// fireTriggers advances triggers and inserts the runs of their slots in one transaction (R2). It needs a few
// statements, independent of the number of triggers. It returns the number of slots whose runs are SKIPPED. It
// compares the version of each trigger although it holds the lock row, because an operator may edit the row by hand.
func fireTriggers(ctx context.Context, l *roster.LockTx, firings []firing) (skipped int, err error) {
	if len(firings) == 0 {
		return 0, nil
	}
	var keys, names []string
	for _, f := range firings {
		names = append(names, f.Name)
		for _, at := range f.slots {
			keys = append(keys, f.runKey(at))
		}
	}
	there, err := runsOfKeys(ctx, l, []string{l.TaskType}, keys)
	if err != nil {
		return 0, err
	}
	open, err := openRuns(ctx, l, names)
	if err != nil {
		return 0, err
	}
	var runs []Run
	for i := range firings {
		f := &firings[i]
		like := f.runTemplate(open[f.Name])
		if like.State == Skipped {
			f.uncount(l.Now)
		}
		for _, at := range f.slots {
			r := like
			r.Key, r.SlotEnd = f.runKey(at), f.schedule.Next(at)
			if there[taskKey{l.TaskType, r.Key}] != "" {
				continue // it fired before the trigger was deleted and made again; the trigger still advances
			}
			r = newRun(l, r, at)
			f.countSkipped(r)
			if runs = append(runs, r); r.State == Skipped {
				skipped++
			}
		}
	}
	if err := advanceTriggers(ctx, l, firings); err != nil {
		return 0, err
	}
	return skipped, insertRuns(ctx, l, runs, nil)
}

// countSkipped counts the slots whose runs are SKIPPED since the last slot that fired (R4).
func (f *firing) countSkipped(r Run) {
	switch {
	case r.State != Skipped:
		f.Skipped, f.SkippedSince = 0, time.Time{}
	case f.Skipped == 0:
		f.Skipped, f.SkippedSince = 1, r.ScheduledAt
	default:
		f.Skipped++
	}
}

// forgetSkipped forgets the skipped slots of a trigger, because a run of it is made after all or an operator has
// acknowledged them.
func forgetSkipped(ctx context.Context, l *roster.LockTx, trigger string) (int, error) {
	return l.Exec(ctx, `UPDATE schedule_trigger SET skipped = 0, skipped_since = NULL, version = version + 1
		WHERE own_sign = ? AND name = ? AND skipped > 0`, l.OwnSign, trigger)
}

// dueTriggers returns a page of due triggers, each advanced to its next slot, with the slots that fire. The page ends
// when it has maxCatchup slots: after an outage, a hundred triggers of misfire ALL would make a hundred times as many
// runs, for which no transaction has the time. A trigger whose row is invalid gets the status ERROR, and the others are
// not affected.
func dueTriggers(ctx context.Context, l *roster.LockTx) (firings []firing, err error) {
	due, err := sqldb.Records[Trigger](ctx, l, fmt.Sprintf(`SELECT {columns} FROM schedule_trigger
		WHERE own_sign = ? AND status = '`+TriggerActive+`' AND next_fire_at <= ? AND target = ?
		ORDER BY next_fire_at, name LIMIT %d`, firePage), l.OwnSign, l.Dialect.Time(l.Now), l.TaskType)
	if err != nil {
		return nil, fmt.Errorf("read the triggers: %w", err)
	}
	runs := 0
	for _, t := range due {
		f := newFiring(t, l.Now)
		firings = append(firings, f)
		if runs += len(f.slots); runs >= maxCatchup { // one trigger may have as many: a later transaction fires the others
			break
		}
	}
	return firings, nil
}

func newFiring(t Trigger, now time.Time) firing {
	f := firing{Trigger: t}
	a, err := t.parse()
	var missed int64
	var next time.Time
	if err == nil {
		f.slots, missed, next, err = a.Due(now.Add(-t.delay()))
	}
	if err != nil {
		f.Status, f.Message = TriggerError, sqldb.Clean(err.Error())
		return f
	}
	f.schedule = a.Schedule
	f.Fires, f.Missed, f.NextFireAt, f.Message = t.Fires+int64(len(f.slots)), t.Missed+missed, t.firingAt(next), ""
	if missed > 0 {
		f.MissedAt = newestMissed(a, f.slots, now.Add(-t.delay()))
	}
	if n := len(f.slots); n > 0 {
		f.PrevFireAt = f.slots[n-1]
	}
	if next.IsZero() {
		f.Status = TriggerDone
	}
	return f
}

// uncount takes back the firings of slots whose runs are SKIPPED: they do not use up max_fires (R4).
func (f *firing) uncount(now time.Time) {
	if len(f.slots) == 0 {
		return
	}
	f.Fires -= int64(len(f.slots))
	if a, err := f.parse(); err == nil { // newFiring has parsed it already
		f.NextFireAt = f.first(a, now)
	}
	if !f.NextFireAt.IsZero() {
		f.Status = TriggerActive
	}
}

// newestMissed returns the newest of the due slots that do not fire.
func newestMissed(a slots.Trigger, fire []time.Time, now time.Time) time.Time {
	until := now
	if len(fire) > 0 {
		until = fire[0].Add(-1)
	}
	if slot := a.Schedule.Prev(until); slot.After(a.NextFireAt) {
		return slot
	}
	return a.NextFireAt // due although the schedule may not contain it
}

// runTemplate returns the run that a trigger fires while the given runs of it are open (R4). With WAIT one run of the
// trigger may wait, with SKIP only while none is RUNNING. All slots of one firing get the same template: otherwise the
// slots that ALL catches up on would skip each other. The slot of ONCE always waits, because no later slot makes up for
// it.
func (t Trigger) runTemplate(open []earlierRun) Run {
	r := Run{Trigger: t.Name, Priority: t.Priority, Params: t.Params, TimeZone: t.TimeZone, State: Ready}
	waits := slices.ContainsFunc(open, func(o earlierRun) bool { return o.State == Ready })
	if len(open) == 0 || t.Kind == TriggerOnce || t.Overlap == OverlapWait && !waits {
		return r
	}
	r.State, r.Message = Skipped, open[0].text()
	if len(open) > 1 {
		r.Message += ", and " + open[1].text()
	}
	return r
}

// earlierRun is a run of a trigger that is open when the trigger fires again.
type earlierRun struct {
	Trigger, ID, State string
	Paused             bool
}

func (o earlierRun) text() string {
	text := "run " + o.ID + " is " + o.State
	if o.Paused {
		text += " and paused"
	}
	return text
}

// openRuns returns the runs of the triggers that are RUNNING or READY, by trigger, the RUNNING run first. It leaves out
// READY runs that are paused or cancelled: they may never start, and must not skip the slots after them. It also leaves
// out the runs of backfills: a long backfill always has an open run, and would skip all slots meanwhile (R20). The runs
// of other triggers, and submitted runs, do other work: a slot waits for them and is not skipped because of them.
func openRuns(ctx context.Context, l *roster.LockTx, triggers []string) (map[string][]earlierRun, error) {
	list, err := sqldb.RecordsIn[earlierRun](ctx, l, triggers, `SELECT trigger_name, run_id, state, paused
		FROM schedule_run WHERE task_type = ? AND own_sign = ? AND trigger_name IN ({ids}) AND backfill_id IS NULL
			AND (state = '`+Running+`'
			OR state = '`+Ready+`' AND NOT paused AND NOT cancel_requested)
		ORDER BY state DESC, scheduled_at, run_id`, l.TaskType, l.OwnSign)
	open := map[string][]earlierRun{}
	for _, o := range list {
		open[o.Trigger] = append(open[o.Trigger], o)
	}
	return open, sqldb.Wrap(err, "read the open runs")
}

// firedColumns are the columns of a trigger that change when it fires. The user sets none of them.
var firedColumns = []string{
	"status", "fires", "missed", "missed_at", "skipped", "skipped_since", "next_fire_at", "prev_fire_at", "message",
}

// advanceTriggers writes all triggers in one statement. Each column is a CASE over the names: no other form of an
// UPDATE of several rows works on every database.
func advanceTriggers(ctx context.Context, l *roster.LockTx, firings []firing) error {
	var set strings.Builder
	var args []any
	for i, col := range sqldb.Fields(Trigger{}) {
		if !slices.Contains(firedColumns, col.Column) {
			continue
		}
		set.WriteString(", " + col.Column + " = CASE name")
		for _, f := range firings {
			set.WriteString(" WHEN ? THEN ?")
			args = append(args, f.Name, sqldb.Fields(f.Trigger)[i].Param(l.Dialect))
		}
		set.WriteString(" ELSE " + col.Column + " END")
	}
	args = append(args, l.OwnSign)
	for _, f := range firings {
		args = append(args, f.Name, f.Version)
	}
	n, err := l.Exec(ctx, `UPDATE schedule_trigger SET version = version + 1`+set.String()+` WHERE own_sign = ? AND (`+
		strings.TrimSuffix(strings.Repeat("name = ? AND version = ? OR ", len(firings)), " OR ")+`)`, args...)
	if err == nil && n != len(firings) {
		err = sqldb.ErrRaced
	}
	return sqldb.Wrap(err, "advance the triggers")
}
