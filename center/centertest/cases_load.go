package centertest

import (
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

func testLoad(t *testing.T, c *center.Center) {
	t.Run("P16 a preview moves nothing", func(t *testing.T) { testLoadPreview(t, c) })
	t.Run("P16 the load is even within the budget", func(t *testing.T) { testLoadBalance(t, c) })
	t.Run("P16 a server that joins gets the queues whose rows were locked, too", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 8, Balance: center.BalanceLoad, LoadMovesPerHour: 1})
		r.join("A")
		r.register("B")
		stalled := []*sql.Tx{r.fence("A", "0"), r.fence("A", "2")}
		r.rebalance("B")
		if got := r.requestedBy("B"); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("B requests %v, want the queues whose rows are free", got)
		}
		for _, tx := range stalled {
			r.must(tx.Rollback())
		}
		r.rebalanceSkipped("A")
		if got := r.requestedBy("B"); len(got) != 4 {
			t.Errorf("B requests %v, want half of the queues", got)
		}
	})
	t.Run("P16 after the clock was set back no server is new, and the budget is not refunded", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 8, Balance: center.BalanceLoad, LoadMovesPerHour: 1})
		r.join("A", "B")
		for _, id := range r.requestedBy("B") {
			r.release("A", r.handover(id, "B"))
		}
		r.exec("UPDATE schedule_server SET register_time = '2999-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_task_running SET load_moves_until = '2999-01-01 00:00:00.000000', audited_at = NULL WHERE task_type = '%s'", r.task)
		for _, q := range r.records() {
			load := 1.0
			if *q.CurServer == r.uuid("A") {
				load = 1.5 // a fifth more than its part
			}
			r.measure(q.QueueID, q.Epoch, &load)
		}
		r.rebalanceAlways("A")
		if got := r.requestedBy("B"); len(got) > 0 {
			t.Errorf("B requests %v as if it were new", got)
		}
		for _, q := range r.records() {
			if *q.CurServer == r.uuid("A") {
				r.measure(q.QueueID, q.Epoch, new(9.0))
			}
		}
		r.rebalanceAlways("A")
		if got := r.requestedBy("B"); len(got) > 0 {
			t.Errorf("B requests %v, and the budget is used up", got)
		}
		r.wantFound("load_moves_until (2999")
		_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
		r.must(err)
		if got := r.findings("values"); len(got) > 0 {
			t.Errorf("after the audit the doctor finds %v", got)
		}
	})
	t.Run("P16 a server that returns under its name is not new", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 8, Balance: center.BalanceLoad, LoadMovesPerHour: 1})
		named := func(server string) {
			r.exec("UPDATE schedule_server SET name = 'web-0' WHERE uuid = '%s'", r.uuid(server))
		}
		r.join("A", "B")
		for _, id := range r.requestedBy("B") {
			r.release("A", r.handover(id, "B"))
		}
		named("B")
		for _, q := range r.records() {
			load := 1.0
			if *q.CurServer == r.uuid("A") {
				load = 1.5
			}
			r.measure(q.QueueID, q.Epoch, &load)
		}
		back := roster.Reservation{Name: "web-0", Within: time.Hour}
		r.must(c.Roster().Server(r.task, r.uuid("B")).Drain(t.Context(), back))
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, back))
		r.register("B2")
		named("B2")
		r.exec("UPDATE schedule_server SET register_time = '2026-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("A"))
		r.rebalance("A")
		r.rebalanceAlways("A")
		if got := r.requestedBy("B2"); len(got) > 0 {
			t.Errorf("B2 requests %v, and has got its queues back", got)
		}
	})
	t.Run("P16 the last load counts until there is another", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.measure("0", 2, new(2.0))
		r.measure("0", 3, nil) // the new owner has counted once
		p, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{ByLoad: true})
		r.must(err)
		if p.Load.Measured != 1 || *p.Shares[0].Load < 4 {
			t.Errorf("%+v, want the load of the former owner for both queues", p)
		}
	})
}

// measure records what the owner of a queue measures. nil stands for the first count of an owner.
func (r *fixture) measure(queue string, epoch int64, demand *float64) {
	r.Helper()
	r.must(ops.New(r.c).Queues().SaveBacklogs(r.Context(), r.task, []ops.QueueBacklog{{QueueID: queue, Epoch: epoch, Items: 1, Demand: demand}}))
}

func testLoadPreview(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	r.join("A", "B")
	r.release("A", r.handover("1", "B"), r.handover("3", "B"))
	r.age()
	if _, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{ByLoad: true}); !errors.Is(err, ops.ErrNoLoad) {
		t.Errorf("without measurements: %v, want ErrNoLoad", err)
	}
	r.measure("0", 2, new(2.0))
	r.measure("2", 2, new(1.0))
	r.measure("1", 3, new(0.2))
	p, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{ByLoad: true})
	r.must(err)
	if p.Load.Measured != 3 || !p.Load.Incomplete || len(p.Moves) != 0 {
		t.Errorf("with one of four queues not measured: %+v, want no moves", p)
	}
	r.measure("3", 3, new(0.2))
	r.measure("1", 2, new(100.0)) // of an earlier owner
	p, err = ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{ByLoad: true})
	r.must(err)
	if l := p.Load; l.Queues != 4 || l.Measured != 4 || math.Abs(l.Fair-3.4/2) > 0.01 || l.InForce || len(p.Shares) != 2 || math.Abs(*p.Shares[0].Load-3) > 0.01 {
		t.Errorf("%+v", p)
	}
	if len(p.Moves) != 1 || p.Moves[0].QueueID != "2" || *p.Moves[0].NextServer != r.uuid("B") || p.Moves[0].Rule != "load" {
		t.Errorf("moves %+v, want queue 2 to B", p.Moves)
	}
	r.rebalance("A")
	r.wantOwners("A", "B", "A", "B")
}

func (r *fixture) records() []ops.QueueRecord {
	r.Helper()
	list, err := ops.New(r.c).Queues().List(r.Context(), ops.QueueFilter{TaskType: r.task})
	r.must(err)
	return list
}

// age makes the servers older, so that no plan fills them because they are new.
func (r *fixture) age() {
	r.Helper()
	r.exec("UPDATE schedule_server SET register_time = '2026-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
}

// requestedBy returns the queues that a server has requested.
func (r *fixture) requestedBy(name string) (ids []string) {
	r.Helper()
	for _, q := range r.records() {
		if q.ReqServer != nil && *q.ReqServer == r.uuid(name) {
			ids = append(ids, q.QueueID)
		}
	}
	return ids
}

// testLoadBalance checks that only moves that even the load count in the budget, that they stop when it is used up, and go on
// later.
func testLoadBalance(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 8, Balance: center.BalanceLoad, LoadMovesPerHour: 2})
	r.join("A", "B")
	until := func() int64 {
		return r.readInt("SELECT COUNT(*) FROM schedule_task_running WHERE load_moves_until IS NOT NULL AND task_type = '%s'", r.task)
	}
	r.rebalance("A")
	if found := r.findings("load"); len(found) != 1 || !strings.Contains(found[0], "no queue has a measured load") {
		t.Errorf("findings %q, want that no load is measured", found)
	}
	filled := r.requestedBy("B")
	if len(filled) != 4 || until() != 0 {
		t.Fatalf("B requests %v, want half of the queues, beyond the budget", filled)
	}
	r.age()
	for _, id := range filled {
		r.release("A", r.handover(id, "B"))
	}
	for _, q := range r.records() {
		load := 0.0
		if *q.CurServer == r.uuid("A") {
			load = 4
		}
		r.measure(q.QueueID, q.Epoch, &load)
	}
	r.rebalanceAlways("A")
	evened := r.requestedBy("B")
	if len(evened) != 2 || until() != 1 {
		t.Fatalf("B requests %v, want two queues", evened)
	}
	if n := r.readInt("SELECT COUNT(*) FROM schedule_event WHERE task_type = '%s' AND kind = 'REQUESTED' AND reason = 'its owner has more than its part of the load'", r.task); n != 2 {
		t.Errorf("%d events say that a queue moves to even the load, want 2", n)
	}
	r.rebalanceAlways("B") // planning again changes nothing
	if again := r.requestedBy("B"); !slices.Equal(again, evened) {
		t.Errorf("B requests %v, want %v", again, evened)
	}
	for _, id := range evened {
		r.release("A", r.handover(id, "B"))
	}
	for _, q := range r.records() { // now B has all the load
		load := 0.0
		if *q.CurServer == r.uuid("B") {
			load = 4
		}
		r.measure(q.QueueID, q.Epoch, &load)
	}
	r.rebalanceAlways("A")
	if ids := r.requestedBy("A"); len(ids) != 0 {
		t.Errorf("A requests %v, but the budget is used up", ids)
	}
	p, err := ops.New(c).Queues().Plan(t.Context(), r.task, ops.Scenario{ByLoad: true})
	r.must(err)
	if !p.Load.InForce || p.Load.Budget != 0 || p.LoadMoves() < 2 {
		t.Errorf("%+v, want no budget", p)
	}
	if found := r.findings("load"); len(found) != 1 || !strings.Contains(found[0], "load_moves_per_hour lets 0 move now") {
		t.Errorf("findings %q, want that the budget is used up", found)
	}
	r.exec("UPDATE schedule_task_running SET load_moves_until = NULL WHERE task_type = '%s'", r.task) // the hour is over
	r.rebalanceAlways("A")
	if ids := r.requestedBy("A"); len(ids) != 2 {
		t.Errorf("A requests %v, want two queues", ids)
	}
	r.measure(evened[0], 9, new(100.0))
	if found := r.findings("load"); len(found) != 1 || !strings.Contains(found[0], "queue "+evened[0]+" has more load") {
		t.Errorf("findings %q, want the queue that is too large", found)
	}
}
