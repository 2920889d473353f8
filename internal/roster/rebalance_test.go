package roster_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// P15: a plan that would move a queue for the totals moves none if the process has got queues of other task types since
// the plan read them.
func TestTotalsAreReadAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 1)
		centertest.Define(t, c, "other", center.Settings{Queues: 2})
		r := c.Roster()
		for _, s := range []roster.ServerInfo{
			{UUID: "A", TaskType: "settle", Process: "P"}, {UUID: "B", TaskType: "other", Process: "Q"}, {UUID: "C", TaskType: "settle", Process: "Q"},
		} {
			s.HeartbeatToken, s.JudgeDeadInterval = "x", time.Minute
			if _, err := r.Register(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Planner(s.TaskType, s.UUID).Rebalance(t.Context(), roster.RebalanceOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		changes, err := r.PlanFrom(t.Context(), "settle", map[string]int{"A": 2, "C": 0})
		if err != nil || len(changes) > 0 {
			t.Errorf("changes %+v, error %v, want none", changes, err)
		}
	})
}
