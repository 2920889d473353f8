package roster_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// S1: what changes a server's row writes it last, after the plan. From then on the server's heartbeat waits, so between
// the write and the commit no other statement may pass, each of which takes a round trip.
func TestServerRowIsWrittenLast(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			openTask(t, url, "settle", 4)
			through, proxy := testdb.Through(t, url)
			c := centertest.Open(t, through, center.Options{})
			for _, uuid := range []string{"A", "B"} {
				if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", JudgeDeadInterval: time.Hour}); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			operator := c.Roster().Operator("test")
			for _, step := range []struct {
				what string
				do   func() error
			}{
				{"pause", func() error { return operator.PauseServer(t.Context(), "A", true) }},
				{"resume", func() error { return operator.PauseServer(t.Context(), "A", false) }},
				{"drain by an operator", func() error { _, err := operator.DrainServer(t.Context(), "A", false); return err }},
				{"weight", func() error { return operator.SetWeight(t.Context(), "A", 3) }},
				{"forced drain", func() error { _, err := operator.DrainServer(t.Context(), "A", true); return err }},
				{"drain", func() error { return c.Roster().Server("settle", "B").Drain(t.Context(), roster.Reservation{}) }},
				{"leave", func() error { return c.Roster().Server("settle", "B").Leave(t.Context(), nil, roster.Reservation{}) }},
			} {
				sent := string(proxy.Listen(func() {
					if err := step.do(); err != nil {
						t.Fatalf("%s: %v", step.what, err)
					}
				}))
				locking := regexp.MustCompile(`UPDATE schedule_server |schedule_server AS s`).FindStringIndex(sent)
				if locking == nil {
					t.Fatalf("%s: no statement locks the server's row:\n%q", step.what, sent)
				}
				for _, table := range []string{"schedule_queue", "schedule_task", "schedule_event"} {
					if strings.Contains(sent[locking[0]:], table) {
						t.Errorf("%s: a statement on %s passes while the server's row is locked:\n%q", step.what, table, sent[locking[0]:])
					}
				}
			}
		})
	}
}
