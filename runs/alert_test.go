package runs_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// R19: a failure whose alert could not be recorded raises it at a later look, and not at both.
func TestAlertThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	defineRunTasks(t, c, "settle")
	_, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{})
	must(t, err)
	centertest.Exec(t, c,
		`UPDATE schedule_run SET state = 'FAILED', failed_at = rota_now(), finished_at = rota_now()`,
		`CREATE TRIGGER refuse BEFORE INSERT ON schedule_event BEGIN SELECT RAISE(ABORT, 'no'); END`)
	raised, err := c.Engine().Runs.AlertFailures(t.Context(), "settle")
	if err == nil || len(raised) > 0 {
		t.Errorf("raised %+v, %v; want an error and no alert", raised, err)
	}
	centertest.Exec(t, c, `DROP TRIGGER refuse`)
	if raised, err = c.Engine().Runs.AlertFailures(t.Context(), "settle"); err != nil || len(raised) != 1 {
		t.Errorf("raised %+v, %v; want one alert", raised, err)
	}
}
