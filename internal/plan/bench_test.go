package plan_test

import (
	"fmt"
	"testing"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// The servers have equal weights, different weights, or all rules apply: weights, labels, zones,
// queues elsewhere, and a pin of each hundredth queue. With load, the loads of the queues change,
// too.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ queues, servers int }{{100, 10}, {10_000, 1_000}, {100_000, 10_000}} {
		for name, prepare := range map[string]func(r *plantest.Roster){
			"join":    func(*plantest.Roster) {},
			"weights": weigh,
			"rules":   applyRules,
			"load":    applyLoads,
		} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size.queues, size.servers), func(b *testing.B) { benchmarkJoin(b, size.queues, size.servers, prepare) })
		}
	}
}

func weigh(r *plantest.Roster) {
	for i := range r.Servers {
		r.Servers[i].Weight = i % 7
	}
}

func applyRules(r *plantest.Roster) {
	weigh(r)
	for i := range r.Servers {
		s := &r.Servers[i]
		s.Labels = plan.Labels{"zone": fmt.Sprint("z", i%3), "disk": []string{"ssd", "nvme", "hdd"}[i%5%3]}
		s.Elsewhere = i % 11
	}
	r.Limits = plan.Limits{QueuesPerServer: 100, Servers: len(r.Servers) - 1, Spread: "zone"}
	r.Limits.Require, _ = plan.ParseSelector("disk=ssd|nvme")
	r.Limits.Prefer, _ = plan.ParseSelector("zone=z0|z1")
	for i := range r.Queues {
		if i%100 == 0 {
			r.Queues[i].Pin, _ = plan.ParseSelector(fmt.Sprint("zone=z", i/100%3))
		}
	}
}

// applyLoads applies all rules, and loads by Zipf's law.
func applyLoads(r *plantest.Roster) {
	applyRules(r)
	byLoad(r, zipf(1, len(r.Queues)))
}

// benchmarkJoin measures the plan when one server joins. The others own their shares.
func benchmarkJoin(b *testing.B, queues, number int, prepare func(*plantest.Roster)) {
	r := plantest.Roster{Queues: plantest.Numbered(0, queues)}
	for i := range number {
		r.Join(fmt.Sprintf("host-%05d:1:00000000", i))
	}
	prepare(&r)
	rebalance(b, &r)
	r.ReleaseAll("")
	r.Join("host-new:1:00000000")
	r.Servers[number].Labels = plan.Labels{"zone": "z0", "disk": "ssd"}
	b.ReportAllocs()
	for b.Loop() {
		plan.Plan(r.Queues, r.Servers, r.Limits)
	}
}

// As many servers join as there are already.
func BenchmarkPlanByLoadOfAMassJoin(b *testing.B) {
	for _, servers := range []int{100, 1_000} {
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			r := plantest.Roster{Queues: plantest.Numbered(0, 15*servers/10)}
			join := func(name string) {
				for i := range servers {
					r.Join(fmt.Sprintf("%s-%05d:1:00000000", name, i))
				}
			}
			join("first")
			byLoad(&r, nil)
			rebalance(b, &r)
			join("second")
			b.ReportAllocs()
			for b.Loop() {
				plan.Plan(r.Queues, r.Servers, r.Limits)
			}
		})
	}
}
