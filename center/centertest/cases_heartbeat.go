package centertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

func testHeartbeatReply(t *testing.T, c *center.Center) {
	t.Run("S2 the reply has the number of the queues and reports changes", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		a, _ := r.heartbeat("A")
		v := r.read("A")
		if len(v.Queues) != 3 || a.QueueVersion != v.Version || v.PlanVersion != a.History.PlanVersion || v.QueueTotal != 3 {
			t.Fatalf("reply %+v and view %+v, want 3 queues, and the same numbers in both", a, v)
		}
		if b, _ := r.heartbeat("B"); b.QueueVersion != r.read("B").Version {
			t.Fatalf("reply %+v to B, want the number of its view", b)
		}
		if a.PlanDue || a.Watch.AnyDead || a.QueueTotal != 3 || a.Now.IsZero() {
			t.Fatalf("reply %+v, want no plan due, no silent server, 3 queues and the time", a)
		}
		r.makeSilent("B")
		r.register("C")
		if a, _ = r.heartbeat("A"); !a.Watch.AnyDead || !a.PlanDue {
			t.Fatalf("reply %+v, want a silent server and a plan due for the new one", a)
		}
	})
	t.Run("S2 the number is unknown if its row is missing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.exec("DELETE FROM schedule_server_version WHERE task_type = '%s'", r.task)
		if p, ok := r.heartbeat("A"); !ok || p.QueueVersion >= 0 || r.read("A").Version >= 0 {
			t.Fatalf("reply %+v, want a number below 0", p)
		}
	})
	t.Run("S2 the row of the number goes with the server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B", "C")
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.makeSilent("C")
		r.rebalanceExpiring("A")
		got := r.readColumn("SELECT uuid FROM schedule_server_version WHERE task_type = '%s' ORDER BY uuid", r.task)
		if !slices.Equal(got, []string{"A"}) {
			t.Fatalf("the numbers of %v, want that of A alone", got)
		}
	})
}

func testHeartbeatChanges(t *testing.T, c *center.Center) {
	t.Run("S2 each change raises the numbers of those that it concerns", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		number := func(name string) int64 {
			t.Helper()
			p, ok := r.heartbeat(name)
			if v := r.read(name); !ok || p.QueueVersion != v.Version {
				t.Fatalf("the reply to %s has the number %d, its view %d", name, p.QueueVersion, v.Version)
			}
			return p.QueueVersion
		}
		rises := func(what string, by func(), raised ...string) {
			t.Helper()
			before := map[string]int64{}
			for name := range r.tokens {
				if _, ok := r.heartbeat(name); ok {
					before[name] = number(name)
				}
			}
			by()
			for name, was := range before {
				if _, ok := r.heartbeat(name); !ok {
					continue
				}
				if got := number(name); got > was != slices.Contains(raised, name) {
					t.Errorf("%s: the number of %s was %d and is %d, want that of %v raised", what, name, was, got, raised)
				}
			}
		}
		server := func(name string) roster.Server { return c.Roster().Server(r.task, r.uuid(name)) }
		r.join("A")
		r.register("B")
		rises("requests", func() { r.rebalance("B") }, "A", "B")
		r.register("C")
		rises("another requester", func() { r.must(server("B").Drain(t.Context(), roster.Reservation{})); r.rebalance("C") }, "A", "B", "C")
		r.must(server("B").Leave(t.Context(), nil, roster.Reservation{}))
		rises("a release, which its server knows", func() { r.release("A", r.handover("1", "C")) }, "C")
		rises("a release, which its server knows", func() { r.release("A", r.handover("3", "C")) }, "C")
		rises("a retake", func() {
			kept, err := server("C").Retake(t.Context(), "1", r.epoch("1"))
			r.must(err)
			if !kept {
				t.Fatal("C did not retake queue 1")
			}
		}, "C")
		rises("an expiry", func() { r.makeSilent("C"); r.rebalanceExpiring("A") }, "A")
		r.wantOwners("A", "A", "A", "A")
		r.join("D")
		rises("a request for another number of queues", func() { r.repartition(8) }, "A", "D")
		rises("another number of queues", func() {
			r.drainAll("A")
			r.drainAll("D")
		}, "A", "D")
		rises("a request that is withdrawn", func() { r.must(server("D").Leave(t.Context(), nil, roster.Reservation{})) }, "A")
	})
	t.Run("S2 an audit finds edits by hand", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		audit := func() {
			t.Helper()
			for _, name := range []string{"A", "B"} {
				v := r.read(name)
				r.send(name, roster.ServerReport{ReadPlanVersion: v.NewestPlan(), ReadSum: v.QueueSum(r.uuid(name))})
			}
		}
		audit()
		before := [2]int64{r.read("A").Version, r.read("B").Version}
		wantRaised := func(want bool) {
			t.Helper()
			r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE task_type = '%s'", r.task)
			_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
			r.must(err)
			for i, name := range []string{"A", "B"} {
				if got := r.read(name).Version; got > before[i] != want {
					t.Errorf("the number of %s was %d and is %d, want it raised: %t", name, before[i], got, want)
				}
			}
		}
		wantRaised(false)
		// The servers swap their queues, which a plan does not mind.
		r.exec("UPDATE schedule_queue SET cur_server = CASE WHEN queue_id = '0' THEN '%s' ELSE '%s' END, epoch = epoch + 1 WHERE task_type = '%s'", r.uuid("B"), r.uuid("A"), r.task)
		wantRaised(true)
	})
}

func testWatchRange(t *testing.T, c *center.Center) {
	t.Run("S2 each server watches the next four, the first behind the last", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		name := func(i int) string { return fmt.Sprintf("s%02d", i) }
		for i := range 70 {
			r.register(name(i))
		}
		r.rebalance(name(0))
		wantSeen := func(dead string, by map[int]bool) {
			t.Helper()
			for i := range by { // the first reply reports the new membership, the second has the servers that follow
				r.heartbeat(name(i))
				r.heartbeat(name(i))
			}
			r.makeSilent(dead)
			for i, want := range by {
				for range 2 {
					if p, ok := r.heartbeat(name(i)); !ok || p.Watch.AnyDead != want {
						t.Errorf("%s is silent and %s got AnyDead %t, want %t", dead, name(i), p.Watch.AnyDead, want)
					}
				}
			}
			r.rebalanceExpiring(name(49))
			if p, _ := r.heartbeat(name(49)); p.Watch.AnyDead {
				t.Errorf("%s has not expired", dead)
			}
		}
		wantSeen(name(50), map[int]bool{0: false, 45: false, 46: true, 49: true, 51: false, 69: false})
		wantSeen(name(2), map[int]bool{0: true, 1: true, 3: false, 67: false, 68: true, 69: true}) // the first follows s69
		wantSeen(name(3), map[int]bool{0: true, 1: true, 4: false, 67: false, 68: true, 69: true}) // s02 has gone
		wantSeen(name(69), map[int]bool{0: false, 64: false, 65: true, 68: true})
	})
	t.Run("S2 a server that joins later is watched too", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		for i := range 40 {
			r.register(fmt.Sprintf("s%02d", i))
		}
		before := []string{"s05", "s39"} // s00 follows s39
		for _, name := range before {
			r.heartbeat(name)
		}
		for _, name := range []string{"s05x", "s99"} {
			r.register(name)
		}
		for _, name := range before { // their replies report the new membership, and then who follows
			r.heartbeat(name)
			r.heartbeat(name)
		}
		r.makeSilent("s05x")
		r.makeSilent("s99")
		for _, name := range before {
			if p, _ := r.heartbeat(name); !p.Watch.AnyDead {
				t.Errorf("%s does not see that a server which joined later is silent", name)
			}
		}
	})
}

func testHeartbeatRow(t *testing.T, c *center.Center) {
	t.Run("S6 a clone with the same uuid gets no reply", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		clone := r.tokens["A"]
		if _, ok := r.heartbeat("A"); !ok {
			t.Fatal("the server got no reply to its heartbeat")
		}
		mine := r.tokens["A"]
		r.tokens["A"] = clone + "clone"
		if _, ok := r.heartbeat("A"); ok {
			t.Fatal("a clone whose token is old got a reply")
		}
		r.tokens["A"] = mine
		if _, ok := r.heartbeat("A"); !ok {
			t.Fatal("the heartbeat of the clone cost the server its row")
		}
	})
	t.Run("S6 a server may repeat a heartbeat whose reply was lost", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		was := r.tokens["A"]
		r.heartbeat("A")
		r.tokens["A"] = was // without the reply, the server sends the same tokens again
		if _, ok := r.heartbeat("A"); !ok {
			t.Fatal("the repeated heartbeat got no reply")
		}
	})
	t.Run("S5 a heartbeat announces another judge_dead_interval", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		want := func(names string, want ...string) {
			t.Helper()
			got := r.readColumn(`SELECT judge_dead_interval_ms FROM schedule_server WHERE task_type = '%s' ORDER BY uuid`, r.task)
			if !slices.Equal(got, want) {
				t.Errorf("%s: the rows say %v, want %v", names, got, want)
			}
		}
		r.register("A")
		r.send("A", roster.ServerReport{JudgeDeadInterval: 90 * time.Second})
		want("A", "90000")
		r.send("A", roster.ServerReport{})
		want("A reports none", "90000")
		r.register("B")
		r.sendAll(roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{
			{UUID: r.uuid("A"), OldToken: r.tokens["A"], State: ops.StateServing},
			{UUID: r.uuid("B"), OldToken: r.tokens["B"], State: ops.StateServing, JudgeDeadInterval: 20 * time.Second},
		}})
		want("A and B", "90000", "20000")
	})
	t.Run("S1 one heartbeat renews several leases, one statement writes statistics", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.register("A")
		r.register("B")
		at := time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)
		r.sendAll(roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{
			{UUID: r.uuid("A"), OldToken: "first", State: ops.StateServing},
			{UUID: r.uuid("B"), OldToken: "first", State: ops.StateStandby},
		}})
		r.must(c.Roster().WriteStatistics(t.Context(),
			roster.Statistics{UUID: sqldb.Key(r.uuid("A")), SuccessCount: 11, ExecuteTime: 3 * time.Second, LastFetch: at},
			roster.Statistics{UUID: sqldb.Key(r.uuid("B")), SuccessCount: 22, LastError: "it's\x00 bro\xffken", LastErrorAt: at, FailingSince: at, FailedCalls: 9}, // the error of a dealer may have any bytes
			roster.Statistics{UUID: "gone", SuccessCount: 33},
		))
		got := r.readColumn(`SELECT CONCAT(state, ' ', success_count, ' ', execute_ms, ' ', last_error, ' ', last_fetch_time IS NULL)
			FROM schedule_server WHERE task_type = '%s' ORDER BY uuid`, r.task)
		for i, s := range got {
			got[i] = map[bool]string{true: s[:len(s)-1] + "f", false: s}[s[len(s)-1] == '0']
			got[i] = map[bool]string{true: s[:len(s)-1] + "t", false: got[i]}[s[len(s)-1] == '1']
		}
		if diff := cmp.Diff([]string{"SERVING 11 3000  f", "STANDBY 22 0 it's bro\uFFFDken t"}, got); diff != "" {
			t.Fatalf("rows of the servers (-want +got):\n%s", diff)
		}
		list, err := ops.New(c).Servers().List(t.Context(), ops.ServerFilter{TaskType: r.task})
		r.must(err)
		if a, b := list[0], list[1]; a.FailingSince != nil || a.FailedCalls != 0 || !b.FailingSince.Equal(at) || b.FailedCalls != 9 {
			t.Errorf("A fails since %v (calls: %d), B since %v (calls: %d), want B since %v (calls: 9)", a.FailingSince, a.FailedCalls, b.FailingSince, b.FailedCalls, at)
		}
		if a, b := list[0], list[1]; a.LastErrorAt != nil || a.LastErrorAge != nil || !b.LastErrorAt.Equal(at) || *b.LastErrorAge != b.Now.Sub(at).Truncate(time.Millisecond).Seconds() {
			t.Errorf("last errors of A %+v and B %+v, want none and one with its age", a, b)
		}
	})
}
