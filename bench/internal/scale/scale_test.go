package scale

import (
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

func TestShort(t *testing.T) {
	part, err := Run(t.Context(), stage.ForTest(t), Short)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range part.Data.([]*Result) {
		// 60 queues and 6 servers: one joins, two join, and one of nine with 6 or 7 queues dies.
		// Some queues move twice if the servers do not join at the same moment.
		want := []int64{8, 12, 6}
		for i, c := range r.Changes {
			if c.Moves < want[i] || c.Moves > want[i]+3 || c.Locks == 0 || c.Longest < c.Median {
				t.Errorf("%s: %+v: want %d moves", r.Database, c, want[i])
			}
		}
		if r.Idle.Statements < 1.5 || r.Idle.Statements > 20 {
			t.Errorf("%s: %+v", r.Database, r.Idle)
		}
		for _, g := range r.Growth {
			// PostgreSQL reports its counters up to a second late.
			if g.Statements < 1.5 || g.Statements > 3 || g.RowsRead < 5 || g.Plan <= 0 || g.Beat <= 0 {
				t.Errorf("%s: %+v", r.Database, g)
			}
		}
		if few, many := r.Growth[2].RowsRead, r.Growth[3].RowsRead; many > 1.5*few {
			t.Errorf("%s: a heartbeat reads %g rows with 20 servers and %g with 200, want about as many", r.Database, few, many)
		}
	}
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		servers int
		cpu     float64
		want    string
	}{{10, 1, "2s"}, {1_000, 1, "4s"}, {10_000, 1.01, "41s"}, {10, 0, "-"}} {
		if got := interval(c.servers, c.cpu); got != c.want {
			t.Errorf("%d workers, %g ms: %s, want %s", c.servers, c.cpu, got, c.want)
		}
	}
}
