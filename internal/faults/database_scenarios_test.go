//go:build linux

package faults

import (
	"database/sql"
	"time"
)

// databaseScenarios are what happens to the database. It is lost by all workers alike, so that none of them
// may take another for dead.
var databaseScenarios = []scenario{
	{name: "database-restart", play: databaseRestart, own: true, quick: true},
	{name: "database-crashes", play: databaseCrashes, own: true},
	{name: "database-outage", play: databaseOutage, own: true, quick: true},
	{name: "lock-row-held", play: lockRowHeld},
}

func databaseRestart(s *stage) {
	s.down(s.server.Stop, 0)
	s.works(20)
}

func databaseCrashes(s *stage) {
	for range 3 {
		s.down(s.server.Kill, s.upTo(s.dead(0.5)))
		s.works(10)
	}
}

func databaseOutage(s *stage) {
	s.down(s.server.Stop, s.dead(5))
	s.works(20)
}

// down takes the database away for some time.
func (s *stage) down(halt func() error, d time.Duration) {
	s.t.Helper()
	from := time.Now()
	if err := halt(); err != nil {
		s.t.Fatal(err)
	}
	s.sleep(d)
	s.between(nil, Partition, from)
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// lockRowHeld: a session that has gone astray holds the lock row while a worker is killed. Those that live
// go on with what they have, and take over the rest when they can.
func lockRowHeld(s *stage) {
	tx := s.holdLockRow()
	s.kill(s.any())
	s.sleep(s.dead(3))
	s.works(20)
	if err := tx.Rollback(); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
	s.works(20)
}

// holdLockRow returns the transaction that holds it, until it is rolled back.
func (s *stage) holdLockRow() *sql.Tx {
	s.t.Helper()
	tx, err := s.c.DB().BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tx.Rollback() }) // after the other it does nothing
	if _, err := tx.ExecContext(s.t.Context(), `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		s.t.Fatal(err)
	}
	return tx
}
