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
	t.Run("S2 the reply counts the queues and reports changes", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		a, _ := r.heartbeat("A")
		b, _ := r.heartbeat("B")
		if a.Owned != 3 || a.Requested != 1 || a.Incoming != 0 || b.Owned != 0 || b.Incoming != 1 {
			t.Fatalf("replies to A %+v and B %+v, want A to own 3 and be asked for 1, which B waits for", a, b)
		}
		if want := r.epoch("0") + r.epoch("1") + r.epoch("2"); a.EpochSum != want {
			t.Fatalf("sum of epochs %d, want %d", a.EpochSum, want)
		}
		if a.PlanDue || a.AnyDead || a.QueueTotal != 3 || a.Now.IsZero() {
			t.Fatalf("reply %+v, want no plan due, no silent server, 3 queues and the time", a)
		}
		r.makeSilent("B")
		r.register("C")
		if a, _ = r.heartbeat("A"); !a.AnyDead || !a.PlanDue {
			t.Fatalf("reply %+v, want a silent server and a plan due for the new one", a)
		}
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		if len(v.Queues) != 3 || v.PlanVersion != a.PlanVersion || v.QueueTotal != 3 {
			t.Fatalf("view %+v, want 3 queues at plan version %d", v, a.PlanVersion)
		}
	})
}

func testHeartbeatChanges(t *testing.T, c *center.Center) {
	t.Run("S2 the reply reports changes of own queues only", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B") // B requests queues 1 and 3 of A
		reply := func(name string) roster.HeartbeatReply {
			t.Helper()
			p, ok := r.heartbeat(name)
			v, err := c.Roster().Server(r.task, r.uuid(name)).View(t.Context())
			r.must(err)
			newest := int64(0)
			for _, q := range v.Queues {
				if q.Owner == r.uuid(name) {
					newest = max(newest, q.PlanVersion)
				}
			}
			if !ok || p.OwnedPlanVersion != newest || p.OwnedPlanVersion > p.PlanVersion {
				t.Fatalf("the reply to %s has plan version %d of its queues and %d of the roster, the view has %d", name, p.OwnedPlanVersion, p.PlanVersion, newest)
			}
			return p
		}
		rises := func(name string, by func()) {
			t.Helper()
			before := reply(name)
			by()
			if after := reply(name); after.OwnedPlanVersion <= before.OwnedPlanVersion {
				t.Errorf("the reply to %s has plan version %d of its queues after %d, want a higher one", name, after.OwnedPlanVersion, before.OwnedPlanVersion)
			}
		}
		asked := reply("A")
		rises("A", func() { // another requester, which neither counts nor epochs show
			r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
			r.join("C")
		})
		if p := reply("A"); p.Owned != asked.Owned || p.EpochSum != asked.EpochSum || p.Requested != asked.Requested {
			t.Fatalf("reply %+v, want the counts of %+v", p, asked)
		}
		rises("C", func() { r.release("A", r.handover("1", "C")) })
		rises("C", func() { r.release("A", r.handover("3", "C")) })
		a := reply("A")
		rises("C", func() {
			kept, err := c.Roster().Server(r.task, r.uuid("C")).Retake(t.Context(), "1", r.epoch("1"))
			r.must(err)
			if !kept {
				t.Fatal("C did not retake queue 1")
			}
		})
		if p := reply("A"); p.OwnedPlanVersion != a.OwnedPlanVersion || p.PlanVersion == a.PlanVersion {
			t.Errorf("a change of a queue of C: A got plan version %d of its own queues, want %d, and %d of the roster, want another than %d",
				p.OwnedPlanVersion, a.OwnedPlanVersion, p.PlanVersion, a.PlanVersion)
		}
		rises("A", func() { // several queues at once
			r.makeSilent("C")
			r.rebalanceExpiring("A")
		})
		r.wantOwners("A", "A", "A", "A")
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
					if p, ok := r.heartbeat(name(i)); !ok || p.AnyDead != want {
						t.Errorf("%s is silent and %s got AnyDead %t, want %t", dead, name(i), p.AnyDead, want)
					}
				}
			}
			r.rebalanceExpiring(name(49))
			if p, _ := r.heartbeat(name(49)); p.AnyDead {
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
			if p, _ := r.heartbeat(name); !p.AnyDead {
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
