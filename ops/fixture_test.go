package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// The servers of servedRoster and seedRoster.
const web1, web2 = "web1:1:00000001", "web2:2:00000002"

// servedRoster returns a Center whose task type settle has four queues and the servers web1 and web2. The task type
// regions has no server.
func servedRoster(t *testing.T, url string) *center.Center {
	t.Helper()
	c := centertest.Open(t, url, center.Options{})
	for task, s := range map[string]center.Settings{"settle": {Queues: 4, ExecuteNumber: 10}, "regions": {QueueNames: []string{"north", "south"}}} {
		_, err := ops.New(c).Tasks().Define(t.Context(), task, s)
		must(t, err)
	}
	for _, uuid := range []string{web1, web2} {
		host, _, _ := strings.Cut(uuid, ":")
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: host, PID: 1, JudgeDeadInterval: time.Hour})
		must(t, err)
		_, err = c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		must(t, err)
	}
	return c
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
