package runs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// R2: a firing is repeated if an operator has edited a trigger since the firing read it.
func TestTriggerEditedWhileItFires(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "settle")
		defineTriggers(t, c, 2, "settle")
		if err := c.Engine().Scheduler.FireWhileEdited(t.Context(), "settle"); !errors.Is(err, sqldb.ErrRaced) {
			t.Fatalf("fire edited triggers: got %v, want %v", err, sqldb.ErrRaced)
		}
	})
}

// defineTriggers defines n triggers and makes them due at one instant in the past.
func defineTriggers(t testing.TB, c *center.Center, n int, tasks ...string) {
	t.Helper()
	for i := range n {
		_, err := c.Engine().Triggers.Define(t.Context(), runs.Trigger{
			Name: fmt.Sprintf("t%04d", i), Target: tasks[i%len(tasks)], Kind: runs.TriggerEvery, Expression: "1h",
			StartAt: time.Now().Add(-time.Minute),
		})
		must(t, err)
	}
	makeDue(t, c)
}

// makeDue makes all triggers due at their start.
func makeDue(t testing.TB, c *center.Center) {
	t.Helper()
	centertest.Exec(t, c, `UPDATE schedule_trigger SET next_fire_at = start_at, status = 'ACTIVE'`)
}
