package ops_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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
