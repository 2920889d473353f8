package ops

import (
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
	if got := reading(0, map[string]int64{"a": 10, "b": 20}); got["a"] != 0 || got["b"] != 0 {
		t.Errorf("the first reading has rates: %v", got)
	}
	if got := reading(2, map[string]int64{"a": 30, "c": 5}); got["a"] != 10 || got["c"] != 0 {
		t.Errorf("a must have 10 items/s, c has no earlier reading: %v", got)
	}
	if got := reading(2, map[string]int64{"a": 40}); got["a"] != 0 {
		t.Errorf("two readings at one time have no rate: %v", got)
	}
	if got := reading(4, map[string]int64{"a": 50, "b": 99}); got["a"] != 5 || got["b"] != 0 {
		t.Errorf("a must have 5 items/s, b was gone at the last reading: %v", got)
	}
}
