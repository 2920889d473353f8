package roster_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// L3: a server that has sent a heartbeat since its row was read does not expire.
func TestExpirySparesServersWithANewHeartbeat(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "expire", 1)
		if _, err := c.Roster().Register(t.Context(),
			roster.ServerInfo{UUID: "A", TaskType: "expire", JudgeDeadInterval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if alive, err := c.Roster().ExpireStaleRead(t.Context(), "expire", "A"); err != nil || alive != 2 {
			t.Fatalf("live servers after an expiry from a stale read: got %d, %v, want 2", alive, err)
		}
	})
}

// A column that a migration adds to the servers is kept in their history, too.
func TestHistoryKeepsAllColumns(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	rows, err := c.DB().QueryContext(t.Context(), "SELECT * FROM schedule_server")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	kept := strings.FieldsFunc(roster.ServerColumns, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	slices.Sort(columns)
	slices.Sort(kept)
	if diff := cmp.Diff(columns, kept); diff != "" {
		t.Errorf("columns of schedule_server (-table +history):\n%s", diff)
	}
}

const web1, web2 = "web1:1:00000000", "web2:1:00000000"

// Setting the database's clock back leaves heartbeats in the future. A server whose heartbeat stays the same is dead.
func TestHeartbeatsFromTheFuture(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 4)
		for _, uuid := range []string{web1, web2} {
			host, _, _ := strings.Cut(uuid, ":")
			if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{
				UUID: uuid, TaskType: "settle", Host: host, JudgeDeadInterval: time.Minute,
			}); err != nil {
				t.Fatal(err)
			}
		}
		centertest.Exec(t, c, "UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000', "+
			"beat_token = 'x' WHERE host_name = 'web2'")
		var replies map[string]roster.HeartbeatReply
		var err error
		for range 2 { // the first reply says which servers to watch
			replies, err = c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{
				Token: "y",
				Servers: []roster.ServerReport{{
					UUID: web1, TaskType: "settle", State: roster.StateServing, WatchRange: replies[web1].Watch.Range,
				}},
			})
		}
		if err != nil || !replies[web1].Watch.AnyDead {
			t.Fatalf("SendHeartbeat: got %+v, %v, want a reply with AnyDead", replies, err)
		}
		beforeTheChange := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
		rebalanceAndWantServers(t, c, beforeTheChange, 2) // a reply from before the change of the clock proves nothing
		rebalanceAndWantServers(t, c, replies[web1].Now, 1)
		if n := centertest.CountRows(t, c, "SELECT 1 FROM schedule_event WHERE kind = 'EXPIRED' AND reason = 'silent since "+
			"the clock was set back, from 2999-01-01T00:00:00Z or later; judge_dead_interval 1m0s'"); n != 1 {
			t.Errorf("events EXPIRED that name the change of the clock: got %d, want 1", n)
		}
	})
}

// rebalanceAndWantServers rebalances as web1, whose last heartbeat had its reply at the given time, and checks how many
// servers are left.
func rebalanceAndWantServers(t *testing.T, c *center.Center, repliedAt time.Time, want int) {
	t.Helper()
	options := roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute, RepliedAt: repliedAt}
	done, err := c.Roster().Planner("settle", web1).Rebalance(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, silence := range done.Silences {
		if silence != time.Minute {
			t.Errorf("silence of an expired server: got %s, want its judge_dead_interval of 1m0s", silence)
		}
	}
	if n := centertest.CountRows(t, c, "SELECT uuid FROM schedule_server"); n != want {
		t.Fatalf("servers after a rebalance by a reply of %s: got %d, want %d", repliedAt, n, want)
	}
}

// S1: what changes a server's row writes it last, after the plan. From then on the server's heartbeat waits, so between
// the write and the commit no other statement may pass, each of which takes a round trip.
func TestServerRowIsWrittenLast(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			openTask(t, url, "settle", 4)
			through, proxy := testdb.Through(t, url)
			c := centertest.Open(t, through, center.Options{})
			for _, uuid := range []string{"A", "B"} {
				if _, err := c.Roster().Register(t.Context(),
					roster.ServerInfo{UUID: uuid, TaskType: "settle", JudgeDeadInterval: time.Hour}); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			operator := c.Roster().Operator("test")
			for _, step := range []struct {
				what string
				do   func() error
			}{
				{"pause", func() error { return operator.PauseServer(t.Context(), "A", true) }},
				{"resume", func() error { return operator.PauseServer(t.Context(), "A", false) }},
				{"drain by an operator", func() error { _, err := operator.DrainServer(t.Context(), "A", false); return err }},
				{"weight", func() error { return operator.SetWeight(t.Context(), "A", 3) }},
				{"forced drain", func() error { _, err := operator.DrainServer(t.Context(), "A", true); return err }},
				{"drain", func() error { return c.Roster().Server("settle", "B").Drain(t.Context(), roster.Reservation{}) }},
				{"leave", func() error { return c.Roster().Server("settle", "B").Leave(t.Context(), nil, roster.Reservation{}) }},
			} {
				sent := string(proxy.Listen(func() {
					if err := step.do(); err != nil {
						t.Fatalf("%s: %v", step.what, err)
					}
				}))
				locking := regexp.MustCompile(`UPDATE schedule_server |schedule_server AS s`).FindStringIndex(sent)
				if locking == nil {
					t.Fatalf("%s: no statement locks the server's row:\n%q", step.what, sent)
				}
				for _, table := range []string{"schedule_queue", "schedule_task", "schedule_event"} {
					if strings.Contains(sent[locking[0]:], table) {
						t.Errorf("%s: a statement on %s passes while the server's row is locked:\n%q", step.what, table,
							sent[locking[0]:])
					}
				}
			}
		})
	}
}
