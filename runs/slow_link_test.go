package runs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// overASlowLink returns a roster, and the same one over a link on which each reply takes more than 100 ms as soon as
// delay is called.
func overASlowLink(t *testing.T) (near, far *center.Center, delay func()) {
	t.Helper()
	direct := testdb.URL(t, testdb.Postgres)
	near = centertest.Open(t, direct, center.Options{})
	defineRunTasks(t, near, "settle")
	url, proxy := testdb.Through(t, direct)
	return near, centertest.Open(t, url, center.Options{}), func() { proxy.Delay(60 * time.Millisecond) }
}

// mustHaveRuns ticks, and checks that there are runs that a condition selects.
func mustHaveRuns(t *testing.T, c *center.Center, where string) {
	t.Helper()
	_, err := c.Engine().Scheduler.Tick(t.Context(), "settle")
	must(t, err)
	n, err := center.Column[int](t.Context(), c.DB(), `SELECT COUNT(*) FROM schedule_run WHERE `+where)
	if must(t, err); n[0] == 0 {
		t.Error("the tick has done nothing")
	}
}

// R21: a tick makes a part of the runs that transactions have submitted. All of them at once would take longer than a
// transaction may, so that none would be made.
func TestSubmissionsOverASlowLink(t *testing.T) {
	t.Parallel()
	near, far, delay := overASlowLink(t)
	tx := centertest.Begin(t, near)
	for range 100 {
		_, _, err := near.Engine().Runs.SubmitTx(t.Context(), tx, "settle", runs.Submission{})
		must(t, err)
	}
	must(t, tx.Commit())
	delay()
	mustHaveRuns(t, far, `TRUE`)
}

// R20: so does a backfill reopen a part of the runs that have failed.
func TestRerunsOfABackfillOverASlowLink(t *testing.T) {
	t.Parallel()
	near, far, delay := overASlowLink(t)
	start := time.Now().Add(-100 * time.Minute)
	_, err := near.Engine().Triggers.Define(t.Context(), runs.Trigger{
		Name: "minutes", Target: "settle", Kind: runs.TriggerEvery, Expression: "1m", StartAt: start,
	})
	must(t, err)
	backfill := runs.BackfillRange{TaskType: "settle", From: start, Parallel: 100, SameWork: true, RerunFailed: true}
	_, err = near.Engine().Backfills.Start(t.Context(), backfill, "test")
	must(t, err)
	mustHaveRuns(t, near, `TRUE`)
	centertest.Exec(t, near, `UPDATE schedule_run SET state = 'FAILED', finished_at = now()`)
	_, err = near.Engine().Backfills.Start(t.Context(), backfill, "test")
	must(t, err)
	delay()
	mustHaveRuns(t, far, `state <> 'FAILED'`)
}

// S17: and so does an audit correct a part of the triggers that are late. Otherwise none of them would fire any more.
func TestLateTriggersOverASlowLink(t *testing.T) {
	t.Parallel()
	near, far, delay := overASlowLink(t)
	for i := range 200 {
		_, err := near.Engine().Triggers.Define(t.Context(), runs.Trigger{
			Name: fmt.Sprint("hourly-", i), Target: "settle", Kind: runs.TriggerEvery, Expression: "1h",
		})
		must(t, err)
	}
	centertest.Exec(t, near, `UPDATE schedule_trigger SET next_fire_at = next_fire_at + interval '200 days'`)
	delay()
	n, err := far.Engine().Scheduler.CorrectTriggers(t.Context(), "settle")
	if must(t, err); n == 0 {
		t.Error("no trigger was corrected")
	}
	late, err := near.Engine().Triggers.Late(t.Context(), "settle")
	if must(t, err); len(late) != 200-n {
		t.Errorf("%d triggers are late after %d of 200 were corrected", len(late), n)
	}
}
