package roster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// F7: on a cluster, a heartbeat that reaches a node without the server's row fails as long as the store still has the
// row. The other node is another database here.
func TestHeartbeatOnANodeThatLags(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 1)
		r := c.Roster()
		if _, err := r.Register(t.Context(), roster.ServerInfo{
			UUID: "A", TaskType: "settle", HeartbeatToken: "x", JudgeDeadInterval: time.Minute,
		}); err != nil {
			t.Fatal(err)
		}
		behind := openTask(t, testdb.URL(t, string(c.Dialect())), "settle", 1)
		heart := r.DB.Heartbeat
		r.DB.Heartbeat = behind.Roster().DB.Heartbeat
		t.Cleanup(func() { r.DB.Heartbeat = heart })
		gone := func(token string) (bool, error) {
			replies, err := r.SendHeartbeat(t.Context(), roster.Heartbeat{
				Token:   "y",
				Servers: []roster.ServerReport{{UUID: "A", OldToken: token, TaskType: "settle", State: roster.StateServing}},
			})
			return len(replies) == 0, err
		}
		if gone, err := gone("x"); err != nil || !gone {
			t.Errorf("without a cluster: gone %t, error %v, want a server that is gone", gone, err)
		}
		r.DB.Dialect = r.DB.WithWriteFence()
		if _, err := gone("x"); err == nil {
			t.Error("the store has the row: no error, want one")
		}
		if gone, err := gone("z"); err != nil || !gone {
			t.Errorf("the row belongs to another process: gone %t, error %v, want a server that is gone", gone, err)
		}
		centertest.Exec(t, c, "DELETE FROM schedule_server")
		if gone, err := gone("x"); err != nil || !gone {
			t.Errorf("the store has no row: gone %t, error %v, want a server that is gone", gone, err)
		}
	})
}

// L7: a client is stopped between two statements of a transaction that holds the lock row. The database ends the
// transaction of a silent client, also MySQL, which has a limit for idle connections only.
func TestSilentClientDoesNotKeepTheLockRow(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			silent, other := openTask(t, url, "sweep", 1), openTask(t, url, "sweep", 1)
			tx, err := silent.Roster().BeginLocked(t, "sweep", false)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			awaitLockRow(t, other)
			if _, err := tx.ExecContext(t.Context(), `UPDATE schedule_task_running SET version = version + 1`); err == nil {
				t.Error("the silent client goes on, want that its transaction was ended")
			}
		})
	}
}

// awaitLockRow waits until a plan gets the lock row.
func awaitLockRow(t *testing.T, c *center.Center) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for planned := false; !planned; {
		_, err := c.Roster().Planner("sweep", "somebody").Rebalance(ctx, roster.RebalanceOptions{Always: true})
		if planned = err == nil; ctx.Err() != nil {
			t.Fatalf("the lock row is still held: %v", err)
		}
	}
	t.Logf("the lock row was free after %s", time.Since(begin).Round(time.Second))
}

// L7: a client is stopped while it reads a large roster. It takes no more rows, and the database waits for it in the
// middle of the statement. The database still ends the transaction, so that the lock row is free within half a minute.
// On SQLite the stopped process itself holds the lock, and only its end frees the lock.
func TestStoppedReaderDoesNotKeepTheLockRow(t *testing.T) {
	t.Parallel()
	large := map[string]string{ // more than the buffers of a connection hold
		testdb.Postgres: `SELECT repeat('x', 1000) FROM generate_series(1, 100000)`,
		testdb.MySQL: `SELECT REPEAT('x', 1000) FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', 99999), ']'), '$[*]'
			COLUMNS (n INT PATH '$')) AS numbers`,
		testdb.MariaDB: `SELECT REPEAT('x', 1000) FROM seq_1_to_100000`,
	}
	for kind, query := range large {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			stopped, other := openTask(t, url, "sweep", 1), openTask(t, url, "sweep", 1)
			tx, err := stopped.Roster().BeginLocked(t, "sweep", false)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			rows, err := tx.QueryContext(context.WithoutCancel(t.Context()), query)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			awaitLockRow(t, other)
			for rows.Next() { // the rest of the rows, until the error
			}
			if rows.Err() == nil {
				t.Error("the stopped client has read all rows, want that its transaction was ended")
			}
		})
	}
}

// S1: the statements of a heartbeat have the same texts for two servers and for a hundred, so that the database and the
// driver prepare them once. Those for one server have its values in their places.
func TestHeartbeatTextDoesNotGrow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		d := openTask(t, url, "settle", 1).Roster().DB.Dialect
		texts := map[int]string{}
		for _, n := range []int{1, 2, 100} {
			b := roster.Heartbeat{Token: "x", Servers: make([]roster.ServerReport, n)}
			b.Servers[n-1] = roster.ServerReport{
				UUID: "a", TaskType: "settle", InRuns: true, JudgeDeadInterval: time.Second,
				Lowering: roster.InFlightLowering{To: 1, Version: 1},
			}
			update, query, err := b.Texts(d)
			if err != nil {
				t.Fatal(err)
			}
			texts[n] = update + "\n" + query
		}
		if texts[2] != texts[100] {
			t.Errorf("the statements of 2 servers and of 100 differ:\n%s\n\n%s", texts[2], texts[100])
		}
		if strings.Contains(texts[1], "v.") {
			t.Errorf("the statements of 1 server have a table of values:\n%s", texts[1])
		}
	})
}
