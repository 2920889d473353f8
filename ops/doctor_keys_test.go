package ops_test

import (
	"slices"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// Items of one order key in two queues have no order (X10).
func TestDiagnoseReportsADividedOrderKey(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		centertest.Define(t, c, "settle", center.Settings{Queues: 2})
		tasks, err := ops.New(c).Tasks().List(t.Context(), "settle")
		must(t, err)
		save := func(key, orderKey, queue string, partition int64) {
			must(t, failures.Of(c.Roster()).Save(t.Context(), "settle", []failures.Item{{
				Key: key, OrderKey: orderKey, QueueID: queue, Partition: partition, State: ops.ItemRetry, Attempts: 1,
			}}))
		}
		now := tasks[0].Partition
		save("1", "north", "0", now)
		save("2", "", "0", now)
		save("3", "", "1", now)
		save("4", "north", "1", now+1) // of another division into queues
		want := `PROBLEM items of order key "north" have failed in queues 0 and 1, so they are in no order`
		if got := findingsOf(t, c, "items"); slices.Contains(got, want) {
			t.Errorf("findings %q, although the key is in one queue", got)
		}
		save("5", "north", "1", now)
		wantFinding(t, c, "items", want)
	})
}
