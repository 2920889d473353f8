package ops

import (
	"maps"
	"testing"
	"time"
)

func TestItemRates(t *testing.T) {
	t.Parallel()
	var rates ItemRates
	reading := func(seconds int, done map[string]int64) map[string]float64 {
		var servers []ServerRecord
		for uuid, n := range done {
			servers = append(servers, ServerRecord{UUID: uuid, SuccessCount: n, FailureCount: int64(seconds) * 1000, Now: time.Unix(0, 0).Add(time.Duration(seconds) * time.Second)})
		}
		return rates.Update(servers)
	}
	for _, step := range []struct {
		at   int
		done map[string]int64
		want map[string]float64
	}{
		{0, map[string]int64{"a": 10, "b": 20}, map[string]float64{}},
		{4, map[string]int64{"a": 110, "b": 20, "c": 5}, map[string]float64{"a": 10}}, // a has written after 10 s at least
		{9, map[string]int64{"a": 110, "b": 20, "c": 5}, map[string]float64{"a": 10}}, // that holds until it writes again
		{16, map[string]int64{"a": 350, "b": 20}, map[string]float64{"a": 20}},
		{25, map[string]int64{"a": 350, "b": 20, "c": 50}, map[string]float64{"a": 20, "b": 0}}, // c was gone
		{37, map[string]int64{"a": 350, "b": 20, "c": 50}, map[string]float64{"a": 0, "b": 0}},
	} {
		if got := reading(step.at, step.done); !maps.Equal(got, step.want) {
			t.Errorf("after %d s: %v, want %v", step.at, got, step.want)
		}
	}
}
