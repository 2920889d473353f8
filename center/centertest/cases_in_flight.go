package centertest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

func testInFlight(t *testing.T, c *center.Center) {
	t.Run("P10 a share rises when another server has lowered its own", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 3})
		r.join("A")
		r.wantShares("A 3/3")
		r.join("B")
		r.wantShares("A 3/2", "B 0/1")
		a, _ := r.heartbeat("A")
		if b, _ := r.heartbeat("B"); b.Share.Due || b.Share.Granted != 0 || b.Share.Target != 1 {
			t.Errorf("reply to B %+v, want that it waits for A", b)
		}
		r.raiseShares("B")
		r.wantShares("A 3/2", "B 0/1")
		if a = r.lower("A", 3, a.Share.Version); a.Share.Granted != 3 {
			t.Errorf("share %+v after a heartbeat that lowers nothing", a.Share)
		}
		if a = r.lower("A", 2, a.Share.Version); a.Share.Granted != 2 || a.Share.Due || a.PlanDue {
			t.Errorf("reply to A %+v, want that A has lowered its share to 2 and no more", a)
		}
		b, _ := r.heartbeat("B")
		if !b.Share.Due || b.PlanDue {
			t.Errorf("reply to B %+v, want that a call is free", b)
		}
		r.raiseShares("B")
		r.wantShares("A 2/2", "B 1/1")
		if b, _ = r.heartbeat("B"); b.Share.Due {
			t.Errorf("reply to B %+v, want no call that is free", b)
		}
	})
	t.Run("P10 a heartbeat that arrives after a plan lowers nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 3})
		r.join("A", "B")
		a, _ := r.heartbeat("A")
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantShares("A 3/3")
		if late := r.lower("A", 2, a.Share.Version); late.Share.Granted != 3 || late.Share.Version <= a.Share.Version {
			t.Errorf("share %+v after a heartbeat of version %d, want the 3 calls that the plan has granted", late.Share, a.Share.Version)
		}
	})
	t.Run("P10 an expired server and one that leaves free their calls", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 3})
		r.join("A", "B")
		a, _ := r.heartbeat("A")
		r.lower("A", 2, a.Share.Version)
		r.raiseShares("B")
		r.makeSilent("A")
		r.heartbeat("B")
		r.wantShares("A 2/2", "B 1/1") // a silent server counts until it has expired
		r.rebalanceExpiring("B")
		r.wantShares("B 3/3")
	})
	t.Run("P10 calls of a server that is drained by force count", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 3})
		r.join("A", "B")
		_, err := c.Roster().Operator("test").DrainServer(t.Context(), r.uuid("A"), true)
		r.must(err)
		r.wantOwners("B", "B", "B", "B")
		r.wantShares("A 3/0", "B 0/3")
		a, _ := r.heartbeat("A")
		r.lower("A", 1, a.Share.Version)
		r.raiseShares("B")
		r.wantShares("A 1/0", "B 2/3")
	})
}

func testInFlightServers(t *testing.T, c *center.Center) {
	t.Run("P10 with fewer calls than servers, the others stand by", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 1})
		r.join("A", "B")
		r.wantOwners("A", "A", "A", "A")
		r.wantShares("A 1/1", "B 0/0")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		r.wantOwners("B", "B", "B", "B")
		r.wantShares("B 1/1")
	})
	t.Run("P10 a preview says that max_in_flight moves a queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.exec("UPDATE schedule_task_type SET max_in_flight = 1 WHERE task_type = '%s'", r.task)
		moves := r.preview(ops.Scenario{})
		if diff := cmp.Diff([]string{"1 B>A its owner stands by (max_in_flight: 1)"}, moves); diff != "" {
			t.Errorf("moves (-want +got):\n%s", diff)
		}
	})
	t.Run("P10 a heartbeat lowers the share of one server of its process", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1, MaxInFlight: 5})
		free, other := r.sibling("free"), r.sibling("other")
		free.define(center.Settings{Queues: 1})
		other.define(center.Settings{Queues: 1, MaxInFlight: 4})
		for _, f := range []*fixture{r, free, other} {
			f.join("A")
		}
		r.exec("UPDATE schedule_server SET max_in_flight_target = 1, max_in_flight_version = 7 WHERE uuid = '%s'", r.uuid("A"))
		b := roster.Heartbeat{Token: "second"}
		for _, f := range []*fixture{r, free, other} {
			b.Servers = append(b.Servers, roster.ServerReport{UUID: f.uuid("A"), OldToken: f.tokens["A"], TaskType: f.task, State: ops.StateServing})
		}
		b.Servers[0].Lowering = roster.InFlightLowering{To: 1, Version: 7}
		_, err := c.Roster().SendHeartbeat(t.Context(), b)
		r.must(err)
		r.wantShares("A 1/1")
		free.wantShares("A -/-")
		other.wantShares("A 4/4")
	})
	t.Run("P10 an audit repairs shares", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, MaxInFlight: 3})
		r.join("A")
		for _, broken := range []string{"max_in_flight = 0", "max_in_flight_target = 1", "max_in_flight = NULL, max_in_flight_target = NULL"} {
			r.exec("UPDATE schedule_server SET %s WHERE uuid = '%s'", broken, r.uuid("A"))
			r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE task_type = '%s'", r.task)
			_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
			r.must(err)
			a, _ := r.heartbeat("A")
			r.lower("A", 3, a.Share.Version)
			r.wantShares("A 3/3")
		}
	})
}

func testInFlightSetting(t *testing.T, c *center.Center) {
	t.Run("P10 a new limit is in force when all shares are lowered", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.wantShares("A -/-", "B -/-")
		r.limit("A", 3)
		r.wantShares("A -/2", "B -/1")
		r.join("C")
		r.wantShares("A -/1", "B -/1", "C 0/1")
		for _, name := range []string{"A", "B"} {
			p, _ := r.heartbeat(name)
			r.lower(name, 1, p.Share.Version)
		}
		r.raiseShares("C")
		r.wantShares("A 1/1", "B 1/1", "C 1/1")
		r.limit("A", 0)
		r.wantShares("A -/-", "B -/-", "C -/-")
	})
}

func testInFlightSeen(t *testing.T, c *center.Center) {
	t.Run("P10 a limit that is not in force is seen", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, MaxQueuesPerServer: 1})
		r.join("A", "B")
		granted := func() string {
			t.Helper()
			tasks, err := ops.New(c).Tasks().List(t.Context(), r.task)
			r.must(err)
			return callsText(tasks[0].GrantedCalls)
		}
		r.release("A", r.handover("1", "B"))
		if got := granted(); got != "-" {
			t.Errorf("%s calls are granted, want no limit", got)
		}
		r.limit("A", 1)
		a, _ := r.heartbeat("A")
		b, _ := r.heartbeat("B")
		r.lower("A", 1, a.Share.Version)
		if got := granted(); got != "-" {
			t.Errorf("%s calls are granted, want no limit while B has none", got)
		}
		r.lower("B", 2, b.Share.Version)
		if got := granted(); got != "3" {
			t.Errorf("%s calls are granted, want 3", got)
		}
		r.wantShares("A 1/1", "B 2/0")
		want := []string{"PROBLEM B owns 1 queue and gets no call of max_in_flight, and no other worker may take the queues"}
		if diff := cmp.Diff(want, r.findings("queues")); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
	})
}

// callsText is a number of calls; "-" is no limit.
func callsText(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// limit changes max_in_flight and rebalances.
func (r *fixture) limit(name string, most int) {
	r.Helper()
	s, err := ops.New(r.c).Tasks().Settings(r.Context(), r.task)
	r.must(err)
	s.MaxInFlight = most
	diff, err := ops.New(r.c).Tasks().Compare(r.Context(), r.task, s)
	r.must(err)
	r.must(ops.New(r.c).Tasks().Apply(r.Context(), diff, "test"))
	r.rebalance(name)
}

// wantShares checks how many calls each server may have in flight, and is to have: "A 3/2". "-" is no limit.
func (r serverSteps) wantShares(want ...string) {
	r.Helper()
	servers, err := ops.New(r.c).Servers().List(r.Context(), ops.ServerFilter{TaskType: r.task})
	r.must(err)
	var got []string
	for _, s := range servers {
		got = append(got, fmt.Sprintf("%s %s/%s", r.short(s.UUID), callsText(s.MaxInFlight), callsText(s.MaxInFlightTarget)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("shares (-want +got):\n%s", diff)
	}
}

// lower sends a heartbeat that lowers the share of a server, if it has that version.
func (r serverSteps) lower(name string, to int, version int64) roster.HeartbeatReply {
	r.Helper()
	return r.send(name, roster.ServerReport{Lowering: roster.InFlightLowering{To: to, Version: version}})
}

// raiseShares grants calls as a server that has learned that they are free.
func (r serverSteps) raiseShares(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).RaiseShares(r.Context())
	r.must(err)
}
