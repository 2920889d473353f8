package roster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Alert records an alert as an event and reports whether it did. It records nothing if an alert of the same kind,
// server, queue and subject is younger than every. So many processes that notice one condition raise one alert. It
// takes no account of alerts that are older than the condition: they were about one that has ended, which only its
// beginning tells a process that has started since (S16).
func (r *Roster) Alert(ctx context.Context, taskType string, a condition.Condition, every time.Duration) (raised bool, err error) {
	err = r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		var recent int
		window := every
		if !a.Since.IsZero() {
			window = min(every, max(0, time.Since(a.Since)))
		}
		where, args := `kind = ?`, []any{l.TaskType, l.OwnSign, EventAlert}
		for _, f := range []struct{ column, value string }{{"queue_id", a.QueueID}, {"from_server", a.Server}} {
			if f.value == "" {
				where += ` AND ` + f.column + ` IS NULL`
				continue
			}
			where, args = where+` AND `+f.column+` = ?`, append(args, f.value)
		}
		args = append(args, likeLiteral.Replace(alertHead(a))+"%")
		err := l.QueryRow(ctx, fmt.Sprintf(`SELECT COUNT(*) FROM schedule_event WHERE task_type = ? AND own_sign = ? AND %s
			AND reason LIKE ? ESCAPE '!' AND event_time > {ago %d}`, where, window.Milliseconds()), args...).Scan(&recent)
		if raised = err == nil && recent == 0; !raised {
			return err
		}
		return l.RecordAlert(ctx, a)
	})
	if err != nil {
		return false, fmt.Errorf("alert %w", err)
	}
	return raised, nil
}

// RecordAlert records an alert as an event, even if a recent one is the same.
func (l *LockTx) RecordAlert(ctx context.Context, a condition.Condition) error {
	return l.Record(ctx, Event{Kind: EventAlert, queue: a.QueueID, from: a.Server, Reason: alertHead(a) + a.Text, Actor: a.Server})
}

// alertHead returns the beginning of the event's reason, which identifies the alert.
func alertHead(a condition.Condition) string {
	if a.Subject == "" {
		return a.Kind + ": "
	}
	return a.Kind + ": " + a.Subject + ": "
}

// likeLiteral escapes the text of a LIKE pattern whose escape character is an exclamation mark.
var likeLiteral = strings.NewReplacer("!", "!!", "_", "!_", "%", "!%")

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
