package centertest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// testExpiry checks which silent servers expire, and what happens to their queues.
func testExpiry(t *testing.T, c *center.Center) {
	t.Run("S7 L3 a silent server expires and its queues are taken over", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		epoch := r.epoch("1")
		r.makeSilent("B")
		r.rebalance("A")
		r.wantOwners("A", "B", "A", "B") // A has not watched, so it expires no server
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A", "A", "A")
		if got := r.epoch("1"); got != epoch+1 {
			t.Fatalf("queue 1 has epoch %d, want %d", got, epoch+1)
		}
		if _, ok := r.heartbeat("B"); ok {
			t.Fatal("the expired server got a reply to its heartbeat")
		}
		if diff := cmp.Diff([]string{"EXPIRED"}, r.readColumn("SELECT reason FROM schedule_server_history WHERE uuid = '%s'", r.uuid("B"))); diff != "" {
			t.Fatalf("reasons in the history (-want +got):\n%s", diff)
		}
		want := []string{ops.EventJoined, ops.EventJoined, ops.EventExpired}
		if diff := cmp.Diff(want, r.eventKinds("")); diff != "" {
			t.Fatalf("events of the servers (-want +got):\n%s", diff)
		}
	})
	t.Run("S7 a server that sends a heartbeat does not expire", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.makeSilent("B")
		if _, ok := r.heartbeat("B"); !ok {
			t.Fatal("the server got no reply to its heartbeat")
		}
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A>B")
	})
	t.Run("S7 a server that has watched too briefly expires no server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.makeSilent("B")
		_, err := c.Roster().Planner(r.task, r.uuid("A")).Rebalance(t.Context(), roster.RebalanceOptions{Watched: 9 * time.Second, MaxHeartbeatAge: time.Minute})
		r.must(err)
		r.wantOwners("A", "A>B")
	})
	t.Run("S7 a server that was silent itself expires no server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.makeSilent("A")
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A>B")
	})
}

// testCrashCounts checks which ends of an owner count as a crash of its queues (S14).
func testCrashCounts(t *testing.T, c *center.Center) {
	t.Run("S14 a queue counts the owners that expired in a row", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		counts := func(want ...int64) {
			t.Helper()
			for i, n := range want {
				got := r.readInt("SELECT crash_count FROM schedule_queue WHERE task_type = '%s' AND queue_id = '%d'", r.task, i)
				if got != n {
					t.Fatalf("crash_count of queue %d is %d, want %d", i, got, n)
				}
			}
		}
		counts(0, 0) // a release is no crash
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		counts(0, 1)
		view, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		if view.Queues[0].Crashes != 0 || view.Queues[1].Crashes != 1 {
			t.Fatalf("the view shows %d and %d crashes, want 0 and 1", view.Queues[0].Crashes, view.Queues[1].Crashes)
		}
		r.join("C")
		r.makeSilent("A")
		r.rebalanceExpiring("C")
		counts(1, 2)
		reset := func(server string, epoch0, epoch1 int64) {
			t.Helper()
			r.must(c.Roster().Server(r.task, r.uuid(server)).ResetCrashes(t.Context(), []center.QueueEpoch{{ID: "0", Epoch: epoch0}, {ID: "1", Epoch: epoch1}}))
		}
		reset("A", r.epoch("0"), r.epoch("1")) // it owns nothing any more
		reset("C", r.epoch("0")-1, r.epoch("1")-1)
		counts(1, 2)
		reset("C", r.epoch("0"), r.epoch("1")-1)
		counts(0, 2)
		r.join("D")
		r.must(c.Roster().Server(r.task, r.uuid("C")).Leave(t.Context(), nil, roster.Reservation{}))
		counts(0, 2) // a server that leaves has not crashed
	})
}

// testRequests checks what the plan requests when a server is gone or draining.
func testRequests(t *testing.T, c *center.Center) {
	t.Run("P5 the plan withdraws the request of an expired requester", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A")
	})
	t.Run("H4 a requester knows once it has reported that it has read the request", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.register("B")
		before := r.read("B")
		r.rebalance("A")
		informed := func() bool {
			queues := r.read("A").Queues
			return queues[slices.IndexFunc(queues, func(q roster.ViewQueue) bool { return q.Requester != "" })].RequesterInformed
		}
		// A heartbeat that was under way while the plan committed has a later time than the request.
		r.exec("UPDATE schedule_queue SET req_since = NULL WHERE task_type = '%s'", r.task)
		r.send("B", roster.ServerReport{ReadPlanVersion: before.NewestPlan()})
		if informed() {
			t.Error("the requester counts as informed, and has read its queues before the request only")
		}
		r.send("B", roster.ServerReport{ReadPlanVersion: r.read("B").NewestPlan()})
		if !informed() {
			t.Error("the requester has read the request, and counts as uninformed")
		}
	})
	t.Run("H4 the queues of a draining server are requested, and it gets none", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().Server(r.task, r.uuid("B")).Drain(t.Context(), roster.Reservation{}))
		r.rebalance("A")
		r.wantOwners("A", "B>A")
		if p, ok := r.heartbeat("B"); !ok || p.State != ops.StateDraining {
			t.Fatalf("heartbeat reply %+v, want state DRAINING; registered: %t", p, ok)
		}
		if err := c.Roster().Server(r.task, "nobody").Drain(t.Context(), roster.Reservation{}); !errors.Is(err, center.ErrGone) {
			t.Fatalf("drain an unknown server: error %v, want ErrGone", err)
		}
	})
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
			b := roster.Heartbeat{Token: r.tokens["A"] + "+", Servers: []roster.ServerReport{{UUID: r.uuid("A"), OldToken: r.tokens["A"], State: ops.StateServing, WatchingSince: old}}}
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
