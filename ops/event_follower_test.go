package ops_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// follower compares what each read of a follower returns.
type follower struct {
	*testing.T
	*ops.EventFollower
	c *center.Center
}

func newFollower(t *testing.T, c *center.Center, filter ops.EventFilter, limit int) follower {
	return follower{t, ops.New(c).Events().Follow(filter, limit), c}
}

// want reads once and compares the reasons of the events.
func (f follower) want(reasons ...string) {
	f.Helper()
	events, err := f.Next(f.Context())
	must(f.T, err)
	var got []string
	for _, e := range events {
		got = append(got, e.Reason)
	}
	if strings.Join(got, ",") != strings.Join(reasons, ",") {
		f.Fatalf("%d events: %.300q, want %d: %.300q", len(got), got, len(reasons), reasons)
	}
}

// execer is a *sql.DB or a *sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// record writes events as a transaction of the roster does, with the given reasons.
func record(t *testing.T, db execer, reasons ...string) {
	t.Helper()
	var values []string
	for _, r := range reasons {
		values = append(values, fmt.Sprintf("('settle', 'ALERT', '%s')", r))
	}
	_, err := db.ExecContext(t.Context(), "INSERT INTO schedule_event (task_type, kind, reason) VALUES "+strings.Join(values, ", "))
	must(t, err)
}

// forget deletes the events that centertest.Served has caused.
func forget(t *testing.T, c *center.Center) {
	t.Helper()
	centertest.Exec(t, c, "DELETE FROM schedule_event")
}

// ageEvents makes all events older than the window of a follower.
func ageEvents(t *testing.T, c *center.Center) {
	t.Helper()
	centertest.Exec(t, c, "UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000'")
}

// withoutEvents runs f on each kind of database, with the roster of centertest.Served and no events.
func withoutEvents(t *testing.T, f func(t *testing.T, c *center.Center)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Served(t, url)
		forget(t, c)
		f(t, c)
	})
}

func TestFollowerReturnsEachEventOnce(t *testing.T) {
	t.Parallel()
	withoutEvents(t, func(t *testing.T, c *center.Center) {
		record(t, c.DB(), "a", "b", "c")
		f := newFollower(t, c, ops.EventFilter{}, 2)
		f.want("b", "c")
		f.want()
		record(t, c.DB(), "d", "e", "f")
		f.want("d", "e", "f")
		f.want()
	})
}

// More events than one page holds come between two polls.
func TestFollowerReturnsAllEventsOfABurst(t *testing.T) {
	t.Parallel()
	withoutEvents(t, func(t *testing.T, c *center.Center) {
		f := newFollower(t, c, ops.EventFilter{}, 100)
		f.want()
		burst := make([]string, 2_500)
		for i := range burst {
			burst[i] = fmt.Sprint(i)
		}
		record(t, c.DB(), burst...)
		f.want(burst...)
		f.want()
	})
}

// A transaction gets the ids of its events when it writes them, and another transaction with higher ids can commit
// first.
func TestFollowerReturnsEventsOfLateCommits(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := centertest.Served(t, testdb.URL(t, kind))
			forget(t, c)
			record(t, c.DB(), "a")
			early, err := c.DB().BeginTx(t.Context(), nil)
			must(t, err)
			defer early.Rollback()
			record(t, early, "b")
			record(t, c.DB(), "c", "d")
			f := newFollower(t, c, ops.EventFilter{}, 1) // must not return a and c later: they are beyond the limit
			f.want("d")
			late, err := c.DB().BeginTx(t.Context(), nil)
			must(t, err)
			defer late.Rollback()
			record(t, late, "e")
			record(t, c.DB(), "f")
			must(t, early.Commit())
			f.want("b", "f")
			must(t, late.Commit())
			record(t, c.DB(), "g")
			f.want("e", "g")
			f.want()
		})
	}
}

// The ids alone say what is late: SQLite has one writer, but the rows can come from a restored or merged table.
func TestFollowerReturnsLowerIDs(t *testing.T) {
	t.Parallel()
	withoutEvents(t, func(t *testing.T, c *center.Center) {
		insert := func(id int, reason string) {
			t.Helper()
			centertest.Exec(t, c, fmt.Sprintf("INSERT INTO schedule_event (event_id, task_type, kind, reason) VALUES (%d, 'settle', 'ALERT', '%s')", id, reason))
		}
		insert(5_010, "a")
		f := newFollower(t, c, ops.EventFilter{TaskType: "settle", Kind: ops.EventAlert}, 100)
		f.want("a")
		insert(5_012, "c")
		insert(5_009, "b")
		f.want("b", "c")
		insert(5_011, "d")
		f.want("d")
		f.want()
	})
}

// Events that are older than the window do not come again, and the window moves on.
func TestFollowerForgetsOldEvents(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Served(t, url)
		ageEvents(t, c)
		f := newFollower(t, c, ops.EventFilter{Since: time.Hour}, 100)
		f.want()
		record(t, c.DB(), "a")
		f.want("a")
		ageEvents(t, c)
		f.want()
		record(t, c.DB(), "b")
		f.want("b")
		f.want()
		if n := f.Remembered(); n != 1 {
			t.Errorf("the follower remembers %d events, want only the one within the window", n)
		}
	})
}

// The age limit is for the first read: a poll that comes late must not lose events.
func TestFollowerSinceIsForTheFirstRead(t *testing.T) {
	t.Parallel()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	forget(t, c)
	record(t, c.DB(), "a")
	ageEvents(t, c)
	f := newFollower(t, c, ops.EventFilter{Since: time.Second}, 100)
	f.want()
	record(t, c.DB(), "b")
	ageEvents(t, c)
	f.want("b")
	f.want()
}

// The filter takes host:pid of a registered server, and follows the server until after its end.
func TestEventsOfAServer(t *testing.T) {
	t.Parallel()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	kinds := func(server string) (kinds []string) {
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{Server: server}, 100)
		must(t, err)
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	if want := "JOINED,REQUESTED,REQUESTED"; strings.Join(kinds(web2), ",") != want || strings.Join(kinds("web2:2"), ",") != want {
		t.Errorf("web2: %v, %v, want %s", kinds(web2), kinds("web2:2"), want)
	}
	if got := kinds("gone:1:00000009"); len(got) > 0 {
		t.Errorf("a worker that is not there: %v", got)
	}
	f := newFollower(t, c, ops.EventFilter{Server: "web2:2", Kind: ops.EventAlert}, 100)
	f.want()
	centertest.Exec(t, c, "DELETE FROM schedule_server WHERE uuid = '"+web2+"'")
	centertest.Exec(t, c, "INSERT INTO schedule_event (task_type, kind, from_server, reason) VALUES ('settle', 'ALERT', '"+web2+"', 'its last')")
	f.want("its last")
	for _, task := range []string{"settle", "regions"} {
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "web3:3:" + task, TaskType: task, Host: "web3", PID: 3, JudgeDeadInterval: time.Hour})
		must(t, err)
	}
	for _, name := range []string{"web3:3", "web3"} {
		if got := kinds(name); !slices.Equal(got, []string{"JOINED", "JOINED"}) {
			t.Errorf("%s, which has two workers: %v, want two joins", name, got)
		}
	}
}

func TestFollowerRuns(t *testing.T) {
	t.Parallel()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	ctx, cancel := context.WithCancel(t.Context())
	polls := 0
	err := ops.New(c).Events().Follow(ops.EventFilter{}, 1).Run(ctx, time.Millisecond, func([]ops.EventRecord) error {
		if polls++; polls == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || polls != 3 {
		t.Errorf("after the end of the context: %v, %d polls", err, polls)
	}
	errHandle := errors.New("handle")
	err = ops.New(c).Events().Follow(ops.EventFilter{}, 1).Run(t.Context(), time.Hour, func([]ops.EventRecord) error { return errHandle })
	if !errors.Is(err, errHandle) {
		t.Errorf("an error of handle: %v", err)
	}
}
