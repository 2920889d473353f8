package console

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/ops"
)

// A task type whose workers have ended does nothing a second, and the database's clock may be set back.
func TestSamplesEndWithTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newSamples(), time.Now()
		add := func(done map[string]int64) {
			var servers []ops.ServerRecord
			for uuid, n := range done {
				servers = append(servers, ops.ServerRecord{UUID: uuid, TaskType: uuid[:1], SuccessCount: n, Now: clock})
			}
			s.add(servers)
			time.Sleep(ops.StatisticsEvery)
			clock = clock.Add(ops.StatisticsEvery)
		}
		want := func(when string, a, b float64) {
			t.Helper()
			if gotA, gotB := s.ofTask("a").Rate, s.ofTask("b").Rate; gotA != a || gotB != b {
				t.Errorf("%s: rates %v and %v, want %v and %v", when, gotA, gotB, a, b)
			}
		}
		add(map[string]int64{"a1": 0, "b1": 0})
		add(map[string]int64{"a1": 100, "b1": 50})
		want("with workers", 10, 5)
		add(map[string]int64{"b1": 100})
		want("without workers of a", 0, 5)
		clock = clock.Add(-24 * time.Hour)
		add(map[string]int64{"b1": 200})
		want("after the clock was set back", 0, 10)
		for range 4 {
			add(map[string]int64{"b1": 200})
		}
		want("without work", 0, 0)
		add(map[string]int64{"b1": 300})
		want("with work", 0, 2) // since the last change, 50 s ago
		clock = clock.Add(-24 * time.Hour)
		for range 4 {
			add(map[string]int64{"b1": 300})
		}
		want("without work, and with the clock set back", 0, 0)
		add(map[string]int64{"b1": 600})
		add(nil)
		want("without workers", 0, 0)
		for range 61 {
			add(nil)
		}
		if len(s.tasks) > 0 {
			t.Errorf("ten minutes later there are samples of %v", s.tasks)
		}
	})
}
