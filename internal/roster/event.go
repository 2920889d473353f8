package roster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The kinds of schedule_event. Each says what happened to a queue, a server or the roster.
const (
	EventJoined     = "JOINED"     // a server registered
	EventLeft       = "LEFT"       // a server left in order
	EventExpired    = "EXPIRED"    // a server was silent for its judge_dead_interval
	EventRequested  = "REQUESTED"  // a queue is to move away from a live owner
	EventGranted    = "GRANTED"    // a queue without an owner got one
	EventReleased   = "RELEASED"   // a drained queue was handed over
	EventTakenOver  = "TAKEN_OVER" // another server got the queue of an owner that is gone
	EventUnassigned = "UNASSIGNED" // a queue lost its owner, and no server can take it
	EventForced     = "FORCED"     // a queue was taken although its owner may have it in flight
	EventDraining   = "DRAINING"   // a server is to own nothing any more
	EventPaused     = "PAUSED"     // a task type or a server was paused
	EventResumed    = "RESUMED"    // a task type or a server was resumed

	EventRepartition   = "REPARTITION"   // a number of queues was requested: all servers drain; or it was withdrawn
	EventRepartitioned = "REPARTITIONED" // the number of queues has changed

	EventAdded    = "ADDED"    // a named queue was added
	EventRemoving = "REMOVING" // a named queue is to be removed: its owner drains it; or the request was withdrawn
	EventRemoved  = "REMOVED"  // a named queue was removed

	EventResizing = "RESIZING" // a queue is to be split or merged: its owner drains it; or the request was withdrawn
	EventResized  = "RESIZED"  // a queue was split, or queues were merged

	EventForgotten = "FORGOTTEN" // an environment that no server had served for long, or a task type, was deleted
	EventSettings  = "SETTINGS"  // an operator changed settings of a task type, in all environments, or of a queue
	EventItems     = "ITEMS"     // an operator changed failed items
	EventAlert     = "ALERT"     // an alert was raised

	EventRun     = "RUN"     // a run failed or was skipped, an operator changed a run or a backfill, or a backfill ended
	EventTrigger = "TRIGGER" // an operator changed a trigger

	EventRetaken = "RETAKEN" // an owner kept a queue that it had been about to release

	EventWeight = "WEIGHT" // an operator gave a server another part of the queues

	EventReserved = "RESERVED" // a queue waits for the return of a server that has left

	EventPinned = "PINNED" // an operator chose the labels of the servers that may own a queue

	EventHistory = "HISTORY" // history was lost and epochs rise, or an operator acknowledged that
)

// EventKinds lists the kinds of events in the order of the constants.
func EventKinds() []string {
	return []string{
		EventJoined, EventLeft, EventExpired, EventRequested, EventGranted, EventReleased, EventTakenOver, EventUnassigned,
		EventForced, EventDraining, EventPaused, EventResumed, EventRepartition, EventRepartitioned, EventAdded,
		EventRemoving, EventRemoved, EventResizing, EventResized, EventForgotten, EventSettings, EventItems, EventAlert,
		EventRun, EventTrigger, EventRetaken, EventWeight, EventReserved, EventPinned, EventHistory,
	}
}

// Event is a row of schedule_event. It is written in the transaction that it describes.
type Event struct {
	Kind     string
	queue    string
	from, to string
	epoch    int64
	Reason   string
	Actor    string

	alert, subject string    // of an alert: the kind of the condition, and what it is about besides queue and server
	openUntil      time.Time // of an alert: when its episode has ended, unless the condition is seen again (S16)
}

// InsertRows is how many rows one INSERT writes. An event has 12 parameters: 500 events stay below the limit of each
// database.
const InsertRows = 500

// Record writes the events, in their order.
func (l *LockTx) Record(ctx context.Context, events ...Event) error {
	return RecordEvents(ctx, l.Tx, l.TaskType, l.OwnSign, events...)
}

// RecordEvents writes events of a task type, in their order, in a transaction that need not hold the lock row.
func RecordEvents(ctx context.Context, t sqldb.Tx, taskType, ownSign string, events ...Event) error {
	for len(events) > 0 {
		n := min(InsertRows, len(events))
		values := strings.TrimSuffix(strings.Repeat("({now}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), ", n), ", ")
		args := make([]any, 0, 12*n)
		for _, e := range events[:n] {
			args = append(args, taskType, ownSign, sqldb.Null(e.queue), e.Kind, sqldb.Null(e.from), sqldb.Null(e.to),
				nullEpoch(e), sqldb.Clean(e.Reason), sqldb.Actor(e.Actor),
				sqldb.Null(e.alert), sqldb.Null(storedSubject(e.subject)), t.Dialect.TimeOrNull(e.openUntil))
		}
		_, err := t.Exec(ctx, `INSERT INTO schedule_event (event_time, task_type, own_sign, queue_id, kind, from_server,
			to_server, epoch, reason, actor, alert, subject, open_until) VALUES `+values, args...)
		if err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func nullEpoch(e Event) any {
	if e.queue == "" && e.epoch == 0 {
		return nil
	}
	return e.epoch
}

// episode is the newest time that a condition lasted, as an event records it.
type episode struct {
	EventID   int64
	OpenUntil time.Time // when it has ended, unless a server sees the condition again before that
	Now       time.Time
}

// Alert tells that a server sees a condition, and reports whether an episode of it begins with that: then Alert
// records an event. The condition belongs to the last episode if it began before that one ended. An episode ends at
// EndAlert, and otherwise when no server has told of the condition for the duration of gap. So many processes that
// see one condition raise one alert, whether they saw its beginning or not (S16). After a commit whose reply was lost,
// Alert cannot know whether the event is recorded, and by which process: begins is true, even with an error, because
// nobody else might raise the alert.
func (r *Roster) Alert(ctx context.Context, c condition.Condition, gap time.Duration) (begins bool, err error) {
	e, lasts, err := r.lasting(ctx, r.DB, c)
	switch {
	case err == nil && lasts:
		err = r.setOpenUntil(ctx, e, e.Now.Add(gap))
	case err == nil:
		record := func(ctx context.Context, l *LockTx) error {
			_, lasts, err := r.lasting(ctx, l, c)
			if begins = err == nil && !lasts; begins {
				err = l.RecordAlert(ctx, c, gap)
			}
			return err
		}
		err = r.UnderLock(ctx, c.TaskType, record)
		unknown := errors.Is(err, sqldb.ErrUnknownCommit)
		if begins && unknown && ctx.Err() == nil {
			err = r.UnderLock(ctx, c.TaskType, record) // if the first try was committed, its event is there
			begins = true
		}
		begins = begins && (err == nil || unknown)
	}
	return begins, sqldb.Wrap(err, "alert of %s", c.Kind)
}

// EndAlert tells that a condition has ended some time ago.
func (r *Roster) EndAlert(ctx context.Context, c condition.Condition, ago time.Duration) error {
	e, found, err := r.newest(ctx, r.DB, c)
	if ended := e.Now.Add(-ago); err == nil && found && ended.Before(e.OpenUntil) {
		err = r.setOpenUntil(ctx, e, ended)
	}
	return sqldb.Wrap(err, "end the alert of %s", c.Kind)
}

func (r *Roster) setOpenUntil(ctx context.Context, e episode, until time.Time) error {
	_, err := r.DB.Exec(ctx, `UPDATE schedule_event SET open_until = ? WHERE event_id = ?`, r.DB.Time(until), e.EventID)
	return err
}

// lasting returns the newest episode of a condition, and whether the condition began before its end.
func (r *Roster) lasting(ctx context.Context, q sqldb.Eacher,
	c condition.Condition,
) (e episode, lasts bool, err error) {
	e, found, err := r.newest(ctx, q, c)
	age := time.Duration(0)
	if !c.Since.IsZero() {
		age = max(0, time.Since(c.Since))
	}
	return e, found && e.OpenUntil.After(e.Now.Add(-age)), err
}

func (r *Roster) newest(ctx context.Context, q sqldb.Eacher,
	c condition.Condition,
) (e episode, found bool, err error) {
	w := sqldb.Where{Text: ofTask, Args: []any{c.TaskType, r.OwnSign}}
	w.And(`kind = ? AND alert = ?`, EventAlert, c.Kind)
	for _, f := range []struct{ column, value string }{
		{"queue_id", c.QueueID}, {"from_server", c.Server}, {"subject", storedSubject(c.Subject)},
	} {
		if f.value == "" {
			w.And(f.column + ` IS NULL`)
		} else {
			w.Equal(f.column, f.value)
		}
	}
	return sqldb.Record[episode](ctx, q, `SELECT event_id, open_until, {now} FROM schedule_event WHERE `+w.Text+`
		ORDER BY event_id DESC LIMIT 1`, w.Args...)
}

// storedSubject returns the subject of a condition as its events have it. It may have the key of an item, which is
// long.
func storedSubject(subject string) string { return sqldb.CleanTo(subject, 290) }

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
	type failing struct{ Since, Now time.Time }
	f, err := sqldb.Value[failing](ctx, r.DB, `SELECT MIN(failing_since), {now} FROM schedule_server
		WHERE `+ofTask+` AND heartbeat_time >= {ago judge_dead_interval_ms}`, taskType, r.OwnSign)
	if err != nil || f.Since.IsZero() {
		return 0, sqldb.Wrap(err, "ask since when workers of %s$%s fail", taskType, r.OwnSign)
	}
	return f.Now.Sub(f.Since), nil
}

// Standby counts the eligible servers, those of them that have said that they own no queue, and the queues, for a
// message to people.
func (r *Roster) Standby(ctx context.Context, taskType string) (servers, standby, queues int, err error) {
	type counts struct{ Servers, Standby, Queues int }
	n, err := sqldb.Value[counts](ctx, r.DB, `SELECT COUNT(*), COUNT(CASE WHEN state = '`+StateStandby+`' THEN 1 END),
			(SELECT COUNT(*) FROM schedule_queue WHERE `+ofTask+`)
		FROM schedule_server WHERE `+ofTask+` AND `+ownerStates, taskType, r.OwnSign, taskType, r.OwnSign)
	return n.Servers, n.Standby, n.Queues, sqldb.Wrap(err, "count the workers of %s$%s", taskType, r.OwnSign)
}
