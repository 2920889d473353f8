package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// A tick is one statement when nothing is due, and so is a claim without candidates. A page of triggers takes a number of
// statements that does not depend on the number of triggers.
func TestStatementsOfRuns(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, url, center.Options{})
	runRoster(t, c, "settle")
	for i := range 50 {
		if _, _, err := c.Engine().Runs.Submit(t.Context(), "settle", fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	tick := func() {
		if _, err := c.Engine().Scheduler.Tick(t.Context(), "settle"); err != nil {
			t.Error(err)
		}
	}
	tick() // opens one run; 49 are READY
	claim := func() {
		if _, err := c.Engine().Sweeps.Claim(t.Context(), "settle", "server", []center.QueueEpoch{{ID: "0", Epoch: 6}}, 1); err != nil {
			t.Error(err)
		}
	}
	sent := map[string][]string{"tick": testdb.Statements(proxy.Listen(tick)), "claim": testdb.Statements(proxy.Listen(claim))}
	if n := len(sent["tick"]); n != 1 {
		t.Errorf("a tick with nothing to do takes %d statements:\n%s", n, strings.Join(sent["tick"], "\n"))
	}
	defineTriggers(t, c, 100, "settle")
	sent["fire"] = testdb.Statements(proxy.Listen(tick))
	if n := len(sent["fire"]); n > 25 {
		t.Errorf("100 triggers take %d statements:\n%s", n, strings.Join(sent["fire"], "\n"))
	}
	t.Logf("100 triggers take %d statements", len(sent["fire"]))
}
