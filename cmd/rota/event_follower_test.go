package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// Each event is read once: the latest at the first read, then only new ones.
func TestFollowerReadsEachEventOnce(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	f := eventFollower{center: s.c, limit: 2}
	next := func(want int) []center.EventRecord {
		t.Helper()
		events, err := f.next(t.Context())
		if err != nil || len(events) != want {
			t.Fatalf("%d events, %v, want %d", len(events), err, want)
		}
		return events
	}
	next(2)
	next(0)
	s.must(s.c.Roster().Pause(t.Context(), "settle", true, "test"))
	s.must(s.c.Roster().Pause(t.Context(), "settle", false, "test"))
	s.must(s.c.Roster().Pause(t.Context(), "settle", true, "test"))
	if events := next(3); events[0].Kind != "PAUSED" || events[1].Kind != "RESUMED" {
		t.Errorf("%+v", events)
	}
	next(0)
}

// The filter takes host:pid of a registered server, and any uuid of a server that is gone.
func TestFollowerFindsServers(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	for name, want := range map[string]string{"web1:1": web1, web2: web2, "gone:1:00000009": "gone:1:00000009", "": ""} {
		if got := (&eventFollower{center: s.c, server: name}).serverUUID(t.Context()); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	ctx, cancel := context.WithCancel(t.Context())
	polls := 0
	err := (&eventFollower{center: s.c, limit: 1}).follow(ctx, time.Millisecond, func([]center.EventRecord) error {
		if polls++; polls == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || polls != 3 {
		t.Errorf("after the end of the context: %v, %d polls", err, polls)
	}
	errHandle := errors.New("handle")
	err = (&eventFollower{center: s.c, limit: 1}).follow(t.Context(), time.Hour, func([]center.EventRecord) error { return errHandle })
	if !errors.Is(err, errHandle) {
		t.Errorf("an error of handle: %v", err)
	}
}
