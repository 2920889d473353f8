package ops_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// BenchmarkSaveBacklogs measures how long one worker needs to record the backlogs of 1,000 queues, which it does about
// every 10 s.
func BenchmarkSaveBacklogs(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		c := centertest.Open(b, testdb.URL(b, kind), center.Options{})
		_, err := ops.New(c).Tasks().Define(b.Context(), "settle", center.Settings{Queues: 1000})
		must(b, err)
		list, rate := make([]ops.QueueBacklog, 1000), -2.5
		for i := range list {
			list[i] = ops.QueueBacklog{QueueID: strconv.Itoa(i), Epoch: 1, Items: 100, Oldest: time.Now(), Rate: &rate, Trend: ops.BacklogDraining}
		}
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				must(b, ops.New(c).Queues().SaveBacklogs(b.Context(), "settle", list))
			}
			b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/10, "%-of-10s")
		})
	}
}
