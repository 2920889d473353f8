package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// episode is the newest time that a condition lasted, as an event records it.
type episode struct {
	EventID   int64
	OpenUntil time.Time // when it has ended, unless a server sees the condition again before that
	Now       time.Time
}

// Alert tells that a server sees a condition, and reports whether an episode of it begins with that: then Alert records an
// event. The condition belongs to the last episode if it began before that one ended. An episode ends at EndAlert, and
// otherwise when no server has told of the condition for the duration of gap. So many processes that see one condition
// raise one alert, whether they saw its beginning or not (S16).
func (r *Roster) Alert(ctx context.Context, c condition.Condition, gap time.Duration) (begins bool, err error) {
	e, lasts, err := r.lasting(ctx, r.DB, c)
	switch {
	case err == nil && lasts:
		_, err = r.DB.Exec(ctx, `UPDATE schedule_event SET open_until = ? WHERE event_id = ?`, r.DB.Time(e.Now.Add(gap)), e.EventID)
	case err == nil:
		err = r.UnderLock(ctx, c.TaskType, func(ctx context.Context, l *LockTx) error {
			_, lasts, err := r.lasting(ctx, l, c)
			if begins = err == nil && !lasts; begins {
				err = l.RecordAlert(ctx, c, gap)
			}
			return err
		})
	}
	if err != nil {
		return false, fmt.Errorf("alert of %s: %w", c.Kind, err)
	}
	return begins, nil
}

// EndAlert tells that a condition has ended some time ago.
func (r *Roster) EndAlert(ctx context.Context, c condition.Condition, ago time.Duration) error {
	e, found, err := r.newest(ctx, r.DB, c)
	if ended := e.Now.Add(-ago); err == nil && found && ended.Before(e.OpenUntil) {
		_, err = r.DB.Exec(ctx, `UPDATE schedule_event SET open_until = ? WHERE event_id = ?`, r.DB.Time(ended), e.EventID)
	}
	if err != nil {
		return fmt.Errorf("end the alert of %s: %w", c.Kind, err)
	}
	return nil
}

// lasting returns the newest episode of a condition, and whether the condition began before its end.
func (r *Roster) lasting(ctx context.Context, q sqldb.Eacher, c condition.Condition) (e episode, lasts bool, err error) {
	e, found, err := r.newest(ctx, q, c)
	age := time.Duration(0)
	if !c.Since.IsZero() {
		age = max(0, time.Since(c.Since))
	}
	return e, found && e.OpenUntil.After(e.Now.Add(-age)), err
}

func (r *Roster) newest(ctx context.Context, q sqldb.Eacher, c condition.Condition) (e episode, found bool, err error) {
	where, args := `task_type = ? AND own_sign = ? AND kind = ? AND alert = ?`, []any{c.TaskType, r.OwnSign, EventAlert, c.Kind}
	for _, f := range []struct{ column, value string }{{"queue_id", c.QueueID}, {"from_server", c.Server}, {"subject", c.Subject}} {
		if f.value == "" {
			where += ` AND ` + f.column + ` IS NULL`
			continue
		}
		where, args = where+` AND `+f.column+` = ?`, append(args, sqldb.Clean(f.value))
	}
	return sqldb.Record[episode](ctx, q, `SELECT event_id, open_until, {now} FROM schedule_event WHERE `+where+` ORDER BY event_id DESC LIMIT 1`, args...)
}

// RecordAlert records an event with which an episode of a condition begins.
func (l *LockTx) RecordAlert(ctx context.Context, c condition.Condition, gap time.Duration) error {
	reason := c.Kind + ": "
	if c.Subject != "" {
		reason += c.Subject + ": "
	}
	return l.Record(ctx, Event{
		Kind: EventAlert, queue: c.QueueID, from: c.Server, Reason: reason + c.Text, Actor: c.Server,
		alert: c.Kind, subject: c.Subject, openUntil: l.Now.Add(gap),
	})
}

// FailingFor returns for how long live servers of the task type have done nothing but fail, by the one that began
// first; 0 if none fails. A server learns from it that an outage is older than its own first failure.
func (r *Roster) FailingFor(ctx context.Context, taskType string) (time.Duration, error) {
	var since, now sqldb.Instant
	err := r.DB.QueryRow(ctx, `SELECT MIN(failing_since), {now} FROM schedule_server
		WHERE task_type = ? AND own_sign = ? AND heartbeat_time >= {ago judge_dead_interval_ms}`, taskType, r.OwnSign).Scan(&since, &now)
	if err != nil {
		return 0, fmt.Errorf("ask since when servers of %s$%s fail: %w", taskType, r.OwnSign, err)
	}
	if time.Time(since).IsZero() {
		return 0, nil
	}
	return time.Time(now).Sub(time.Time(since)), nil
}

// Standby counts the eligible servers and the queues, for a message to people.
func (r *Roster) Standby(ctx context.Context, taskType string) (servers, queues int, err error) {
	err = r.DB.QueryRow(ctx, `SELECT
		(SELECT COUNT(*) FROM schedule_server WHERE task_type = ? AND own_sign = ? AND `+ownerStates+`),
		(SELECT COUNT(*) FROM schedule_queue WHERE task_type = ? AND own_sign = ?)`,
		taskType, r.OwnSign, taskType, r.OwnSign).Scan(&servers, &queues)
	if err != nil {
		return 0, 0, fmt.Errorf("count the servers of %s$%s: %w", taskType, r.OwnSign, err)
	}
	return servers, queues, nil
}
