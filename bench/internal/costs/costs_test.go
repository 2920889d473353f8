package costs

import (
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// Each step succeeds on each database, and its connections are counted.
func TestShort(t *testing.T) {
	part, err := Run(t.Context(), stage.ForTest(t), Short)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]int{}
	for _, c := range part.Data.([]Cost) {
		steps[c.Database]++
		if c.Failed != "" || c.Statements == 0 || c.Database != "SQLite" && (c.Sent < 100 || c.Received < 50) {
			t.Errorf("%+v", c)
		}
		if c.Step == "heartbeat" && (c.Statements != 2 || c.Commits != 1 || c.Held != 0) {
			t.Errorf("%+v: want one UPDATE and one SELECT", c)
		}
	}
	if len(steps) < 3 || steps["SQLite"] != steps["PostgreSQL"] || steps["SQLite"] != steps["MariaDB"] {
		t.Errorf("%v, want the same steps on all databases", steps)
	}
}
