package centertest

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// soon is the reservation of a server that returns within the hour.
var soon = roster.Reservation{Name: "web-0", Within: time.Hour}

// newNamedPair returns a roster in which A, whose name is web-0, owns queues 0 and 2, and B owns 1 and 3.
func newNamedPair(t *testing.T, c *center.Center, s center.Settings) *fixture {
	t.Helper()
	s.Queues = 4
	r := newFixture(t, c, s)
	r.join("A", "B")
	r.release("A", r.handover("1", "B"), r.handover("3", "B"))
	r.name("A", "web-0")
	return r
}

// name writes the name of a server.
func (r serverSteps) name(server, name string) {
	r.Helper()
	r.exec("UPDATE schedule_server SET name = '%s' WHERE uuid = '%s'", name, r.uuid(server))
}

// leaveFor makes a server announce that it leaves, leave, and reserve its queues.
func (r serverSteps) leaveFor(server string, reserve roster.Reservation) {
	r.Helper()
	r.must(r.c.Roster().Server(r.task, r.uuid(server)).Drain(r.Context(), reserve))
	r.must(r.c.Roster().Server(r.task, r.uuid(server)).Leave(r.Context(), nil, reserve))
}

// statuses returns the states of the queues, by their ids.
func (r *taskType) statuses() []string {
	r.Helper()
	return r.readColumn("SELECT status FROM schedule_assignment WHERE task_type = '%s' ORDER BY queue_id", r.task)
}

// testReserved checks that the queues of a server that leaves for a while wait for its name.
func testReserved(t *testing.T, c *center.Center) {
	t.Run("P13 the same name gets its queues back, and no queue moves", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		epoch := r.epoch("0")
		r.leaveFor("A", soon)
		r.wantOwners("-", "B", "-", "B")
		if got := r.statuses(); !slices.Equal(got, []string{"RESERVED", "HELD", "RESERVED", "HELD"}) {
			t.Errorf("statuses %v", got)
		}
		if after := r.epoch("0"); after != epoch+1 {
			t.Errorf("the epoch went from %d to %d, want one more", epoch, after)
		}
		r.rebalance("B")
		r.rebalanceAlways("B")
		r.wantOwners("-", "B", "-", "B")
		r.register("A2")
		r.name("A2", "web-0")
		r.rebalance("A2")
		r.wantOwners("A2", "B", "A2", "B")
		if after := r.epoch("0"); after != epoch+2 {
			t.Errorf("the epoch went from %d to %d, want two more", epoch, after)
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND reserved_for IS NOT NULL", r.task); n != 0 {
			t.Errorf("%d queues are still reserved", n)
		}
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventReserved}, 10)
		r.must(err)
		if len(events) != 2 || events[0].Reason != "for web-0, for 1h0m0s" {
			t.Errorf("events %+v", events)
		}
	})
	t.Run("P13 the pin of a queue holds for the server that returns", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "0", "host=elsewhere"))
		r.register("A2")
		r.name("A2", "web-0")
		r.rebalance("A2")
		r.wantOwners("-", "B", "A2", "B")
	})
	t.Run("P13 of two live servers of the name none gets the queues back", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		for _, server := range []string{"C", "D"} {
			r.register(server)
			r.name(server, "web-0")
		}
		r.rebalance("B")
		if r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cur_server IS NULL", r.task) != 0 {
			t.Error("queues have no owner, and two servers have the name")
		}
		if n := r.readInt("SELECT COUNT(DISTINCT cur_server) FROM schedule_queue WHERE task_type = '%s' AND queue_id IN ('0', '2')", r.task); n != 2 {
			t.Errorf("both queues went to the same server, and two have the name")
		}
		r.leaveFor("C", soon)
		if n := r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cur_server IS NULL", r.task); n != 0 {
			t.Errorf("%d queues have no owner, and a live server has the name", n)
		}
	})
	t.Run("P13 the absent server keeps its place among max_servers", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{MaxServers: 2})
		r.register("C")
		r.rebalance("C")
		r.wantOwners("A", "B", "A", "B")
		r.leaveFor("A", soon)
		r.rebalance("C")
		r.wantOwners("-", "B", "-", "B")
	})
}

// testReservationsEnd checks what ends reservations early, and that no wrong time keeps them.
func testReservationsEnd(t *testing.T, c *center.Center) {
	t.Run("P13 others get the queues when the time is over", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		if reply, _ := r.heartbeat("B"); reply.PlanDue {
			t.Error("a plan is due while the queues are reserved")
		}
		r.exec("UPDATE schedule_queue SET reserved_until = gmt_created WHERE task_type = '%s' AND reserved_for IS NOT NULL", r.task)
		r.exec("UPDATE schedule_task_running SET reserved_until = (SELECT MIN(gmt_created) FROM schedule_queue WHERE task_type = '%s') WHERE task_type = '%s'", r.task, r.task)
		if got := r.statuses(); !slices.Equal(got, []string{"UNASSIGNED", "HELD", "UNASSIGNED", "HELD"}) {
			t.Errorf("statuses %v", got)
		}
		if reply, _ := r.heartbeat("B"); !reply.PlanDue {
			t.Error("no plan is due although the time is over")
		}
		r.rebalance("B")
		r.wantOwners("B", "B", "B", "B")
		if n := r.readInt("SELECT COUNT(*) FROM schedule_task_running WHERE task_type = '%s' AND reserved_until IS NOT NULL", r.task); n != 0 {
			t.Error("the lock row still says that a reservation ends")
		}
	})
	t.Run("P13 a time that is further away than any reservation does not count", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		r.exec("UPDATE schedule_queue SET reserved_until = '2126-01-01 00:00:00.000000' WHERE task_type = '%s' AND reserved_for IS NOT NULL", r.task)
		r.rebalanceAlways("B")
		r.wantOwners("B", "B", "B", "B")
	})
	t.Run("P13 the audit ends a reservation until a time that no server writes", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		r.exec("UPDATE schedule_queue SET reserved_until = '2126-01-01 00:00:00.000000' WHERE task_type = '%s' AND reserved_for IS NOT NULL", r.task)
		r.exec("UPDATE schedule_task_running SET reserved_until = '2126-01-01 00:00:00.000000', audited_at = NULL WHERE task_type = '%s'", r.task)
		r.wantFound("reserved_until (2126")
		if reply, _ := r.heartbeat("B"); !reply.PlanDue {
			t.Error("no plan is due")
		}
		_, err := c.Roster().Planner(r.task, r.uuid("B")).Audit(t.Context())
		r.must(err)
		r.rebalance("B")
		r.wantOwners("B", "B", "B", "B")
		if got := r.findings("values"); len(got) > 0 {
			t.Errorf("after the audit the doctor finds %v", got)
		}
	})
	t.Run("P13 a pause ends the reservations that the lock row does not know of", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.leaveFor("A", soon)
		r.exec("UPDATE schedule_task_running SET reserved_until = NULL WHERE task_type = '%s'", r.task)
		r.must(c.Roster().Operator("ann").Pause(t.Context(), r.task, true))
		r.rebalance("B")
		r.wantOwners("B", "B", "B", "B")
	})
	for name, o := range map[string]struct {
		end    func(*fixture) error
		queues int // afterwards
	}{
		"a pause":                  {func(r *fixture) error { return c.Roster().Operator("ann").Pause(t.Context(), r.task, true) }, 4},
		"another number of queues": {func(r *fixture) error { return c.Roster().Operator("ann").Repartition(t.Context(), r.task, 6, 0) }, 6},
	} {
		want := slices.Repeat([]string{"B"}, o.queues)
		t.Run("P13 "+name+" ends the reservations", func(t *testing.T) {
			r := newNamedPair(t, c, center.Settings{})
			r.leaveFor("A", soon)
			r.must(o.end(r))
			r.drainAll("B")
			r.rebalance("B")
			r.wantOwners(want...)
		})
		t.Run("P13 a server reserves nothing during "+name, func(t *testing.T) {
			r := newNamedPair(t, c, center.Settings{})
			r.must(o.end(r))
			r.leaveFor("A", soon)
			r.drainAll("B")
			r.rebalance("B")
			r.wantOwners(want...)
		})
	}
	for name, o := range map[string]struct {
		queue string
		total int
		want  []string
	}{
		"a merge": {"0", 1, []string{"0/1 B"}},
		"a split": {"0", 8, []string{"0/8 B", "1/4 B", "2/4 -", "3/4 B", "4/8 B"}},
	} {
		end := func(r *fixture) {
			r.Helper()
			for range 2 {
				for _, q := range r.changing("B") {
					r.finishChange("B", q)
				}
			}
			r.rebalance("B")
			r.wantTotals(o.want...)
		}
		t.Run("P13 N3 "+name+" ends the reservations of its queues", func(t *testing.T) {
			r := newNamedPair(t, c, splittable)
			r.leaveFor("A", soon)
			r.resize(o.queue, o.total)
			end(r)
		})
		t.Run("P13 N3 "+name+" that waits ends the reservations of its queues", func(t *testing.T) {
			r := newNamedPair(t, c, splittable)
			r.resize(o.queue, o.total)
			r.leaveFor("A", soon)
			end(r)
		})
	}
}

// testNothingToReserve checks which queues are not reserved when their owner leaves.
func testNothingToReserve(t *testing.T, c *center.Center) {
	t.Run("P13 a server that an operator has paused reserves nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.must(c.Roster().Operator("ann").PauseServer(t.Context(), r.uuid("A"), true))
		r.wantOwners("A") // there is no other server that could request it
		r.leaveFor("A", soon)
		if got := r.statuses(); !slices.Equal(got, []string{"UNASSIGNED"}) {
			t.Errorf("statuses %v", got)
		}
	})
	t.Run("P13 a queue that another server has requested is not reserved", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.name("A", "web-0")
		r.wantOwners("A", "A>B")
		r.leaveFor("A", soon)
		r.wantOwners("-", "B")
	})
	t.Run("P13 a server whose leaving was not announced reserves nothing", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, soon))
		r.wantOwners("B", "B", "B", "B")
	})
}

// testLeavingServers checks the queues of a server between the start of its leaving and its end.
func testLeavingServers(t *testing.T, c *center.Center) {
	t.Run("P13 a leaving server gets no queue and keeps its own", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 6})
		r.join("A", "B", "C")
		for _, to := range []string{"B", "C", "B", "C"} {
			for _, from := range []string{"A", "B"} {
				for _, id := range r.requestedBy(to) {
					r.release(from, r.handover(id, to))
				}
			}
		}
		r.rebalanceAlways("A")
		r.wantOwners("A", "B", "C", "A", "B", "C")
		r.name("A", "web-0")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Drain(t.Context(), soon))
		r.makeSilent("C")
		r.rebalanceExpiring("B")
		r.wantOwners("A", "B", "B", "A", "B", "B")
		if reply, _ := r.heartbeat("A"); reply.State != ops.StateLeaving {
			t.Errorf("after its heartbeat the server is %s", reply.State)
		}
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, soon))
		r.rebalanceAlways("B")
		r.wantOwners("-", "B", "B", "-", "B", "B")
	})
	t.Run("P13 the queues of a server that dies while it leaves are not reserved", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.must(c.Roster().Server(r.task, r.uuid("A")).Drain(t.Context(), soon))
		r.wantOwners("A", "B", "A", "B")
		r.makeSilent("A")
		r.rebalanceExpiring("B")
		r.wantOwners("B", "B", "B", "B")
	})
	t.Run("P13 a pause of a leaving server ends its reservation", func(t *testing.T) {
		r := newNamedPair(t, c, center.Settings{})
		r.must(c.Roster().Server(r.task, r.uuid("A")).Drain(t.Context(), soon))
		r.must(c.Roster().Operator("ann").PauseServer(t.Context(), r.uuid("A"), true))
		r.wantOwners("A>B", "B", "A>B", "B")
	})
}
