package main

import (
	"context"
	"time"

	"github.com/dutyrota/rota/center"
)

// followPage bounds how many events one poll reads.
const followPage = 1_000

// eventFollower reads events as they are recorded.
type eventFollower struct {
	center *center.Center
	filter center.EventFilter
	server string // uuid or host:pid of a server; empty: any
	limit  int    // for the first read; later reads take at least followPage
}

// follow passes the latest events to handle, and then polls for new ones until
// the context ends. Each call of handle gets the events of one poll, perhaps
// none. A transient error of the database skips one poll; another error, or
// one of handle, ends follow. The end of the context returns nil.
func (f *eventFollower) follow(ctx context.Context, every time.Duration, handle func([]center.EventRecord) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		events, err := f.next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !f.center.IsTransient(err) {
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

// next returns the latest events at the first call, and those recorded since
// the previous call at each further one.
func (f *eventFollower) next(ctx context.Context) ([]center.EventRecord, error) {
	f.filter.Server = f.serverUUID(ctx)
	events, err := f.center.Events().List(ctx, f.filter, f.limit)
	if n := len(events); n > 0 {
		f.filter.After = events[n-1].EventID
	}
	f.limit = max(f.limit, followPage)
	return events, err
}

// serverUUID returns the name as it is if no registered server has it: the
// events of a server outlive its registration.
func (f *eventFollower) serverUUID(ctx context.Context) string {
	if f.server == "" {
		return ""
	}
	if s, err := f.center.Servers().Find(ctx, f.server); err == nil {
		return s.UUID
	}
	return f.server
}
