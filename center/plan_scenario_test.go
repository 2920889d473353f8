package center_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestScenarioFindsItsServers(t *testing.T) {
	t.Parallel()
	c := servedRoster(t, testdb.URL(t, testdb.SQLite))
	s, err := c.Queues().Scenario(t.Context(), "settle", 2, "web1:1", web2)
	if err != nil || s.Add != 2 || strings.Join(s.Remove, " ") != web1+" "+web2 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := c.Queues().Scenario(t.Context(), "regions", 0, web1); !errors.Is(err, center.ErrOtherTask) {
		t.Errorf("a server of another task type: %v", err)
	}
}
