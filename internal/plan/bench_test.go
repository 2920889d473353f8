package plan_test

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ queues, servers int }{{100, 10}, {10_000, 1_000}, {100_000, 10_000}} {
		for name, weight := range map[string]func(server int) int{
			"join":    func(int) int { return 1 },
			"weights": func(server int) int { return server % 7 },
		} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size.queues, size.servers), func(b *testing.B) { benchmarkJoin(b, size.queues, size.servers, weight) })
		}
	}
}

// benchmarkJoin measures the plan when one server joins. The others own their shares.
func benchmarkJoin(b *testing.B, queues, number int, weight func(server int) int) {
	r := plantest.Roster{Queues: plantest.Numbered(0, queues)}
	for i := range number {
		r.Join(fmt.Sprintf("host-%05d:1:00000000", i))
		r.Servers[i].Weight = weight(i)
	}
	rebalance(b, &r)
	r.Join("host-new:1:00000000")
	r.Servers[number].Weight = 3
	b.ReportAllocs()
	for b.Loop() {
		plan.Plan(r.Queues, r.Servers, plan.Limits{})
	}
}
