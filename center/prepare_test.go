package center_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// agedOut is longer than a connection keeps a prepared statement, or remembers that the server refused one.
const agedOut = 6 * time.Minute

// preparedInPostgres returns how many prepared statements PostgreSQL holds for the connection of a pool of one.
func preparedInPostgres(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_prepared_statements`).Scan(&n))
	return n
}

// wantPrepared checks how many prepared statements PostgreSQL holds for the connection of a pool of one.
func wantPrepared(t *testing.T, db *sql.DB, when string, want int) {
	t.Helper()
	if n := preparedInPostgres(t, db); n != want {
		t.Errorf("prepared statements %s: got %d, want %d", when, n, want)
	}
}

// preparedInMySQL returns how many prepared statements MySQL holds for the connection of a pool of one, and how many it
// has prepared since the connection was opened.
func preparedInMySQL(t *testing.T, db *sql.DB) (n, total int) {
	t.Helper()
	count := map[string]int{"Com_stmt_prepare": 0, "Com_stmt_close": 0}
	for name := range count {
		var value int
		must(t, db.QueryRowContext(t.Context(), `SHOW SESSION STATUS LIKE '`+name+`'`).Scan(&name, &value))
		count[name] = value
	}
	return count["Com_stmt_prepare"] - count["Com_stmt_close"], count["Com_stmt_prepare"]
}

// unknownServer is a heartbeat of a server that is not registered. It takes two statements.
var unknownServer = roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{{UUID: "u"}}}

func sendHeartbeats(t *testing.T, c *center.Center, n int) {
	t.Helper()
	for range n {
		_, err := c.Roster().SendHeartbeat(t.Context(), unknownServer)
		must(t, err)
	}
}

// retryHeartbeat sends a heartbeat until it succeeds. It retries transient errors.
func retryHeartbeat(t *testing.T, c *center.Center) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := c.Roster().SendHeartbeat(t.Context(), unknownServer)
		if err == nil {
			return
		}
		if !c.IsTransient(err) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// openPreparing opens a roster on PostgreSQL that has sent enough heartbeats to prepare both of their statements.
func openPreparing(t *testing.T) *center.Center {
	t.Helper()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	sendHeartbeats(t, c, 1)
	wantPrepared(t, c.HeartbeatPool(), "after one heartbeat, since a statement may not come again", 0)
	for range 2 {
		sendHeartbeats(t, c, 3)
		wantPrepared(t, c.HeartbeatPool(), "after several heartbeats", 2)
	}
	return c
}

func TestHeartbeatsArePrepared(t *testing.T) {
	t.Parallel()
	t.Run("again after a while, since a plan ages", func(t *testing.T) {
		t.Parallel()
		c := openPreparing(t)
		c.AgePrepared(t, agedOut)
		sendHeartbeats(t, c, 1)
		var n, oldest int
		must(t, c.HeartbeatPool().QueryRowContext(t.Context(), `SELECT COUNT(*), MIN(CAST(name AS int)) FROM pg_prepared_statements`).Scan(&n, &oldest))
		if n != 2 || oldest < 3 {
			t.Errorf("prepared statements: got %d, the oldest with number %d, want 2 with numbers from 3 on", n, oldest)
		}
	})
	t.Run("again some time after the server has lost them", func(t *testing.T) {
		t.Parallel()
		c := openPreparing(t)
		_, err := c.HeartbeatPool().ExecContext(t.Context(), `DISCARD ALL`)
		must(t, err)
		retryHeartbeat(t, c)
		wantPrepared(t, c.HeartbeatPool(), "at once after DISCARD ALL, whose cause may last", 0)
		c.AgePrepared(t, agedOut)
		sendHeartbeats(t, c, 2)
		wantPrepared(t, c.HeartbeatPool(), "some time after DISCARD ALL", 2)
	})
	t.Run("with a plan that is kept", func(t *testing.T) {
		t.Parallel()
		c := openPreparing(t)
		sendHeartbeats(t, c, 20)
		var custom int
		must(t, c.HeartbeatPool().QueryRowContext(t.Context(), `SELECT SUM(custom_plans) FROM pg_prepared_statements`).Scan(&custom))
		if custom > 0 {
			t.Errorf("%d heartbeats were planned for their values, want none", custom)
		}
	})
	t.Run("again some time after a table was altered", func(t *testing.T) {
		t.Parallel()
		c := openPreparing(t)
		centertest.Exec(t, c, `ALTER TABLE schedule_task_running ALTER COLUMN queue_changes TYPE varchar(4000)`)
		retryHeartbeat(t, c)
		c.AgePrepared(t, agedOut)
		sendHeartbeats(t, c, 2)
		wantPrepared(t, c.HeartbeatPool(), "some time after ALTER TABLE", 2)
	})
}

// A connection forgets statements that have not come for the longest time.
func TestPreparedStatementsAreBounded(t *testing.T) {
	t.Parallel()
	c := openPreparing(t)
	update := func(uuid string, times int) {
		t.Helper()
		for range times {
			_, err := c.HeartbeatPool().ExecContext(t.Context(), fmt.Sprintf(`UPDATE schedule_server SET pid = $1 WHERE uuid = '%s'`, uuid), 1)
			must(t, err)
		}
	}
	for i := range 150 {
		update(fmt.Sprint("once", i), 1)
	}
	wantPrepared(t, c.HeartbeatPool(), "after 150 statements that came once", 2)
	update("twice", 2)
	wantPrepared(t, c.HeartbeatPool(), "after one more that came twice", 3)
	for i := range 300 {
		update(fmt.Sprint(i), 2)
	}
	wantPrepared(t, c.HeartbeatPool(), "after 300 that came twice", 100)
	c.AgePrepared(t, agedOut)
	sendHeartbeats(t, c, 2)
	update("another", 1)
	wantPrepared(t, c.HeartbeatPool(), "when only heartbeats come again", 2)
}

func TestHeartbeatsArePreparedInMySQL(t *testing.T) {
	t.Parallel()
	server := testdb.Own(t, testdb.MySQL) // the test changes a limit of the whole server
	c := centertest.Open(t, server.URL(), center.Options{})
	c.DB().SetMaxOpenConns(1)
	limit := func(n int) {
		t.Helper()
		centertest.Exec(t, c, fmt.Sprintf(`SET GLOBAL max_prepared_stmt_count = %d`, n))
	}
	want := func(when string, want, wantTotal int) {
		t.Helper()
		if n, total := preparedInMySQL(t, c.HeartbeatPool()); n != want || total != wantTotal {
			t.Errorf("prepared statements %s: got %d and %d in total, want %d and %d", when, n, total, want, wantTotal)
		}
	}
	limit(0)
	sendHeartbeats(t, c, 5)
	want("while the server refuses to prepare", 0, 0)
	limit(100)
	sendHeartbeats(t, c, 5)
	want("soon after a refusal", 0, 0)
	c.AgePrepared(t, agedOut)
	sendHeartbeats(t, c, 5)
	want("some time after the refusal", 2, 2)
	c.ClosePrepared(t)
	for range 2 {
		retryHeartbeat(t, c)
	}
	sendHeartbeats(t, c, 3)
	want("soon after the server has lost them", 0, 2)
	c.AgePrepared(t, agedOut)
	sendHeartbeats(t, c, 3)
	want("some time after the server has lost them", 2, 4)
}

// MySQL limits how many statements it holds for all clients together: only heartbeats are prepared.
func TestOnlyHeartbeatsArePreparedInMySQL(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.MySQL), center.Options{})
	for name, db := range map[string]*sql.DB{"store": c.Store(), "dealers": c.DB()} {
		db.SetMaxOpenConns(1)
		_, before := preparedInMySQL(t, db) // the migration has prepared statements
		for range 5 {
			_, err := db.ExecContext(t.Context(), `UPDATE schedule_server SET pid = ?`, 1)
			must(t, err)
		}
		if _, total := preparedInMySQL(t, db); total != before {
			t.Errorf("prepared statements of the pool %s: got %d, want 0", name, total-before)
		}
	}
}

// A dealer's statements are the user's, and so is the decision to prepare them.
func TestDealersStatementsAreNotPrepared(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	c.DB().SetMaxOpenConns(1)
	for range 5 {
		_, err := c.DB().ExecContext(t.Context(), `UPDATE schedule_server SET pid = $1`, 1)
		must(t, err)
	}
	wantPrepared(t, c.DB(), "of a dealer", 0)
}

// A proxy may send the next statement to another server.
func TestNoStatementIsPreparedBehindAProxy(t *testing.T) {
	t.Parallel()
	through, _ := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	for name, url := range map[string]string{"proxy": through, "PgBouncer": pgBouncerURL(t)} {
		t.Run(name, func(t *testing.T) {
			c := centertest.Open(t, url, center.Options{})
			sendHeartbeats(t, c, 5)
			wantPrepared(t, c.HeartbeatPool(), "behind "+name, 0)
		})
	}
}
