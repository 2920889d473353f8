package ops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// followPage is how many events one statement of a follower reads.
const followPage = 1_000

// followWindow is how far a follower looks back. An event gets its id when its transaction writes it, and other
// followers see it when the transaction has committed: a transaction with lower ids can commit after one with higher
// ids. A transaction commits within AttemptTimeout or not at all.
const followWindow = 3 * sqldb.AttemptTimeout

// EventFollower returns events as they are recorded, each once. It must not be used concurrently.
type EventFollower struct {
	events  *Events
	filter  EventFilter // After is the horizon: events up to it are not read any more
	limit   int         // for the first read
	started bool

	returned map[int64]bool // the ids above the horizon that Next must not return again
}

// Follow returns a follower of the events that the filter selects. Its first Next returns what List returns: the latest
// events, at most limit. The filter's Since applies to this first read only.
func (e *Events) Follow(f EventFilter, limit int) *EventFollower {
	return &EventFollower{events: e, filter: f, limit: limit, returned: map[int64]bool{}}
}

// Next returns the latest events at the first call, and at each further call all events that the follower has not
// returned yet, in the order of their ids. An event whose transaction committed late has a lower id than events that
// were returned before it. If Next fails midway, it returns the events that it has read so far, and the next call
// continues.
func (f *EventFollower) Next(ctx context.Context) (events []EventRecord, err error) {
	if err := f.events.findServers(ctx, &f.filter); err != nil {
		return nil, err
	}
	// The horizon is read before the events: an event that is committed in between is then above it.
	horizon, err := f.events.horizon(ctx, f.filter.After)
	if err != nil {
		return nil, err
	}
	if !f.started {
		return f.start(ctx, horizon)
	}
	events, err = f.unreturned(ctx, f.filter)
	if err == nil {
		f.advance(horizon)
	}
	slices.SortFunc(events, func(a, b EventRecord) int { return cmp.Compare(a.EventID, b.EventID) })
	return events, err
}

// start returns the latest events. It marks all events above the horizon as returned: the events that the limit or
// Since leaves out are not new.
func (f *EventFollower) start(ctx context.Context, horizon int64) ([]EventRecord, error) {
	later := f.filter
	later.Since, later.After = 0, max(later.After, horizon)
	if _, err := f.unreturned(ctx, later); err != nil {
		return nil, err
	}
	events, err := f.events.latest(ctx, f.filter, f.limit)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		f.returned[e.EventID] = true
	}
	f.filter, f.started = later, true
	f.advance(later.After)
	return events, nil
}

// unreturned reads all events that the filter selects, page by page, and returns the new ones among them.
func (f *EventFollower) unreturned(ctx context.Context, filter EventFilter) (events []EventRecord, err error) {
	for {
		page, err := f.events.page(ctx, filter)
		if err != nil {
			return events, err
		}
		for _, e := range page {
			filter.After = e.EventID
			if !f.returned[e.EventID] {
				f.returned[e.EventID] = true
				events = append(events, e)
			}
		}
		if len(page) < followPage {
			return events, nil
		}
	}
}

// advance moves the horizon and forgets the events up to it.
func (f *EventFollower) advance(horizon int64) {
	f.filter.After = horizon
	maps.DeleteFunc(f.returned, func(id int64, _ bool) bool { return id <= horizon })
}

// page returns the first events that the filter selects, in the order of their ids.
func (e *Events) page(ctx context.Context, f EventFilter) ([]EventRecord, error) {
	w := e.eventWhere(f)
	list, err := sqldb.Records[EventRecord](ctx, e.c.db,
		fmt.Sprintf(`SELECT {columns} FROM schedule_event WHERE %s ORDER BY event_id LIMIT %d`, w.Text,
			followPage), w.Args...)
	return list, sqldb.Wrap(err, "follow the events")
}

// horizon returns the highest id of the events that are older than followWindow, at least after. Transactions with
// lower ids have ended.
func (e *Events) horizon(ctx context.Context, after int64) (id int64, err error) {
	id, err = sqldb.Value[int64](ctx, e.c.db, fmt.Sprintf(`SELECT event_id FROM schedule_event WHERE event_id > ?
		AND event_time < (SELECT {ago %d})
		ORDER BY event_id DESC LIMIT 1`, followWindow.Milliseconds()), after)
	return max(id, after), sqldb.Wrap(err, "follow the events")
}

// Run passes the events of each Next to handle, perhaps none, until the context ends, and then returns nil. It polls at
// the given interval, and calls handle from the caller's goroutine. After a transient error of the database it tries
// again at the next poll. Any other error ends Run, and so does an error of handle.
func (f *EventFollower) Run(ctx context.Context, every time.Duration, handle func([]EventRecord) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		events, err := f.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !f.events.c.db.Transient(err) {
			return err
		}
		if err := handle(events); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
