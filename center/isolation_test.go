package center_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// snapshotIsolation returns the URL of a MariaDB server with innodb_snapshot_isolation, the default from 11.6.2 on: a
// transaction of REPEATABLE READ that locks a row that has changed since its first read fails with 1020.
func snapshotIsolation(t *testing.T) (url string) {
	t.Helper()
	url = testdb.Own(t, testdb.MariaDB).URL()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var name, value string
	if err := c.DB().QueryRowContext(t.Context(), "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&name, &value); err != nil {
		t.Skipf("this server has no innodb_snapshot_isolation: MariaDB has it from 10.6.18, 10.11.8 and 11.4.2 on (%v)", err)
	}
	if _, err := c.DB().ExecContext(t.Context(), "SET GLOBAL innodb_snapshot_isolation = ON"); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestConformanceWithSnapshotIsolation(t *testing.T) {
	centertest.Variant(t)
	t.Parallel()
	centertest.RunAbout(t, snapshotIsolation(t), centertest.Session)
}

// A dealer saves a cursor after each transaction of the roster has read the queues and before it locks their rows.
func TestPlansBesideCursors(t *testing.T) {
	t.Parallel()
	url, p := testdb.Through(t, snapshotIsolation(t))
	c := centertest.Open(t, url, center.Options{})
	_, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4})
	must(t, err)
	saved := 0
	var atLocks testdb.Breakpoint
	atLocks = testdb.Breakpoint{Text: "ORDER BY q.queue_id FOR UPDATE SKIP LOCKED", Reached: func() bool {
		saved++
		_, err := c.DB().ExecContext(t.Context(), "UPDATE schedule_queue SET cursor_value = CONCAT(COALESCE(cursor_value, ''), '1')")
		if err != nil {
			t.Error(err)
		}
		p.Break(atLocks)
		return true
	}}
	p.Break(atLocks)
	for _, uuid := range []string{web1, web2} {
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", JudgeDeadInterval: time.Hour})
		must(t, err)
		_, err = c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		must(t, err)
	}
	must(t, c.Roster().Server("settle", web1).Leave(t.Context(), nil, roster.Reservation{}))
	if saved == 0 {
		t.Error("no cursor was saved")
	}
	if n := c.RolledBack(); n != 0 {
		t.Errorf("%d transactions were rolled back, want none", n)
	}
}
