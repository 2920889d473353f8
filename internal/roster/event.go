package roster

import (
	"context"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// The kinds of schedule_event. Each tells one thing that happened to a queue or a server.
const (
	EventJoined     = "JOINED"     // a server registered
	EventLeft       = "LEFT"       // a server left in order
	EventExpired    = "EXPIRED"    // a server was silent for too long
	EventRequested  = "REQUESTED"  // a queue shall move from a living owner
	EventGranted    = "GRANTED"    // a queue that had no owner got one
	EventReleased   = "RELEASED"   // a drained queue was handed over
	EventTakenOver  = "TAKEN_OVER" // a queue whose owner is gone got another
	EventUnassigned = "UNASSIGNED" // a queue lost its owner, and there is nobody to take it
	EventForced     = "FORCED"     // a queue was taken although its owner had it in hand
	EventDraining   = "DRAINING"   // a server shall own nothing any more
	EventPaused     = "PAUSED"     // a task type or a server was paused
	EventResumed    = "RESUMED"    // and goes on

	EventRepartition   = "REPARTITION"   // another number of queues is wanted: everybody drains
	EventRepartitioned = "REPARTITIONED" // the number of queues has changed

	EventAdded    = "ADDED"    // a named queue was added
	EventRemoving = "REMOVING" // and shall go: its owner drains it
	EventRemoved  = "REMOVED"  // and is gone

	EventForgotten = "FORGOTTEN" // an environment that nobody had served for long was deleted
	EventSettings  = "SETTINGS"  // an operator changed the settings of a task type
	EventItems     = "ITEMS"     // an operator changed failed items
	EventAlert     = "ALERT"     // something that an operator should know

	EventRun     = "RUN"     // an operator did something to a run
	EventTrigger = "TRIGGER" // or to a trigger

	EventRetaken = "RETAKEN" // an owner kept a queue that it had been about to release
)

// EventKinds lists the kinds of events.
func EventKinds() []string {
	return []string{
		EventJoined, EventLeft, EventExpired, EventRequested, EventGranted, EventReleased, EventTakenOver, EventUnassigned, EventForced,
		EventDraining, EventPaused, EventResumed, EventRepartition, EventRepartitioned, EventAdded, EventRemoving, EventRemoved,
		EventForgotten, EventSettings, EventItems, EventAlert, EventRun, EventTrigger, EventRetaken,
	}
}

// event is a row of schedule_event, written in the transaction that it tells of.
type Event struct {
	Kind     string
	queue    string
	from, to string
	epoch    int64
	Reason   string
	Actor    string
}

// eventRows is how many events one INSERT writes: 10 parameters each, below every limit.
const InsertRows = 500

// record writes the events, in their order.
func (l *LockTx) Record(ctx context.Context, events ...Event) error {
	for len(events) > 0 {
		n := min(InsertRows, len(events))
		values := strings.TrimSuffix(strings.Repeat("({now}, ?, ?, ?, ?, ?, ?, ?, ?, ?), ", n), ", ")
		args := make([]any, 0, 9*n)
		for _, e := range events[:n] {
			args = append(args, l.TaskType, l.OwnSign, sqldb.Null(e.queue), e.Kind, sqldb.Null(e.from), sqldb.Null(e.to), nullEpoch(e), sqldb.Clean(e.Reason), sqldb.Clean(e.Actor))
		}
		_, err := l.Exec(ctx, `INSERT INTO schedule_event
			(event_time, task_type, own_sign, queue_id, kind, from_server, to_server, epoch, reason, actor) VALUES `+values, args...)
		if err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func nullEpoch(e Event) any {
	if e.queue == "" {
		return nil
	}
	return e.epoch
}
