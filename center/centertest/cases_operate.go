package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// testPause checks the pause of a task type and of a server.
func testPause(t *testing.T, c *center.Center) {
	t.Run("the heartbeat tells that the task type is paused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		for _, paused := range []bool{true, false} {
			r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, paused))
			if p, _ := r.heartbeat("A"); p.Paused != paused {
				t.Fatalf("the heartbeat reply has Paused %t, want %t", p.Paused, paused)
			}
		}
		r.wantOwners("A", "A")
	})
	t.Run("errors name the operation and its object", func(t *testing.T) {
		for verb, paused := range map[string]bool{"pause": true, "resume": false} {
			if err := c.Roster().Operator("test").PauseServer(t.Context(), "nobody", paused); !errors.Is(err, center.ErrGone) || !strings.HasPrefix(err.Error(), verb+" nobody: ") {
				t.Errorf("%s an unknown server: error %v, want ErrGone and the operation in front", verb, err)
			}
			if err := c.Roster().Operator("test").Pause(t.Context(), "nothing", paused); !errors.Is(err, center.ErrUnknownTask) || !strings.HasPrefix(err.Error(), verb+" nothing$") {
				t.Errorf("%s an unknown task type: error %v, want ErrUnknownTask and the operation in front", verb, err)
			}
		}
	})
	t.Run("P5 the plan requests the queues of a paused server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), true))
		r.rebalance("B")
		r.wantOwners("A>B", "B")
		if p, _ := r.heartbeat("A"); p.State != ops.StatePaused {
			t.Fatalf("the paused server has state %s, want PAUSED", p.State)
		}
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), false))
		r.rebalance("B")
		r.wantOwners("A", "B")
	})
	t.Run("P7 the only server keeps its queues while it is paused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), true))
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
	t.Run("errors tell that a server is gone", func(t *testing.T) {
		if err := c.Roster().Operator("test").PauseServer(t.Context(), "nobody", true); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Fatalf("pause an unknown server: error %v, want that it is gone", err)
		}
	})
}

// testRetention checks that Clean deletes old events and servers that left long ago (S4).
func testRetention(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A", "B")
	r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
	r.exec("UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND kind = 'JOINED'", r.task)
	r.exec("UPDATE schedule_server_history SET left_time = '2020-01-01 00:00:00.000000', heartbeat_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("B"))
	n, err := ops.New(c).Clean(t.Context(), time.Hour)
	r.must(err)
	if n < 3 {
		t.Fatalf("Clean deleted %d rows, want at least 3", n)
	}
	if diff := cmp.Diff([]string{ops.EventLeft}, r.eventKinds("")); diff != "" {
		t.Fatalf("events that are left (-want +got):\n%s", diff)
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", r.uuid("B")); n != 0 {
		t.Fatalf("the history has %d rows of B, want 0", n)
	}
}
