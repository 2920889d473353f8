package roster

import (
	"context"
	"strings"
	"time"

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
	EventTakenOver  = "TAKEN_OVER" // a queue whose owner is gone got another
	EventUnassigned = "UNASSIGNED" // a queue lost its owner, and no server can take it
	EventForced     = "FORCED"     // a queue was taken although its owner may have it in flight
	EventDraining   = "DRAINING"   // a server is to own nothing any more
	EventPaused     = "PAUSED"     // a task type or a server was paused
	EventResumed    = "RESUMED"    // a task type or a server was resumed

	EventRepartition   = "REPARTITION"   // another number of queues was requested: all servers drain
	EventRepartitioned = "REPARTITIONED" // the number of queues has changed

	EventAdded    = "ADDED"    // a named queue was added
	EventRemoving = "REMOVING" // a named queue is to be removed: its owner drains it
	EventRemoved  = "REMOVED"  // a named queue was removed

	EventForgotten = "FORGOTTEN" // an environment that no server had served for long was deleted
	EventSettings  = "SETTINGS"  // an operator changed the settings of a task type, in each environment
	EventItems     = "ITEMS"     // an operator changed failed items
	EventAlert     = "ALERT"     // an alert was raised

	EventRun     = "RUN"     // a run failed or was skipped, an operator changed a run or a backfill, or a backfill ended
	EventTrigger = "TRIGGER" // an operator changed a trigger

	EventRetaken = "RETAKEN" // an owner kept a queue that it had been about to release

	EventWeight = "WEIGHT" // an operator gave a server another part of the queues

	EventPlanner = "PLANNER" // other rules divide the queues from now on

	EventReserved = "RESERVED" // a queue waits for the return of a server that has left

	EventTotals = "TOTALS" // queues are to move so that the processes have equal numbers of all task types

	EventPinned = "PINNED" // an operator said which servers may own a queue
)

// EventKinds lists the kinds of events in the order of the constants.
func EventKinds() []string {
	return []string{
		EventJoined, EventLeft, EventExpired, EventRequested, EventGranted, EventReleased, EventTakenOver, EventUnassigned, EventForced,
		EventDraining, EventPaused, EventResumed, EventRepartition, EventRepartitioned, EventAdded, EventRemoving, EventRemoved,
		EventForgotten, EventSettings, EventItems, EventAlert, EventRun, EventTrigger, EventRetaken, EventWeight, EventPlanner, EventReserved, EventTotals, EventPinned,
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
			args = append(args, taskType, ownSign, sqldb.Null(e.queue), e.Kind, sqldb.Null(e.from), sqldb.Null(e.to), nullEpoch(e), sqldb.Clean(e.Reason), sqldb.Clean(e.Actor),
				sqldb.Null(e.alert), sqldb.Null(sqldb.Clean(e.subject)), e.until(t))
		}
		_, err := t.Exec(ctx, `INSERT INTO schedule_event
			(event_time, task_type, own_sign, queue_id, kind, from_server, to_server, epoch, reason, actor, alert, subject, open_until) VALUES `+values, args...)
		if err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func (e Event) until(t sqldb.Tx) any {
	if e.openUntil.IsZero() {
		return nil
	}
	return t.Dialect.Time(e.openUntil)
}

func nullEpoch(e Event) any {
	if e.queue == "" {
		return nil
	}
	return e.epoch
}
