package roster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// L3: a server that has sent a heartbeat since it was read survives.
func TestExpirySparesServersWithANewHeartbeat(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "expire", 1)
		if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "A", TaskType: "expire", JudgeDeadInterval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if alive, err := c.Roster().ExpireAsReadBefore(t.Context(), "expire", "A"); err != nil || alive != 1 {
			t.Fatalf("%d servers are alive, %v", alive, err)
		}
	})
}

// A clock that was set back leaves heartbeats in the future. A server that sends no further heartbeat is dead.
func TestHeartbeatsFromTheFuture(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 4)
		for _, uuid := range []string{"web1:1:00000000", "web2:1:00000000"} {
			host, _, _ := strings.Cut(uuid, ":")
			if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: host, JudgeDeadInterval: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		execSQL(t, c, "UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000', beat_token = 'x' WHERE host_name = 'web2'")
		replies, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{Token: "y", OldTokens: []string{""}, Servers: []roster.ServerReport{{UUID: "web1:1:00000000", TaskType: "settle"}}})
		if err != nil || !replies["web1:1:00000000"].AnyDead {
			t.Fatalf("%+v, %v", replies, err)
		}
		options := roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute}
		for _, seen := range []string{"2999-01-01", ""} { // a reply from before the clock was set proves nothing
			if seen != "" {
				if options.RepliedAt, err = time.Parse(time.DateOnly, seen); err != nil {
					t.Fatal(err)
				}
			} else {
				options.RepliedAt = replies["web1:1:00000000"].Now
			}
			done, err := c.Roster().Planner("settle", "web1:1:00000000").Rebalance(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			for _, silent := range done.Silences {
				if silent != time.Minute { // the judge_dead_interval
					t.Errorf("silent for %s", silent)
				}
			}
			if left, want := countRows(t, c, "SELECT uuid FROM schedule_server"), map[bool]int{true: 2, false: 1}[seen != ""]; left != want {
				t.Fatalf("%d servers are left, want %d", left, want)
			}
		}
		if n := countRows(t, c, "SELECT 1 FROM schedule_event WHERE kind = 'EXPIRED' AND reason = 'silent since the clock was set back, from 2999-01-01T00:00:00Z or later; judge_dead_interval 1m0s'"); n != 1 {
			t.Errorf("%d events give the reason, want 1", n)
		}
	})
}
