package centertest

import (
	"errors"
	"math"
	"testing"

	"github.com/dutyrota/rota/center"
)

// testLoad checks a plan by load, which moves nothing.
func testLoad(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	r.join("A", "B")
	r.release("A", r.handover("1", "B"), r.handover("3", "B"))
	if _, err := c.Queues().PlanByLoad(t.Context(), r.task, -1); !errors.Is(err, center.ErrNoLoad) {
		t.Errorf("without measurements: %v, want ErrNoLoad", err)
	}
	save := func(queue string, epoch int64, demand *float64) {
		r.must(c.Queues().SaveBacklogs(t.Context(), r.task, []center.QueueBacklog{{QueueID: queue, Epoch: epoch, Items: 1, Demand: demand}}))
	}
	save("0", 2, new(2.0))
	save("2", 2, new(1.0))
	save("1", 3, new(0.2))
	save("1", 2, new(100.0)) // of an earlier owner
	save("3", 3, nil)        // counted once
	p, err := c.Queues().PlanByLoad(t.Context(), r.task, -1)
	r.must(err)
	if p.Queues != 4 || p.Measured != 3 || math.Abs(p.Fair-(3.2+3.2/3)/2) > 1e-9 || p.Largest != 2 || len(p.Servers) != 2 || p.Servers[0].Load != 3 {
		t.Errorf("%+v", p)
	}
	if len(p.Moves) != 1 || p.Moves[0].QueueID != "2" || p.Moves[0].NextServer != r.uuid("B") {
		t.Errorf("moves %+v, want queue 2 to B", p.Moves)
	}
	r.exec("UPDATE schedule_backlog SET measured_at = '2026-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
	if _, err := c.Queues().PlanByLoad(t.Context(), r.task, -1); !errors.Is(err, center.ErrNoLoad) {
		t.Errorf("with old measurements: %v, want ErrNoLoad", err)
	}
	r.rebalance("A")
	r.wantOwners("A", "B", "A", "B")
}
