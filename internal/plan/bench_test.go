package plan_test

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ queues, servers int }{{100, 10}, {10_000, 1_000}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("join/%dx%d", size.queues, size.servers), func(b *testing.B) {
			uuids := make([]string, size.servers+1)
			for i := range uuids {
				uuids[i] = fmt.Sprintf("host-%05d:1:00000000", i)
			}
			all := servers(uuids...)
			queues := plantest.Numbered(0, size.queues)
			for i := range queues {
				queues[i].Owner = uuids[i%size.servers]
			}
			b.ReportAllocs()
			for b.Loop() {
				plan.Plan(queues, all, plan.Limits{})
			}
		})
	}
}
