//go:build linux

package faults

import (
	"database/sql"
	"time"
)

// databaseScenarios are faults of the database. All workers lose the database at the same time, so that none of them
// may expire another.
var databaseScenarios = []scenario{
	{name: "database-restart", play: databaseRestart, own: true, quick: true},
	{name: "database-crashes", play: databaseCrashes, own: true},
	{name: "database-outage", play: databaseOutage, own: true, quick: true},
	{name: "lock-row-held", play: lockRowHeld},
	{name: "audit-while-lock-row-held", play: auditWhileLockRowHeld},
}

func databaseRestart(s *stage) {
	s.stopDatabase(s.server.Stop, 0)
	s.works(20)
}

func databaseCrashes(s *stage) {
	for range 3 {
		s.stopDatabase(s.server.Kill, s.upTo(s.dead(0.5)))
		s.works(10)
	}
}

func databaseOutage(s *stage) {
	s.stopDatabase(s.server.Stop, s.dead(5))
	s.works(20)
}

// stopDatabase halts the database for the duration d.
func (s faultSteps) stopDatabase(halt func() error, d time.Duration) {
	s.t.Helper()
	from := time.Now()
	if err := halt(); err != nil {
		s.t.Fatal(err)
	}
	s.sleep(d)
	s.addWindow(nil, Partition, from)
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// lockRowHeld: a stray session holds the lock row while a worker is killed. The other workers go on with their own
// queues, and take over the rest when the lock row is free.
func lockRowHeld(s *stage) {
	tx := s.holdLockRow()
	s.kill(s.any())
	s.sleep(s.dead(3))
	s.works(20)
	if err := tx.Rollback(); err != nil {
		s.t.Fatal(err)
	}
	s.awaitBalance()
	s.works(20)
}

// auditWhileLockRowHeld: a stray session holds the lock row for longer than the audit interval of 30 s. The workers
// go on with their own queues while an audit is due that none can stamp. The session pauses the task type when it
// ends: nothing is done from then on until the resume, and the audit is made.
func auditWhileLockRowHeld(s *stage) {
	const AuditInterval = 30 * time.Second // of internal/roster
	audited := func() int {
		return s.count(`SELECT COALESCE(` + s.instant("audited_at") + `, 0) FROM schedule_task_running`)
	}
	tx, from := s.holdLockRow(), time.Now()
	last := audited()
	for time.Since(from) < AuditInterval+s.dead(2) {
		s.works(10)
	}
	if audited() != last {
		s.t.Error("an audit was stamped while a session held the lock row")
	}
	_, err := tx.ExecContext(s.t.Context(), `UPDATE schedule_task_running SET paused = TRUE`)
	s.must(err)
	s.must(tx.Commit())
	s.standstill()
	s.must(s.c.Roster().Operator("test").Pause(s.t.Context(), taskType, false))
	s.until("the audit is made", func() bool { return audited() > last })
	s.awaitBalance()
	s.works(20)
}

// holdLockRow returns a transaction that holds the lock row until its rollback.
func (s faultSteps) holdLockRow() *sql.Tx {
	s.t.Helper()
	tx, err := s.c.DB().BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tx.Rollback() }) // does nothing after the rollback of the caller
	if _, err := tx.ExecContext(s.t.Context(), `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		s.t.Fatal(err)
	}
	return tx
}
