package ops_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

func TestScenarioFindsItsServers(t *testing.T) {
	t.Parallel()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	s, err := ops.New(c).Queues().Scenario(t.Context(), "settle", 2, "web1:1", web2)
	if err != nil || s.Add != 2 || strings.Join(s.Remove, " ") != web1+" "+web2 {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "web1:1:regions", TaskType: "regions", Host: "web1", PID: 1, JudgeDeadInterval: time.Hour})
	must(t, err)
	for _, name := range []string{"web1:1", "web1"} { // a process and a host, which serve another task type too
		if s, err := ops.New(c).Queues().Scenario(t.Context(), "settle", 0, name, web1); err != nil || strings.Join(s.Remove, " ") != web1 {
			t.Errorf("without %s: %+v, %v", name, s, err)
		}
	}
	if _, err := ops.New(c).Queues().Scenario(t.Context(), "regions", 0, web1); !errors.Is(err, ops.ErrOtherTask) {
		t.Errorf("a worker of another task type: %v", err)
	}
}

// P16: a worker that joins gets its part of the load at once, also beside queues that have waited for it.
func TestWorkersThatJoinAreNew(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 5, MaxQueuesPerServer: 4, Balance: center.BalanceLoad})
	join := func(uuid string) {
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: uuid, JudgeDeadInterval: time.Hour})
		must(t, err)
		_, err = c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		must(t, err)
	}
	join("web1") // owns 4 of 5 queues
	// With two of the loads unknown, queues move only to a worker that joins.
	for _, queue := range []string{"0", "1", "2"} {
		load := 1.0
		must(t, ops.New(c).Queues().SaveBacklogs(t.Context(), "settle", []ops.QueueBacklog{{QueueID: queue, Items: 1, Demand: &load}}))
	}
	p, err := ops.New(c).Queues().Plan(t.Context(), "settle", ops.Scenario{Add: 1})
	must(t, err)
	join("web2")
	now, err := ops.New(c).Queues().Plan(t.Context(), "settle", ops.Scenario{})
	must(t, err)
	if got, want := p.Shares[1].Next, now.Shares[1].Next; want != 2 || got != want {
		t.Errorf("the preview gives a worker that joins %d queues, and it gets %d; want 2", got, want)
	}
}
