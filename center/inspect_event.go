package center

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

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
}

// EventFilter says which events are asked for. Empty fields ask for all.
type EventFilter struct {
	TaskType string
	QueueID  string
	Server   string        // uuid of who gave, got or did it
	Kind     string        // one of the Event constants
	Since    time.Duration // how long ago at the most, by the database's clock; 0: any
	After    int64         // only those with a higher event_id
}

// List lists events of this own_sign in the order in which they were recorded: the last of those that the
// filter lets through, not more than limit.
func (e *Events) List(ctx context.Context, f EventFilter, limit int) ([]EventRecord, error) {
	query, args := e.c.Events().eventQuery(f, limit)
	list, err := sqldb.Records[EventRecord](ctx, e.c.db, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list the events: %w", err)
	}
	return list, nil
}

// eventQuery leaves the database one way to go: backwards through the events of a queue, of a kind, or through all of
// them, until there are enough. COALESCE hides a column from the indexes that would make it sort a week's events.
func (e *Events) eventQuery(f EventFilter, limit int) (query string, args []any) {
	task, kind := "task_type", "kind"
	if f.TaskType == "" || f.QueueID == "" {
		task = "COALESCE(task_type, '')"
	} else {
		kind = "COALESCE(kind, '')"
	}
	w := sqldb.Where{Args: []any{e.c.ownSign}}
	w.Equal(task, f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal(kind, f.Kind)
	if f.Server != "" {
		w.And("(from_server = ? OR to_server = ? OR actor = ?)", f.Server, f.Server, f.Server)
	}
	if f.Since > 0 {
		w.And(fmt.Sprintf("event_time > (SELECT {ago %d})", f.Since.Milliseconds())) // asked once: SQLite would ask for each row
	}
	if f.After > 0 {
		w.And("event_id > ?", f.After)
	}
	return fmt.Sprintf(`SELECT {columns} FROM (SELECT * FROM schedule_event WHERE own_sign = ?%s
		ORDER BY event_id DESC LIMIT %d) x ORDER BY event_id`, w.Text, limit), w.Args
}

// ItemRecord is a row of schedule_failed_item.
type ItemRecord struct {
	TaskType      string     `json:"task_type"`
	OwnSign       string     `json:"own_sign"`
	ItemKey       string     `json:"item_key"`
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"` // RETRY or DEAD
	Attempts      int64      `json:"attempts"`
	LastError     string     `json:"last_error"`
	FirstFailedAt time.Time  `json:"first_failed_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
}

// ItemFilter says which failed items are asked for. Empty fields ask for all.
type ItemFilter struct {
	TaskType string
	QueueID  string
	State    string
}

// List lists failed items of this own_sign, those that failed last at the end, not more than limit of them.
func (it *Items) List(ctx context.Context, f ItemFilter, limit int) ([]ItemRecord, error) {
	w := sqldb.Where{Args: []any{it.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	list, err := sqldb.Records[ItemRecord](ctx, it.c.db, latest(`schedule_failed_item WHERE own_sign = ?`+w.Text, "first_failed_at", "item_key", limit), w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the failed items: %w", err)
	}
	return list, nil
}
