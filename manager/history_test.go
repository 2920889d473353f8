package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
)

// H7 H8: a backup is restored under running workers. Their heartbeats find older tokens, and the witnesses raise the
// epochs once. The queues are worked again within a few heartbeats, because each process takes its former session,
// whose row has come back, out of the roster. One alert tells of it, also while it is not acknowledged.
func TestRestoredBackup(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		a, b := cl.start("a", nil, fast), cl.start("b", nil, fast)
		time.Sleep(20 * time.Second)
		tables := []string{"schedule_server", "schedule_server_history", "schedule_queue", "schedule_task_running"}
		for _, table := range tables {
			cl.exec("CREATE TABLE backup_" + table + " AS SELECT * FROM " + table)
		}
		time.Sleep(20 * time.Second)
		if err := cl.leave(b); err != nil {
			cl.Fatal(err)
		}
		c := cl.start("c", nil, fast)
		time.Sleep(20 * time.Second)
		var high int64
		cl.scan("SELECT MAX(epoch) FROM schedule_queue", &high)
		for _, table := range tables {
			cl.exec("DELETE FROM " + table)
			cl.exec("INSERT INTO " + table + " SELECT * FROM backup_" + table)
		}
		var restored int64
		cl.scan("SELECT MAX(epoch) FROM schedule_queue", &restored)
		if restored >= high {
			cl.Fatalf("the highest epoch is %d in the backup and was %d, want less", restored, high)
		}
		time.Sleep(6 * time.Second) // three heartbeats
		var floor, low int64
		cl.scan("SELECT epoch_floor FROM schedule_environment", &floor)
		cl.scan("SELECT COUNT(*) FROM schedule_queue WHERE epoch <= "+"(SELECT epoch_floor FROM schedule_environment)", &low)
		if floor < high+1_000_000 || low > 0 {
			cl.Fatalf("the epoch_floor is %d after epoch %d, and %d queues are not above it", floor, high, low)
		}
		var former int64
		cl.scan("SELECT COUNT(*) FROM schedule_server WHERE uuid IN (SELECT uuid FROM backup_schedule_server)", &former)
		if former != 1 {
			cl.Fatalf("%d rows of former sessions are in the roster, want that of b, which has ended", former)
		}
		time.Sleep(20 * time.Second)
		cl.wantOwners(3, 3)
		alerts := func() (n int) {
			cl.scan("SELECT COUNT(*) FROM schedule_event WHERE alert = 'HISTORY_LOST'", &n)
			return n
		}
		if n := alerts(); n != 1 {
			cl.Fatalf("%d alerts, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := alerts(); n != 1 {
			cl.Fatalf("%d alerts an hour later, want 1", n)
		}
		var after int64
		cl.scan("SELECT epoch_floor FROM schedule_environment", &after)
		if after != floor {
			cl.Fatalf("the epoch_floor went from %d to %d", floor, after)
		}
		if err := cl.c.Roster().Operator("test").AcknowledgeLoss(cl.Context()); err != nil {
			cl.Fatal(err)
		}
		for _, w := range []*worker{a, c} {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// H7 N3: a server that has given up a part of a queue, so that it merges, is a witness if that is lost.
func TestLostMergeHasAWitness(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		s := fast
		s.Queues, s.Splittable, s.DrainTimeout = 2, true, time.Hour
		cl.start("a", nil, s)
		time.Sleep(10 * time.Second)
		cl.start("b", &work{takes: time.Hour}, s)
		time.Sleep(20 * time.Second)
		cl.wantOwners(1, 1)
		tables := []string{"schedule_queue", "schedule_task_running"}
		for _, table := range tables {
			cl.exec("CREATE TABLE backup_" + table + " AS SELECT * FROM " + table)
		}
		if err := cl.c.Roster().Operator("test").ResizeAll(cl.Context(), "settle", 1, 0); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if owners, ownerless := cl.owners(); len(owners) != 1 || ownerless != 1 {
			cl.Fatalf("%v queues per owner, and %d have none, want the part of b, and the one that a has given up", owners, ownerless)
		}
		for _, table := range tables {
			cl.exec("DELETE FROM " + table)
			cl.exec("INSERT INTO " + table + " SELECT * FROM backup_" + table)
		}
		time.Sleep(20 * time.Second)
		if n := cl.events("HISTORY"); n == 0 {
			cl.Fatal("nobody has noticed that the database has lost a merge")
		}
	})
}

// H7: a server that was expired, or whose queue was taken by force, has lost nothing of the history.
func TestExpiryIsNoLoss(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a, b := cl.start("a", nil, fast), cl.start("b", nil, fast)
		time.Sleep(20 * time.Second)
		cl.exec("UPDATE schedule_server SET beat_token = 'stopped' WHERE uuid = '" + cl.uuid() + "'")
		time.Sleep(time.Minute)
		if n := cl.events("EXPIRED"); n != 1 {
			cl.Fatalf("%d servers expired, want 1", n)
		}
		if n := cl.events("HISTORY"); n != 0 {
			cl.Fatalf("%d events of lost history, want none", n)
		}
		for _, w := range []*worker{a, b} {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}
