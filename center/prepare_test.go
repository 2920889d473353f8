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

// preparedIn is how many statements the server holds prepared for the connection of a pool of one.
func preparedIn(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_prepared_statements`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// preparedInMySQL is the same there, and how many there ever were.
func preparedInMySQL(t *testing.T, db *sql.DB) (n, ever int) {
	t.Helper()
	count := map[string]int{"Com_stmt_prepare": 0, "Com_stmt_close": 0}
	for name := range count {
		var value int
		if err := db.QueryRowContext(t.Context(), `SHOW SESSION STATUS LIKE '`+name+`'`).Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		count[name] = value
	}
	return count["Com_stmt_prepare"] - count["Com_stmt_close"], count["Com_stmt_prepare"]
}

// sendHeartbeats sends heartbeats of an unknown server. Each takes two statements.
func sendHeartbeats(t *testing.T, c *center.Center, n int) {
	t.Helper()
	for range n {
		if _, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{{UUID: "u"}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// retryHeartbeat sends a heartbeat until it succeeds. It retries transient errors.
func retryHeartbeat(t *testing.T, c *center.Center) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{{UUID: "u"}}})
		if err == nil {
			return
		}
		if !c.IsTransient(err) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestHeartbeatsArePrepared(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	sendHeartbeats(t, c, 1)
	if n := preparedIn(t, c.Heart()); n != 0 {
		t.Errorf("%d statements are prepared after one heartbeat: what comes once is not worth it", n)
	}
	for range 2 {
		sendHeartbeats(t, c, 3)
		if n := preparedIn(t, c.Heart()); n != 2 {
			t.Errorf("%d statements are prepared for heartbeats, want 2", n)
		}
	}
	t.Run("a plan does not grow old", func(t *testing.T) {
		c.AgePrepared(t, 6*time.Minute)
		sendHeartbeats(t, c, 1)
		var n, old int
		if err := c.Heart().QueryRowContext(t.Context(), `SELECT COUNT(*), MIN(CAST(name AS int)) FROM pg_prepared_statements`).Scan(&n, &old); err != nil {
			t.Fatal(err)
		}
		if n != 2 || old < 3 {
			t.Errorf("%d statements, the oldest was the %dth to be prepared: want 2 new ones", n, old)
		}
	})
	t.Run("forgotten by the server", func(t *testing.T) {
		if _, err := c.Heart().ExecContext(t.Context(), `DISCARD ALL`); err != nil {
			t.Fatal(err)
		}
		retryHeartbeat(t, c)
		if n := preparedIn(t, c.Heart()); n != 0 {
			t.Errorf("%d statements are prepared anew at once: what was the reason may last", n)
		}
		c.AgePrepared(t, 6*time.Minute)
		sendHeartbeats(t, c, 2)
	})
	t.Run("of a table that was changed", func(t *testing.T) {
		if _, err := c.DB().ExecContext(t.Context(), `ALTER TABLE schedule_task_running ALTER COLUMN removing TYPE varchar(4000)`); err != nil {
			t.Fatal(err)
		}
		retryHeartbeat(t, c)
		c.AgePrepared(t, 6*time.Minute)
		sendHeartbeats(t, c, 2)
		if n := preparedIn(t, c.Heart()); n != 2 {
			t.Errorf("%d statements are prepared for heartbeats, want 2", n)
		}
	})
	update := func(t *testing.T, text string) {
		t.Helper()
		if _, err := c.Heart().ExecContext(t.Context(), fmt.Sprintf(`UPDATE schedule_server SET pid = $1 WHERE uuid = '%s'`, text), 1); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("what comes once makes room", func(t *testing.T) {
		for i := range 150 {
			update(t, fmt.Sprint("once", i))
		}
		before := preparedIn(t, c.Heart())
		update(t, "again")
		update(t, "again")
		if n := preparedIn(t, c.Heart()); n != before+1 {
			t.Errorf("%d statements are prepared, want %d", n, before+1)
		}
	})
	t.Run("not what has no end", func(t *testing.T) {
		for i := range 300 {
			for range 2 {
				update(t, fmt.Sprint(i))
			}
		}
		if n := preparedIn(t, c.Heart()); n != 100 {
			t.Errorf("%d statements are prepared, want 100", n)
		}
	})
	t.Run("what comes no more makes room", func(t *testing.T) {
		c.AgePrepared(t, 6*time.Minute)
		sendHeartbeats(t, c, 2)
		update(t, "another")
		if n := preparedIn(t, c.Heart()); n != 2 {
			t.Errorf("%d statements are prepared, want the 2 of heartbeats", n)
		}
	})
}

func TestHeartbeatsArePreparedInMySQL(t *testing.T) {
	t.Parallel()
	server := testdb.Own(t, testdb.MySQL) // whose limit is ours to set
	c := centertest.Open(t, server.URL(), center.Options{})
	c.DB().SetMaxOpenConns(1)
	limit := func(n int) {
		t.Helper()
		if _, err := c.DB().ExecContext(t.Context(), fmt.Sprintf(`SET GLOBAL max_prepared_stmt_count = %d`, n)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, want, wantEver int) {
		t.Helper()
		if n, ever := preparedInMySQL(t, c.Heart()); n != want || ever != wantEver {
			t.Errorf("%s: %d statements are prepared and %d ever were, want %d and %d", what, n, ever, want, wantEver)
		}
	}
	limit(0)
	sendHeartbeats(t, c, 5)
	want("the server takes no more", 0, 0)
	limit(100)
	sendHeartbeats(t, c, 5)
	want("it is not asked each time", 0, 0)
	c.AgePrepared(t, 6*time.Minute)
	sendHeartbeats(t, c, 5)
	want("it takes some again", 2, 2)
	c.LosePrepared(t)
	for range 2 {
		retryHeartbeat(t, c)
	}
	sendHeartbeats(t, c, 3)
	want("forgotten by the server, who is not asked each time", 0, 2)
	c.AgePrepared(t, 6*time.Minute)
	sendHeartbeats(t, c, 3)
	want("it has some again", 2, 4)

	c.Store().SetMaxOpenConns(1)
	for _, db := range []*sql.DB{c.Store(), c.DB()} {
		_, before := preparedInMySQL(t, db) // by who made the tables
		for range 5 {
			if _, err := db.ExecContext(t.Context(), `UPDATE schedule_server SET pid = ?`, 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, ever := preparedInMySQL(t, db); ever != before {
			t.Errorf("%d statements were prepared that are no heartbeats: the server's limit is everybody's", ever-before)
		}
	}
}

// Dealers' statements are the user's: he prepares what he wants prepared.
func TestDealersStatementsAreNotPrepared(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	c.DB().SetMaxOpenConns(1)
	for range 5 {
		if _, err := c.DB().ExecContext(t.Context(), `UPDATE schedule_server SET pid = $1`, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := preparedIn(t, c.DB()); n != 0 {
		t.Errorf("%d statements are prepared", n)
	}
}

// Whatever stands between may send the next statement elsewhere.
func TestNothingIsPreparedThroughOthers(t *testing.T) {
	t.Parallel()
	through, _ := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	for name, url := range map[string]string{"proxy": through, "PgBouncer": pooled(t)} {
		t.Run(name, func(t *testing.T) {
			c := centertest.Open(t, url, center.Options{})
			sendHeartbeats(t, c, 5)
			if n := preparedIn(t, c.Heart()); n != 0 {
				t.Errorf("%d statements are prepared", n)
			}
		})
	}
}
