package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// An autoscaler adds no worker that would get no queue: each would ask for the next one.
func TestScaleWithinLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		for name, test := range map[string]struct {
			settings center.Settings
			pin      string // of queue 3
			items    int64  // of each queue with an owner
			workers  int64  // two are there
		}{
			"room is missing":                {center.Settings{MaxQueuesPerServer: 1}, "", 1, 3},
			"room is missing, max_servers":   {center.Settings{MaxQueuesPerServer: 1, MaxServers: 2}, "", 1, 2},
			"room is missing, max_in_flight": {center.Settings{MaxQueuesPerServer: 1, MaxInFlight: 2}, "", 1, 2},
			"a label is missing":             {center.Settings{}, "zone=b", 1, 1},
			"room at a label is missing":     {center.Settings{MaxQueuesPerServer: 2}, "zone=b", 1, 1},
			"many items":                     {center.Settings{}, "", 500, 4},
			"many items, max_servers":        {center.Settings{MaxServers: 3}, "", 500, 3},
			"many items, max_in_flight":      {center.Settings{MaxInFlight: 2, MaxServers: 3}, "", 500, 2},
		} {
			t.Run(name, func(t *testing.T) {
				c, ctx := centertest.Open(t, url, center.Options{}), t.Context()
				task := strings.NewReplacer(" ", "-", ",", "").Replace(name)
				test.settings.Queues = 4
				centertest.Define(t, c, task, test.settings)
				must(t, c.Roster().Operator("test").PinQueue(ctx, task, "3", test.pin))
				for i := range 2 {
					_, err := c.Roster().Register(ctx, roster.ServerInfo{UUID: fmt.Sprint(task, i), TaskType: task, JudgeDeadInterval: 24 * time.Hour})
					must(t, err)
				}
				_, err := c.Roster().Planner(task, task+"0").Rebalance(ctx, roster.RebalanceOptions{})
				must(t, err)
				var counts []ops.QueueBacklog
				queues, err := ops.New(c).Queues().List(ctx, ops.QueueFilter{TaskType: task})
				must(t, err)
				for _, q := range queues {
					if q.CurServer != nil {
						counts = append(counts, ops.QueueBacklog{QueueID: q.QueueID, Epoch: q.Epoch, Items: test.items})
					}
				}
				must(t, ops.New(c).Queues().SaveBacklogs(ctx, task, counts))
				list, err := ops.New(c).Tasks().List(ctx, task)
				must(t, err)
				if s, err := list[0].Scale(100); err != nil || s.Workers != test.workers {
					t.Errorf("got %+v, %v, want %d workers", s, err, test.workers)
				}
			})
		}
	})
}
