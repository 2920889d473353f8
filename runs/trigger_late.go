package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// LateTrigger is a trigger whose next_fire_at is later than its schedule allows: it was edited by hand, or written
// while the database's clock was ahead (S17). The trigger would fire nothing until then.
type LateTrigger struct {
	Trigger
	Next time.Time // when it should fire next; zero: it is done
}

// Late returns the triggers of a task type whose next_fire_at is later than their schedules allow.
func (ts *Triggers) Late(ctx context.Context, taskType string) ([]LateTrigger, error) {
	list, err := lateTriggers(ctx, ts.db, taskType, ts.ownSign)
	return list, sqldb.Wrap(err, "look for late triggers of %s", taskType)
}

func lateTriggers(ctx context.Context, q sqldb.Eacher, taskType, ownSign string) (late []LateTrigger, err error) {
	type row struct {
		Trigger
		Now time.Time `db:"database_time"`
	}
	list, err := sqldb.Records[row](ctx, q, `SELECT {columns} FROM (SELECT t.*, {now} AS database_time
		FROM schedule_trigger t WHERE own_sign = ? AND target = ? AND status IN ('`+TriggerActive+`', '`+TriggerPaused+`')
		AND next_fire_at > {ago `+fmt.Sprint(-roster.ClockSlack.Milliseconds())+`}) x ORDER BY name`, ownSign, taskType)
	for _, r := range list {
		next, err := r.nextBySchedule(r.Now)
		if err == nil && (next.IsZero() || next.Before(r.NextFireAt)) {
			late = append(late, LateTrigger{r.Trigger, next})
		}
	}
	return late, err
}

// nextBySchedule returns when the trigger fires next if it has just fired: the first slot after now. A slot that has
// fired is not next, although another jitter would put it after now.
func (t Trigger) nextBySchedule(now time.Time) (time.Time, error) {
	a, err := t.parse()
	if err != nil {
		return time.Time{}, err // a firing says so
	}
	if fired := t.firingAt(t.PrevFireAt); t.Fires > 0 && fired.After(now) && t.PrevFireAt.Before(now) {
		now = fired
	}
	return t.first(a, now), nil
}

// CorrectTriggers gives the triggers of a task type whose next_fire_at is later than their schedules allow the next
// slot of the schedule (S17), as many as begin within stepTime, and returns their number. The runs of the slots that
// have fired keep them from firing again (R2).
func (s *Scheduler) CorrectTriggers(ctx context.Context, taskType string) (n int, err error) {
	late, err := lateTriggers(ctx, s.db, taskType, s.ownSign)
	if err != nil || len(late) == 0 {
		return 0, sqldb.Wrap(err, "look for late triggers of %s", taskType)
	}
	err = s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		late, err := lateTriggers(ctx, l, l.TaskType, l.OwnSign)
		n = 0
		for began := time.Now(); err == nil && n < len(late) && (n == 0 || time.Since(began) <= stepTime); n++ {
			err = correctTrigger(ctx, l, late[n])
		}
		return err
	})
	return n, sqldb.Prefix(err, "correct the triggers of")
}

func correctTrigger(ctx context.Context, l *roster.LockTx, late LateTrigger) error {
	t := late.Trigger
	t.NextFireAt, t.Version = late.Next, t.Version+1
	if t.NextFireAt.IsZero() {
		t.Status = TriggerDone
	}
	if err := writeTriggerRow(ctx, l, t, late.Trigger, true); err != nil {
		return err
	}
	return recordTrigger(ctx, l, "", late.text("; it was corrected"))
}

// text says what is wrong with the trigger, for people.
func (t LateTrigger) text(outcome string) string {
	next := "has no further slot"
	if !t.Next.IsZero() {
		next = "has a slot at " + timeText(t.Next)
	}
	return fmt.Sprintf("trigger %s was to fire at %s, and %s: the clock was set back, or the row was edited%s", t.Name,
		timeText(t.NextFireAt), next, outcome)
}

// String says what is wrong with the trigger, for people.
func (t LateTrigger) String() string { return t.text("; the next audit corrects it") }
