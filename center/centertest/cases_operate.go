package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// reportDrained sends a heartbeat in which the server reports that it has drained for the requested repartition.
func (r *fixture) reportDrained(name string) roster.HeartbeatReply {
	r.Helper()
	p, ok := r.heartbeat(name)
	if !ok {
		r.Fatalf("server %s is not registered", name)
	}
	b := roster.Heartbeat{OldTokens: []string{r.tokens[name]}, Token: r.tokens[name] + "+", Servers: []roster.ServerReport{
		{UUID: r.uuid(name), State: center.StateServing, DrainedPartition: p.PartitionVersion},
	}}
	replies, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	r.must(err)
	r.tokens[name] = b.Token
	return replies[r.uuid(name)]
}

// finishRepartition finishes the repartition if all servers have drained. It reports whether this call did so.
func (r *fixture) finishRepartition(name string) bool {
	r.Helper()
	done, err := r.c.Roster().FinishRepartition(r.Context(), r.task, r.uuid(name))
	r.must(err)
	return done
}

func testRepartition(t *testing.T, c *center.Center) {
	for name, total := range map[string]int{"more": 5, "fewer": 2} {
		t.Run("N1 a repartition waits until all servers have drained, "+name+" queues", func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 3})
			r.join("A", "B")
			r.release("A", r.handover("1", "B"))
			before := r.epoch("1")
			r.must(c.Roster().Repartition(t.Context(), r.task, total, "test"))
			if r.finishRepartition("A") {
				t.Fatal("the repartition finished before any server had drained")
			}
			if p := r.reportDrained("A"); p.RequestedTotal != total || p.AllDrained {
				t.Fatalf("heartbeat reply %+v, want %d requested queues and one server left to drain", p, total)
			}
			if r.finishRepartition("A") {
				t.Fatal("the repartition finished while B had work in flight")
			}
			if p := r.reportDrained("B"); !p.AllDrained {
				t.Fatalf("heartbeat reply %+v, want AllDrained", p)
			}
			if !r.finishRepartition("B") || r.finishRepartition("A") {
				t.Fatal("the repartition did not finish exactly once")
			}
			if got := len(r.owners()); got != total {
				t.Fatalf("%d queues, want %d", got, total)
			}
			if got := r.epoch("1"); got != before+1 {
				t.Fatalf("queue 1 has epoch %d, want %d, so that the fence rejects items of the old number", got, before+1)
			}
			p, _ := r.heartbeat("A")
			if p.QueueTotal != total || p.RequestedTotal != 0 || p.MembershipVersion == p.PlannedVersion {
				t.Fatalf("heartbeat reply %+v, want %d queues, no request and a plan due", p, total)
			}
			r.rebalance("A")
			for _, owner := range r.owners() {
				if owner == "-" {
					t.Fatalf("owners of the queues %v, want one for each", r.owners())
				}
			}
		})
	}
}

func testRepartitionRequests(t *testing.T, c *center.Center) {
	t.Run("N1 H6 a queue that comes back starts above its old epoch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		for range 5 {
			r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '1'", r.task)
		}
		old := r.epoch("1")
		for _, total := range []int{1, 2} {
			r.must(c.Roster().Repartition(t.Context(), r.task, total, "test"))
			r.reportDrained("A")
			if !r.finishRepartition("A") {
				t.Fatalf("the repartition to %d queues did not finish", total)
			}
		}
		if now := r.epoch("1"); now <= old {
			t.Fatalf("queue 1 has epoch %d, want one above %d, its last", now, old)
		}
	})
	t.Run("N1 a drain for an earlier request does not count", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.reportDrained("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 2, "test")) // withdraws the request: A continues
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished while A had work in flight")
		}
	})
	t.Run("N1 the repartition waits for a server that joins meanwhile", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.reportDrained("A")
		r.join("B")
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished before B had drained")
		}
	})
}

func testRepartitionCursors(t *testing.T, c *center.Center) {
	t.Run("N1 a repartition is refused while queues have cursors", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		cursor := func(value string) {
			r.exec("UPDATE schedule_queue SET cursor_value = '%s' WHERE task_type = '%s' AND queue_id = '1'", value, r.task)
		}
		cursor("17")
		if err := c.Roster().Repartition(t.Context(), r.task, 4, "test"); err == nil || !strings.Contains(err.Error(), "the queues have cursors") {
			t.Fatalf("request a repartition: error %v, want the cursors in it", err)
		}
		cursor("")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.reportDrained("A")
		cursor("18")
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished although a queue has a cursor")
		}
		if p, _ := r.heartbeat("A"); p.RequestedTotal != 0 {
			t.Fatalf("heartbeat reply %+v, want the refused request to be withdrawn", p)
		}
	})
	t.Run("N1 a window is done if all queues had done it", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		done := func() int64 {
			return r.readInt("SELECT COUNT(window_done_at) FROM schedule_queue WHERE task_type = '%s'", r.task)
		}
		if done() != 2 {
			t.Fatalf("%d new queues have no window to catch up on, want 2", done())
		}
		r.exec("UPDATE schedule_queue SET window_done_at = NULL WHERE task_type = '%s'", r.task)
		r.must(c.Roster().WindowDone(t.Context(), r.task, r.uuid("A"), center.QueueEpoch{ID: "1", Epoch: r.epoch("1")}, since))
		if err := c.Roster().WindowDone(t.Context(), r.task, r.uuid("A"), center.QueueEpoch{ID: "0", Epoch: r.epoch("0") - 1}, since); !center.IsFenced(err) {
			t.Fatalf("window done under an old epoch: error %v, want ErrFenced", err)
		}
		v, err := c.Roster().View(t.Context(), r.task, r.uuid("A"))
		r.must(err)
		if !v.Queues[1].WindowDone.Equal(since) || !v.Queues[0].WindowDone.IsZero() {
			t.Fatalf("queues %+v, want only the second to be done with the window", v.Queues)
		}
		for i, want := range []int64{0, 5} {
			r.must(c.Roster().Repartition(t.Context(), r.task, 4+i, "test"))
			r.reportDrained("A")
			r.finishRepartition("A")
			if done() != want {
				t.Fatalf("%d queues are done with the window, want %d", done(), want)
			}
			r.exec("UPDATE schedule_queue SET window_done_at = '2026-01-02 03:04:05.000000' WHERE task_type = '%s'", r.task)
		}
	})
}

func testRepartitionErrors(t *testing.T, c *center.Center) {
	t.Run("errors name the cause", func(t *testing.T) {
		named := newFixture(t, c, center.Settings{QueueNames: []string{"n", "s"}})
		wantErrors(t, map[string]error{
			"the queues have names":            c.Roster().Repartition(t.Context(), named.task, 4, "test"),
			"queues (0) must be between 1 and": c.Roster().Repartition(t.Context(), named.task, 0, "test"),
			"unknown task type":                c.Roster().Repartition(t.Context(), "nobody", 3, "test"),
		})
	})
}

// testPause checks the pause of a task type and of a server.
func testPause(t *testing.T, c *center.Center) {
	t.Run("the heartbeat tells that the task type is paused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		for _, paused := range []bool{true, false} {
			r.must(c.Roster().Pause(t.Context(), r.task, paused, "test"))
			if p, _ := r.heartbeat("A"); p.Paused != paused {
				t.Fatalf("the heartbeat reply has Paused %t, want %t", p.Paused, paused)
			}
		}
		r.wantOwners("A", "A")
	})
	t.Run("errors name the operation and its object", func(t *testing.T) {
		for verb, paused := range map[string]bool{"pause": true, "resume": false} {
			if err := c.Roster().PauseServer(t.Context(), "nobody", paused, "test"); !errors.Is(err, center.ErrGone) || !strings.HasPrefix(err.Error(), verb+" nobody: ") {
				t.Errorf("%s an unknown server: error %v, want ErrGone and the operation in front", verb, err)
			}
			if err := c.Roster().Pause(t.Context(), "nothing", paused, "test"); !errors.Is(err, center.ErrUnknownTask) || !strings.HasPrefix(err.Error(), verb+" nothing$") {
				t.Errorf("%s an unknown task type: error %v, want ErrUnknownTask and the operation in front", verb, err)
			}
		}
	})
	t.Run("P5 the plan requests the queues of a paused server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), true, "test"))
		r.rebalance("B")
		r.wantOwners("A>B", "B")
		if p, _ := r.heartbeat("A"); p.State != center.StatePaused {
			t.Fatalf("the paused server has state %s, want PAUSED", p.State)
		}
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), false, "test"))
		r.rebalance("B")
		r.wantOwners("A", "B")
	})
	t.Run("P7 the only server keeps its queues while it is paused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), true, "test"))
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
	t.Run("errors tell that a server is gone", func(t *testing.T) {
		if err := c.Roster().PauseServer(t.Context(), "nobody", true, "test"); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Fatalf("pause an unknown server: error %v, want that it is gone", err)
		}
	})
}

// testRetention checks that Clean deletes old events and servers that left long ago (S4).
func testRetention(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A", "B")
	r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("B"), nil))
	r.exec("UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND kind = 'JOINED'", r.task)
	r.exec("UPDATE schedule_server_history SET left_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("B"))
	n, err := c.Clean(t.Context(), time.Hour)
	r.must(err)
	if n < 3 {
		t.Fatalf("Clean deleted %d rows, want at least 3", n)
	}
	if diff := cmp.Diff([]string{center.EventLeft}, r.eventKinds("")); diff != "" {
		t.Fatalf("events that are left (-want +got):\n%s", diff)
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", r.uuid("B")); n != 0 {
		t.Fatalf("the history has %d rows of B, want 0", n)
	}
}

// testWatch checks which watch a server inherits when it registers (S7).
func testWatch(t *testing.T, c *center.Center) {
	t.Run("S7 the first server starts its own watch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		if reg := r.register("A"); !reg.WatchingSince.Equal(reg.At) {
			t.Fatalf("registration %+v, want a watch that starts with it", reg)
		}
	})
	t.Run("S7 the next server inherits the watch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		first := r.register("A")
		if second := r.register("B"); !second.WatchingSince.Equal(first.WatchingSince) {
			t.Fatalf("registration %+v, want the watch of %+v", second, first)
		}
	})
	t.Run("S7 a server inherits no watch after the clock was set back", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.register("A")
		r.register("B")
		r.exec("UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("B"))
		if third := r.register("C"); !third.WatchingSince.Equal(third.At) {
			t.Fatalf("registration %+v, want a watch that starts with it", third)
		}
	})
	t.Run("S7 a server inherits no watch from a silent server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.register("A")
		r.makeSilent("A")
		if second := r.register("B"); !second.WatchingSince.Equal(second.At) {
			t.Fatalf("registration %+v, want a watch that starts with it", second)
		}
	})
	t.Run("S7 a heartbeat after a gap restarts the watch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		first := r.register("A")
		old := first.WatchingSince.Add(-time.Hour)
		r.exec("UPDATE schedule_server SET watching_since = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("A"))
		heartbeat := func() {
			b := roster.Heartbeat{OldTokens: []string{r.tokens["A"]}, Token: r.tokens["A"] + "+", Servers: []roster.ServerReport{{UUID: r.uuid("A"), WatchingSince: old}}}
			_, err := c.Roster().SendHeartbeat(t.Context(), b)
			r.must(err)
			r.tokens["A"] = b.Token
		}
		heartbeat()
		if second := r.register("B"); !second.WatchingSince.Equal(old) {
			t.Fatalf("registration %+v, want the reported watch since %s", second, old)
		}
		r.exec("DELETE FROM schedule_server WHERE uuid = '%s'", r.uuid("B"))
		r.makeSilent("A")
		heartbeat() // after the gap A reports its old watch, and the database ignores it
		if third := r.register("C"); third.WatchingSince.Before(first.At) {
			t.Fatalf("registration %+v, want a watch that starts after the gap", third)
		}
		heartbeat() // A repeats the report, as after a lost reply, and the database ignores it again
		if fourth := r.register("D"); fourth.WatchingSince.Before(first.At) {
			t.Fatalf("registration %+v after a repeated heartbeat, want a watch that starts after the gap", fourth)
		}
	})
}

// testPendingHandovers checks what a server is told about the owners that it waits for.
func testPendingHandovers(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	r.join("A", "B")
	pending, err := c.Roster().PendingHandovers(t.Context(), r.uuid("B"))
	r.must(err)
	if len(pending) != 1 || pending[0].Owner != r.uuid("A") || pending[0].Queues != 2 || pending[0].JudgeDeadInterval != 10*time.Second {
		t.Fatalf("pending hand-overs %+v, want 2 queues of A", pending)
	}
	if got, want := pending[0].String(), "queue 1 and 1 more are held by "+r.uuid("A")+", which finishes what it has in flight; requested 0s ago"; got != want {
		t.Errorf("text of a live owner %q, want %q", got, want)
	}
	dead := roster.PendingHandover{Owner: "web1:4711:ab", Queues: 1, FirstQueue: "3", SilentFor: 6 * time.Second, JudgeDeadInterval: 10 * time.Second}
	if got, want := dead.String(), "queue 3 is held by web1:4711:ab, last heartbeat 6s ago; taken over in 4s"; got != want {
		t.Errorf("text of a dead owner %q, want %q", got, want)
	}
	if pending, err := c.Roster().PendingHandovers(t.Context(), r.uuid("A")); err != nil || len(pending) > 0 {
		t.Errorf("pending hand-overs %+v of A, want none: %v", pending, err)
	}
}
