package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
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

// beatTimes beats for nobody, which is two statements all the same.
func beatTimes(t *testing.T, c *center.Center, n int) {
	t.Helper()
	for range n {
		if _, err := c.Beat(t.Context(), center.Beat{Token: "x", Servers: []center.ServerBeat{{UUID: "u"}}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHeartbeatsArePrepared(t *testing.T) {
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	beatTimes(t, c, 1)
	if n := preparedIn(t, c.Heart()); n != 0 {
		t.Errorf("%d statements are prepared after one heartbeat: what comes once is not worth it", n)
	}
	for range 2 {
		beatTimes(t, c, 3)
		if n := preparedIn(t, c.Heart()); n != 2 {
			t.Errorf("%d statements are prepared for heartbeats, want 2", n)
		}
	}
	t.Run("a plan does not grow old", func(t *testing.T) {
		c.AgePrepared(t, 6*time.Minute)
		beatTimes(t, c, 1)
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
		deadline := time.Now().Add(time.Minute)
		for {
			_, err := c.Beat(t.Context(), center.Beat{Token: "x", Servers: []center.ServerBeat{{UUID: "u"}}})
			if err == nil {
				break
			}
			if !c.IsTransient(err) || time.Now().After(deadline) {
				t.Fatal(err)
			}
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
		if n := preparedIn(t, c.Heart()); n > 100 {
			t.Errorf("%d statements are prepared", n)
		}
	})
}

// Dealers' statements are the user's: he prepares what he wants prepared.
func TestDealersStatementsAreNotPrepared(t *testing.T) {
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
	through, _ := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	for name, url := range map[string]string{"proxy": through, "PgBouncer": pooled(t)} {
		t.Run(name, func(t *testing.T) {
			c := centertest.Open(t, url, center.Options{})
			beatTimes(t, c, 5)
			if n := preparedIn(t, c.Heart()); n != 0 {
				t.Errorf("%d statements are prepared", n)
			}
		})
	}
}

// A prepared statement that nobody answers ends, too, and the pool heals.
func TestSwallowedPacketsOfPreparedStatements(t *testing.T) {
	url, p := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	db := center.OpenPreparing(t, url)
	update := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := db.ExecContext(ctx, `SELECT $1::int`, 1)
		return err
	}
	for range 3 {
		if err := update(); err != nil {
			t.Fatal(err)
		}
	}
	if n := preparedIn(t, db); n != 1 {
		t.Fatalf("%d statements are prepared, want 1", n)
	}
	endsAndHeals(t, p, update)
}
