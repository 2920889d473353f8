package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Events lists what happened to queues, servers and settings.
type Events struct{ c *Client }

// Events returns the bundle of events.
func (c *Client) Events() *Events { return &Events{c} }

// The kinds of schedule_event, whose meanings docs/tables.md has.
const (
	EventJoined        = roster.EventJoined
	EventLeft          = roster.EventLeft
	EventExpired       = roster.EventExpired
	EventRequested     = roster.EventRequested
	EventGranted       = roster.EventGranted
	EventReleased      = roster.EventReleased
	EventTakenOver     = roster.EventTakenOver
	EventUnassigned    = roster.EventUnassigned
	EventForced        = roster.EventForced
	EventDraining      = roster.EventDraining
	EventPaused        = roster.EventPaused
	EventResumed       = roster.EventResumed
	EventRepartition   = roster.EventRepartition
	EventRepartitioned = roster.EventRepartitioned
	EventAdded         = roster.EventAdded
	EventRemoving      = roster.EventRemoving
	EventResizing      = roster.EventResizing
	EventResized       = roster.EventResized
	EventRemoved       = roster.EventRemoved
	EventForgotten     = roster.EventForgotten
	EventSettings      = roster.EventSettings
	EventItems         = roster.EventItems
	EventAlert         = roster.EventAlert
	EventRun           = roster.EventRun
	EventTrigger       = roster.EventTrigger
	EventRetaken       = roster.EventRetaken
	EventWeight        = roster.EventWeight
	EventReserved      = roster.EventReserved
	EventPinned        = roster.EventPinned
	EventHistory       = roster.EventHistory
)

// EventKinds lists the kinds of events.
func EventKinds() []string { return roster.EventKinds() }

// EventRecord is a row of schedule_event.
type EventRecord struct {
	EventID    int64     `json:"event_id"`
	EventTime  time.Time `json:"event_time"`
	TaskType   string    `json:"task_type"`
	OwnSign    string    `json:"own_sign"`
	QueueID    *string   `json:"queue_id"`
	Kind       string    `json:"kind"`
	FromServer *string   `json:"from_server"`
	ToServer   *string   `json:"to_server"`
	Epoch      *int64    `json:"epoch"`
	Reason     string    `json:"reason"`
	Actor      string    `json:"actor"`

	// Of an ALERT; nil otherwise.
	Alert     *string    `json:"alert"`      // the kind of the condition
	Subject   *string    `json:"subject"`    // what it is about besides the queue and the server; nil: nothing
	OpenUntil *time.Time `json:"open_until"` // when the condition has ended, unless a server sees it again before that
}

// EventFilter selects events. Empty fields select all.
type EventFilter struct {
	TaskType string
	QueueID  string
	Server   string        // the old owner, the new owner or the actor: a uuid, or a name as Servers.Matching takes it
	Kind     string        // one of the Event constants
	Since    time.Duration // maximum age by the database's clock; 0: any
	After    int64         // only events with a higher event_id
	Open     bool          // only alerts whose condition has not ended

	servers []string // the uuids of Server
	alert   string   // only alerts of this kind
}

// List lists the last events of this own_sign that the filter selects, at most limit, in the order in which they were
// recorded.
func (e *Events) List(ctx context.Context, f EventFilter, limit int) (list []EventRecord, err error) {
	if err := e.findServers(ctx, &f); err != nil {
		return nil, err
	}
	return e.latest(ctx, f, limit)
}

func (e *Events) latest(ctx context.Context, f EventFilter, limit int) ([]EventRecord, error) {
	query, args := e.eventQuery(f, limit)
	list, err := sqldb.Records[EventRecord](ctx, e.c.db, query, args...)
	return list, sqldb.Wrap(err, "list the events")
}

// findServers adds the uuids of the registered servers with the name in the filter. It keeps uuids that it found
// before, because the events of a server outlive its registration. If it never found one, the name is a uuid.
func (e *Events) findServers(ctx context.Context, f *EventFilter) error {
	if f.Server == "" {
		return nil
	}
	servers, err := e.c.Servers().Matching(ctx, f.Server)
	if err != nil && !errors.Is(err, ErrUnknownServer) {
		return err
	}
	for _, s := range servers {
		if !slices.Contains(f.servers, s.UUID) {
			f.servers = append(f.servers, s.UUID)
		}
	}
	if len(f.servers) == 0 {
		f.servers = []string{f.Server}
	}
	return nil
}

// eventQuery builds a query that reads backwards through one index until it has enough rows.
func (e *Events) eventQuery(f EventFilter, limit int) (query string, args []any) {
	w := e.eventWhere(f)
	return fmt.Sprintf(`SELECT {columns} FROM (SELECT * FROM schedule_event WHERE %s
		ORDER BY event_id DESC LIMIT %d) x ORDER BY event_id`, w.Text, limit), w.Args
}

// eventWhere returns a condition for which the database reads one index (queue, kind or all events) in the order of the
// ids. COALESCE hides a column, so that the database does not choose an index whose rows it would have to sort.
func (e *Events) eventWhere(f EventFilter) sqldb.Where {
	task, kind := "task_type", "kind"
	if f.TaskType == "" || f.QueueID == "" {
		task = "COALESCE(task_type, '')"
	} else {
		kind = "COALESCE(kind, '')"
	}
	w := sqldb.Where{Text: "own_sign = ?", Args: []any{e.c.ownSign}}
	w.Equal(task, f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal(kind, f.Kind)
	if n := len(f.servers); n > 0 {
		in := " IN (" + sqldb.Marks(n) + ")"
		w.And("(from_server"+in+" OR to_server"+in+" OR actor"+in+")", sqldb.Args(slices.Repeat(f.servers, 3))...)
	}
	if f.Since > 0 {
		// a subquery is evaluated once; SQLite evaluates the bare function for each row
		w.And(fmt.Sprintf("event_time > (SELECT {ago %d})", f.Since.Milliseconds()))
	}
	if f.Open {
		w.And("open_until > (SELECT {now})")
	}
	w.Equal("alert", f.alert)
	if f.After > 0 {
		w.And("event_id > ?", f.After)
	}
	return w
}
