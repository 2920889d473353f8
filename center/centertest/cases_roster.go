package centertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// testDefine checks that the first definition of a task type writes its settings and queues, and no later one does.
func testDefine(t *testing.T, c *center.Center) {
	t.Run("the first definition writes the settings", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, ExecuteNumber: 7, TaskParameter: "p"})
		want := center.Settings{Queues: 3, ExecuteNumber: 7, TaskParameter: "p"}.WithDefaults()
		row, err := c.Tasks().Settings(t.Context(), r.task)
		r.must(err)
		if diff := cmp.Diff(want, row); diff != "" {
			t.Fatalf("settings (-want +got):\n%s", diff)
		}
		r.wantOwners("-", "-", "-")
	})
	t.Run("a later definition changes nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, ThreadNumber: 2})
		given := center.Settings{Queues: 5, ThreadNumber: 2, HeartbeatInterval: time.Second}
		row := r.define(given)
		want := []center.Difference{{Name: "queues", Given: "5", Row: "3"}, {Name: "heartbeat_interval", Given: "1s", Row: "2s"}}
		if diff := cmp.Diff(want, given.DiffersFrom(row)); diff != "" {
			t.Fatalf("differences from the row (-want +got):\n%s", diff)
		}
	})
	t.Run("queues may have names", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"süd", "nord"}})
		row := r.define(center.Settings{QueueNames: []string{"other"}})
		if diff := cmp.Diff([]string{"süd", "nord"}, row.QueueNames); diff != "" {
			t.Fatalf("names of the queues (-want +got):\n%s", diff)
		}
	})
	t.Run("H6 new queues start above the highest epoch ever used", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.exec("DELETE FROM schedule_queue WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_task_running SET queue_total = 0, epoch_high = 41 WHERE task_type = '%s'", r.task)
		r.define(center.Settings{Queues: 1})
		if e := r.epoch("0"); e != 42 {
			t.Fatalf("queue 0 has epoch %d, want 42", e)
		}
	})
	t.Run("errors tell an unknown task type", func(t *testing.T) {
		if _, err := c.Tasks().Settings(t.Context(), "nobody"); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("read the settings: error %v, want ErrUnknownTask", err)
		}
		if _, err := c.Roster().Rebalance(t.Context(), "nobody", roster.RebalanceOptions{}); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("rebalance: error %v, want ErrUnknownTask", err)
		}
	})
}

// testOwnSigns checks that each own_sign has its own queues and servers, and that a new one copies the queues of BASE.
func testOwnSigns(t *testing.T, _ *center.Center, url string) {
	base := newFixture(t, Open(t, url, center.Options{}), center.Settings{QueueNames: []string{"x", "y", "z"}})
	base.join("A")
	base.exec("UPDATE schedule_queue SET queue_parameter = 'p', cursor_value = '17' WHERE task_type = '%s' AND queue_id = 'y'", base.task)
	base.must(base.c.Roster().RemoveQueue(t.Context(), base.task, "z", "test"))
	test := newFixture(t, Open(t, url, center.Options{OwnSign: "TEST"}), center.Settings{Queues: 9})
	row := test.define(center.Settings{Queues: 9})
	test.join("B")
	base.wantOwners("A", "A", "A")
	test.wantOwners("B", "B") // z is being removed
	v, err := test.c.Roster().View(t.Context(), test.task, test.uuid("B"))
	test.must(err)
	if q := v.Queues[1]; q.Parameter != "p" || q.Cursor != "" || q.Index != 1 || len(row.QueueNames) != 2 {
		t.Fatalf("queue %+v with settings %+v, want the parameter p of BASE, no cursor, and 2 queues", q, row)
	}
}

// testConcurrent checks that concurrent definitions and rebalances take effect once (L1).
func testConcurrent(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	task := r.task + "2"
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			if _, err := c.Tasks().Define(t.Context(), task, center.Settings{Queues: 6}); err != nil {
				return err
			}
			uuid := fmt.Sprintf("%s:%d", task, i)
			if _, err := c.Roster().Register(t.Context(), roster.Server{UUID: uuid, TaskType: task, JudgeDeadInterval: time.Minute}); err != nil {
				return err
			}
			_, err := c.Roster().Rebalance(t.Context(), task, roster.RebalanceOptions{Actor: uuid})
			return err
		})
	}
	r.must(g.Wait())
	r.task = task
	if n := r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cur_server IS NOT NULL", task); n != 6 {
		t.Fatalf("%d queues have an owner, want 6: %v", n, r.owners())
	}
	if n := r.readInt("SELECT membership_version - planned_version FROM schedule_task_running WHERE task_type = '%s'", task); n != 0 {
		t.Fatalf("the plan is %d membership versions behind, want 0", n)
	}
}

func testRebalance(t *testing.T, c *center.Center) {
	t.Run("P8 servers join and the oldest hands over", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"1", "2", "3", "4", "5"}})
		r.join("A")
		r.wantOwners("A", "A", "A", "A", "A")
		r.join("B")
		r.wantOwners("A", "A>B", "A", "A>B", "A")
		r.join("C")
		r.wantOwners("A", "A>B", "A>C", "A", "A>B")
		r.join("D")
		r.wantOwners("A", "A>B", "A>C", "A>D", "A")
		r.release("A", r.handover("2", "B"), r.handover("3", "C"), r.handover("4", "D"))
		r.wantOwners("A", "B", "C", "D", "A")
		r.rebalance("A")
		r.wantOwners("A", "B", "C", "D", "A")
		want := []string{center.EventGranted, center.EventRequested, center.EventReleased}
		if diff := cmp.Diff(want, r.eventKinds("2")); diff != "" {
			t.Fatalf("events of queue 2 (-want +got):\n%s", diff)
		}
	})
	t.Run("P7 a server owns at most max_queues_per_server queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, MaxQueuesPerServer: 1})
		r.join("A")
		r.wantOwners("A", "-", "-")
		r.join("B")
		r.wantOwners("A", "B", "-")
	})
	t.Run("P8 a rebalance without a change writes nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		before := r.readInt("SELECT plan_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.rebalance("A")
		_, err := c.Roster().Rebalance(t.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid("A"), Always: true, Watched: time.Hour, MaxHeartbeatAge: time.Minute})
		r.must(err)
		if after := r.readInt("SELECT plan_version FROM schedule_task_running WHERE task_type = '%s'", r.task); after != before {
			t.Fatalf("the rebalance raised the plan version from %d to %d, want no change", before, after)
		}
	})
	t.Run("S4 one server audits, and the audit repairs a hand edit", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.exec("UPDATE schedule_queue SET cur_server = 'typo' WHERE task_type = '%s' AND queue_id = '1'", r.task)
		turn, err := c.Roster().Audit(t.Context(), r.task, r.uuid("A"))
		r.must(err)
		if !turn {
			t.Fatal("the audit is not due, want the first one to run")
		}
		r.wantOwners("A", "B")
		if turn, err := c.Roster().Audit(t.Context(), r.task, r.uuid("B")); err != nil || turn {
			t.Fatalf("an audit is due right after another: %t, want false: %v", turn, err)
		}
	})
	t.Run("the roster works on after its row in schedule_task_type is deleted", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.exec("DELETE FROM schedule_task_type WHERE task_type = '%s'", r.task)
		if p, ok := r.heartbeat("A"); !ok || p.SettingsVersion != -1 {
			t.Fatalf("heartbeat reply %+v, want one with settings version -1; registered: %t", p, ok)
		}
		r.join("B")
		r.wantOwners("A", "A>B")
	})
}

// testStalledTransaction checks that a fenced transaction delays changes of its own queues only.
func testStalledTransaction(t *testing.T, c *center.Center) {
	t.Run("L5 the planner tells the owner which rows its transactions hold", func(t *testing.T) {
		needsRowLocks(t, c)
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A")
		ctx := r.batch("A", "1")
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		r.must(center.Fence(ctx, tx))
		r.join("B")
		r.wantOwners("A", "A", "A", "A>B")
		done, err := c.Roster().Rebalance(t.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid("A")})
		r.must(err)
		if diff := cmp.Diff([]string{"1"}, done.Blocked); diff != "" {
			t.Fatalf("blocked queues (-want +got):\n%s", diff)
		}
		r.must(tx.Commit())
		r.rebalance("A")
		r.wantOwners("A", "A>B", "A", "A>B")
	})
	t.Run("L5 a release skips a queue that a transaction holds", func(t *testing.T) {
		needsRowLocks(t, c)
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		ctx := r.batch("A", "1")
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		r.must(center.Fence(ctx, tx))
		if diff := cmp.Diff([]string{"3"}, r.release("A", r.handover("1", "B"), r.handover("3", "B"))); diff != "" {
			t.Fatalf("released queues (-want +got):\n%s", diff)
		}
		r.must(tx.Commit())
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B", "A", "B")
	})
	t.Run("L5 an expiry leaves out the queue that a transaction holds", func(t *testing.T) {
		needsRowLocks(t, c)
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		ctx := r.batch("A", "1")
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		r.must(center.Fence(ctx, tx))
		r.makeSilent("A")
		r.register("B")
		r.rebalanceExpiring("B")
		r.wantOwners("B", "A", "B")
		r.must(tx.Commit()) // still under the fence: queue 1 kept its owner
		r.rebalance("B")
		r.wantOwners("B", "B", "B")
	})
}

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
		want := []string{center.EventJoined, center.EventJoined, center.EventExpired}
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
		_, err := c.Roster().Rebalance(t.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid("A"), Watched: 9 * time.Second, MaxHeartbeatAge: time.Minute})
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
	t.Run("P5 the plan withdraws the request of an expired requester", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A")
	})
	t.Run("H4 the queues of a draining server are requested, and it gets none", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().Drain(t.Context(), r.task, r.uuid("B")))
		r.rebalance("A")
		r.wantOwners("A", "B>A")
		if p, ok := r.heartbeat("B"); !ok || p.State != center.StateDraining {
			t.Fatalf("heartbeat reply %+v, want state DRAINING; registered: %t", p, ok)
		}
		if err := c.Roster().Drain(t.Context(), r.task, "nobody"); !errors.Is(err, center.ErrGone) {
			t.Fatalf("drain an unknown server: error %v, want ErrGone", err)
		}
	})
}

func testHeartbeatReply(t *testing.T, c *center.Center) {
	t.Run("S2 the reply counts the queues and tells of changes", func(t *testing.T) {
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
		if a.MembershipVersion != a.PlannedVersion || a.AnyDead || a.QueueTotal != 3 || a.Now.IsZero() {
			t.Fatalf("reply %+v, want no plan due, no silent server, 3 queues and the time", a)
		}
		r.makeSilent("B")
		r.register("C")
		if a, _ = r.heartbeat("A"); !a.AnyDead || a.MembershipVersion == a.PlannedVersion {
			t.Fatalf("reply %+v, want a silent server and a plan due for the new one", a)
		}
		v, err := c.Roster().View(t.Context(), r.task, r.uuid("A"))
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
		pulse := func(name string) roster.HeartbeatReply {
			t.Helper()
			p, ok := r.heartbeat(name)
			v, err := c.Roster().View(t.Context(), r.task, r.uuid(name))
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
			before := pulse(name)
			by()
			if after := pulse(name); after.OwnedPlanVersion <= before.OwnedPlanVersion {
				t.Errorf("the reply to %s has plan version %d of its queues after %d, want a higher one", name, after.OwnedPlanVersion, before.OwnedPlanVersion)
			}
		}
		asked := pulse("A")
		rises("A", func() { // another requester, which neither counts nor epochs show
			r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("B"), nil))
			r.join("C")
		})
		if p := pulse("A"); p.Owned != asked.Owned || p.EpochSum != asked.EpochSum || p.Requested != asked.Requested {
			t.Fatalf("reply %+v, want the counts of %+v", p, asked)
		}
		rises("C", func() { r.release("A", r.handover("1", "C")) })
		rises("C", func() { r.release("A", r.handover("3", "C")) })
		a := pulse("A")
		rises("C", func() {
			kept, err := c.Roster().Retake(t.Context(), r.task, r.uuid("C"), "1", r.epoch("1"))
			r.must(err)
			if !kept {
				t.Fatal("C did not retake queue 1")
			}
		})
		if p := pulse("A"); p.OwnedPlanVersion != a.OwnedPlanVersion || p.PlanVersion == a.PlanVersion {
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
	t.Run("S2 each server watches the next 32, the first behind the last", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		name := func(i int) string { return fmt.Sprintf("s%02d", i) }
		for i := range 70 {
			r.register(name(i))
		}
		r.rebalance(name(0))
		wantSeen := func(dead string, by map[int]bool) {
			t.Helper()
			for i := range by { // the first reply tells of the new membership, the second has the ends of the range
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
		wantSeen(name(50), map[int]bool{0: false, 17: false, 18: true, 49: true, 51: false, 69: false})
		wantSeen(name(31), map[int]bool{0: true, 30: true, 32: false, 36: false, 37: true, 69: true}) // fewer than 32 servers follow s37
		wantSeen(name(33), map[int]bool{0: true, 32: true, 34: false, 69: false})                     // without s31 it is the 32nd server after s00
		wantSeen(name(69), map[int]bool{0: false, 35: false, 36: true, 68: true})
	})
	t.Run("S2 a server that joins later is watched too", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		for i := range 40 {
			r.register(fmt.Sprintf("s%02d", i))
		}
		before := []string{"s05", "s39"} // the range of s05 ends at s37, that of s39 starts again at s00
		for _, name := range before {
			r.heartbeat(name)
		}
		for _, name := range []string{"s05x", "s99"} {
			r.register(name)
			r.makeSilent(name)
		}
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
	t.Run("S1 one heartbeat writes the reports of several servers", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.register("A")
		r.register("B")
		at := time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)
		_, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{OldTokens: []string{"first"}, Token: "x", Servers: []roster.ServerReport{
			{UUID: r.uuid("A"), State: center.StateServing, SuccessCount: 11, ExecuteTime: 3 * time.Second, LastFetch: at},
			{UUID: r.uuid("B"), State: center.StateStandby, SuccessCount: 22, LastError: "it's\x00 bro\xffken", LastErrorAt: at}, // the error of a dealer may have any bytes
		}})
		r.must(err)
		got := r.readColumn(`SELECT CONCAT(state, ' ', success_count, ' ', execute_ms, ' ', last_error, ' ', last_fetch_time IS NULL)
			FROM schedule_server WHERE task_type = '%s' ORDER BY uuid`, r.task)
		for i, s := range got {
			got[i] = map[bool]string{true: s[:len(s)-1] + "f", false: s}[s[len(s)-1] == '0']
			got[i] = map[bool]string{true: s[:len(s)-1] + "t", false: got[i]}[s[len(s)-1] == '1']
		}
		if diff := cmp.Diff([]string{"SERVING 11 3000  f", "STANDBY 22 0 it's bro\uFFFDken t"}, got); diff != "" {
			t.Fatalf("rows of the servers (-want +got):\n%s", diff)
		}
		list, err := c.Servers().List(t.Context(), center.ServerFilter{TaskType: r.task})
		r.must(err)
		if a, b := list[0], list[1]; a.LastErrorAt != nil || a.LastErrorAge != nil || !b.LastErrorAt.Equal(at) || *b.LastErrorAge != b.Now.Sub(at).Truncate(time.Millisecond).Seconds() {
			t.Errorf("last errors of A %+v and B %+v, want none and one with its age", a, b)
		}
	})
}

func testRelease(t *testing.T, c *center.Center) {
	t.Run("H2 L6 the requester becomes the owner", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B")
	})
	// Each change breaks one condition of the release.
	change := map[string]func(r *fixture, h *roster.Handover){
		"another epoch":     func(_ *fixture, h *roster.Handover) { h.Epoch++ },
		"another requester": func(r *fixture, h *roster.Handover) { h.Requester = r.uuid("A") },
		"the requester is gone": func(r *fixture, _ *roster.Handover) {
			r.exec("DELETE FROM schedule_server WHERE uuid = '%s'", r.uuid("B"))
		},
		"the requester drains": func(r *fixture, _ *roster.Handover) { r.must(c.Roster().Drain(r.Context(), r.task, r.uuid("B"))) },
		"the request is withdrawn": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_queue SET req_server = NULL WHERE task_type = '%s'", r.task)
		},
		"another owner": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_queue SET cur_server = 'x' WHERE task_type = '%s'", r.task)
		},
	}
	for name, f := range change {
		t.Run("H2 no release: "+name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 2})
			r.join("A", "B")
			h := r.handover("1", "B")
			epoch := h.Epoch
			f(r, &h)
			if released := r.release("A", h); len(released) > 0 {
				t.Fatalf("released queues %v, want none", released)
			}
			if got := r.epoch("1"); got != epoch {
				t.Fatalf("queue 1 has epoch %d, want %d", got, epoch)
			}
		})
	}
	t.Run("H2 S1 a release does not wait for a heartbeat of the requester", func(t *testing.T) {
		needsRowLocks(t, c)
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		h := r.handover("1", "B")
		heartbeat, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer heartbeat.Rollback()
		_, err = heartbeat.ExecContext(t.Context(), "UPDATE schedule_server SET beat_count = beat_count + 1 WHERE uuid = '"+r.uuid("B")+"'")
		r.must(err)
		if released := r.release("A", h); len(released) != 1 {
			t.Fatalf("released queues %v, want queue 1", released)
		}
	})
	t.Run("H2 a release of several queues tells the requester", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		before, _ := r.heartbeat("B")
		epoch := r.epoch("1")
		got := r.release("A", r.handover("3", "B"), r.handover("1", "B"))
		if diff := cmp.Diff([]string{"1", "3"}, got); diff != "" {
			t.Fatalf("released queues (-want +got):\n%s", diff)
		}
		r.wantOwners("A", "B", "A", "B")
		after, _ := r.heartbeat("B")
		if after.PlanVersion <= before.PlanVersion || r.epoch("1") != epoch+1 {
			t.Fatalf("the plan version went from %d to %d, want a rise; the epoch from %d to %d, want one more", before.PlanVersion, after.PlanVersion, epoch, r.epoch("1"))
		}
	})
}

func testRetake(t *testing.T, c *center.Center) {
	t.Run("H3 an owner retakes a queue under a new epoch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		epoch := r.epoch("0")
		kept, err := c.Roster().Retake(t.Context(), r.task, r.uuid("A"), "0", epoch)
		r.must(err)
		if !kept || r.epoch("0") != epoch+1 {
			t.Fatalf("retaken: %t, epoch %d, want true and %d", kept, r.epoch("0"), epoch+1)
		}
		if kept, err = c.Roster().Retake(t.Context(), r.task, r.uuid("A"), "0", epoch); err != nil || kept {
			t.Fatalf("retaken under an old epoch: %t, want false: %v", kept, err)
		}
	})
}

func testLeave(t *testing.T, c *center.Center) {
	t.Run("H4 the others own the queues after a server has left", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		r.join("C")
		r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("A"), nil))
		owners := r.owners()
		if slices.Contains(owners, "A") || slices.Contains(owners, "-") {
			t.Fatalf("owners of the queues %v, want B or C for each", owners)
		}
		r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("C"), nil))
		r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("C"), nil)) // a server may leave twice
		r.wantOwners("B", "B", "B", "B")
		if diff := cmp.Diff([]string{"LEFT", "LEFT"}, r.readColumn("SELECT reason FROM schedule_server_history WHERE task_type = '%s' ORDER BY left_time", r.task)); diff != "" {
			t.Fatalf("reasons in the history (-want +got):\n%s", diff)
		}
		if got := r.eventKinds("0"); got[len(got)-1] == center.EventTakenOver {
			t.Fatalf("events of queue 0 are %v, want no TAKEN_OVER after an orderly hand-over", got)
		}
	})
	for _, queues := range []int{1, 2} { // a change of one queue has a statement of its own
		t.Run(fmt.Sprintf("H4 H6 the last server leaves its queues without an owner, queues=%d", queues), func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: queues})
			r.join("A")
			epoch := r.epoch("0")
			r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("A"), nil))
			r.wantOwners(slices.Repeat([]string{"-"}, queues)...)
			if got := r.epoch("0"); got != epoch+1 {
				t.Fatalf("queue 0 has epoch %d, want %d", got, epoch+1)
			}
		})
	}
	t.Run("H5 a leaving server hands over by force what is in flight", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("A"), []string{"0"}))
		r.wantOwners("B", "B")
		if got := r.eventKinds("0"); got[len(got)-1] != center.EventForced {
			t.Fatalf("events of queue 0 are %v, want FORCED as the last", got)
		}
	})
}
